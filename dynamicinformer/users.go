package dynamicinformer

import (
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// users are the leases on an informer, and ForResource. The factory's mu guards them.
type users struct {
	leases map[*Lease]struct{}
	owners map[string]*status.Owner // of leases, by name
	pinned bool                     // ForResource uses it: the informer runs until the factory ends

	linger    time.Duration // how long the informer runs after the last release
	lingering *linger       // nil: the informer has users, or does not linger
}

// linger is one period in which an informer runs without users.
type linger struct{ end *time.Timer }

// none reports whether the informer has no users.
func (u *users) none() bool { return len(u.leases) == 0 && !u.pinned }

// add adds a lease.
func (u *users) add(l *Lease) {
	u.stopLinger()
	if u.leases == nil {
		u.leases, u.owners = map[*Lease]struct{}{}, map[string]*status.Owner{}
	}
	u.leases[l] = struct{}{}
	name := l.handlers.Name()
	owner := u.owners[name]
	if owner == nil {
		owner = &status.Owner{Name: name, Since: time.Now()}
		u.owners[name] = owner
	}
	owner.Leases++
}

// remove removes a lease.
func (u *users) remove(l *Lease) {
	delete(u.leases, l)
	name := l.handlers.Name()
	owner := u.owners[name]
	owner.Leases--
	if owner.Leases == 0 {
		delete(u.owners, name)
	}
}

// pin makes the informer run until the factory ends.
func (e *entry) pin() {
	if e.pinned {
		return
	}
	e.stopLinger()
	e.pinned = true
	e.changed.Broadcast()
}

// startLinger calls end after the linger.
func (u *users) startLinger(end func(this *linger)) {
	this := &linger{}
	this.end = time.AfterFunc(u.linger, func() { end(this) })
	u.lingering = this
}

// stopLinger ends the linger, because the informer has users again or ends.
func (u *users) stopLinger() {
	if u.lingering != nil {
		u.lingering.end.Stop()
		u.lingering = nil
	}
}

package sharding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/errtext"
)

// Member is a member of a group of processes, and the shard that it has now. [Join] returns one; the zero Member can't be used. It is safe for
// concurrent use.
type Member struct {
	cfg     Config
	leases  coordinationclient.LeaseInterface
	logger  klog.Logger
	epoch   time.Time
	granted atomic.Pointer[grant]
	changed broadcast.Broadcaster
	woken   chan struct{} // has one element: the machine has changed
	abandon context.CancelCauseFunc
	done    chan struct{}
	ended   error // read after done is closed

	// mu guards the fields below. It is never held during I/O, channel operations or user code.
	mu        sync.Mutex
	machine   *machine
	followers []*Follower
	reported  Reason                 // the last one of the machine
	since     time.Time              // of reported
	lastLease *coordinationv1.Lease  // as stored, to keep what others have written to it
	listed    []coordinationv1.Lease // the last list, to keep that of Leases that are released, too
}

var _ Shard = (*Member)(nil)

var (
	errTampered   = errors.New("another program has deleted or changed the Lease of the member: let only members write Leases of the group")
	errNilContext = errors.New("sharding: the context is nil")
	errNilClient  = errors.New("sharding: the client is nil; pass a clientset of client-go")
	errNoVersion  = errors.New("the server has returned a Lease without a resourceVersion, as fake clientsets do: use a real API server in tests, or sharding.Static")
)

// Join makes this process a member of a group, whose members share all slots. It sends no request and returns at once, with a
// member that has no slots yet. Errors are only those of the arguments; those of cfg match [ErrInvalidConfig]. The member
// sends one update and one list of Leases each RetryPeriod, and more while slots move. A failed request is repeated; Status
// has its error.
//
// The member leaves when ctx ends, or by [Member.Leave]. It needs permission to create, update, list and
// delete leases in the namespace.
func Join(ctx context.Context, client kubernetes.Interface, cfg Config) (*Member, error) {
	switch v := reflect.ValueOf(client); {
	case ctx == nil:
		return nil, errNilContext
	case client == nil, v.Kind() == reflect.Pointer && v.IsNil():
		return nil, errNilClient
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m := newMember(ctx, client, cfg)
	requests, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	m.abandon = abandon
	go m.run(ctx, requests)
	return m, nil
}

// newMember returns a member that does not run yet.
func newMember(ctx context.Context, client kubernetes.Interface, cfg Config) *Member {
	m := &Member{
		cfg:    cfg,
		leases: client.CoordinationV1().Leases(cfg.Namespace),
		logger: klog.LoggerWithValues(klog.FromContext(ctx), "group", klog.KRef(cfg.Namespace, cfg.Name), "member", cfg.Identity),
		epoch:  time.Now(),
		woken:  make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	m.since = m.epoch
	m.machine = newMachine(m.now(), cfg.timing(), leaseName(cfg.Name, cfg.Identity), cfg.Identity, uuid.NewString(),
		rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))) //nolint:gosec // spreads requests
	m.granted.Store(new(m.machine.grant))
	return m
}

// now reads the clocks.
func (m *Member) now() instant {
	now := time.Now()
	return instant{mono: now.Sub(m.epoch), wall: now.Round(0).Sub(m.epoch.Round(0))}
}

// Owns implements [Shard]. A member whose process was stopped, for example by a signal, owns nothing
// when it continues after its term.
func (m *Member) Owns(uid types.UID) bool {
	granted := m.granted.Load()
	return granted.owns(SlotOf(uid), m.now())
}

// View implements [Shard].
func (m *Member) View() View {
	granted := m.granted.Load()
	return View{Generation: granted.generation, Slots: granted.slots}
}

// Selector implements [Shard].
func (m *Member) Selector() string { return m.View().Slots.Selector() }

// Changed implements [Shard].
func (m *Member) Changed() <-chan struct{} { return m.changed.Next() }

// String implements [Shard].
func (m *Member) String() string {
	return fmt.Sprintf("the shard of %q in group %s/%s", m.cfg.Identity, m.cfg.Namespace, m.cfg.Name)
}

// LostSince implements [Shard].
func (m *Member) LostSince(generation uint64) Slots {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.lostSince(generation)
}

// Follow implements [Shard].
func (m *Member) Follow(name string) *Follower {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &Follower{member: m, name: name, letGo: m.machine.grant.generation}
	m.followers = append(m.followers, f)
	return f
}

// settleLocked tells the machine how far the followers have let go. Caller holds m.mu.
func (m *Member) settleLocked() {
	settled := m.machine.grant.generation
	for _, f := range m.followers {
		settled = min(settled, f.letGo)
	}
	if settled > m.machine.settled {
		m.machine.letGo(settled)
		m.wake()
	}
}

// wake makes run look at the machine again. It does not block.
func (m *Member) wake() {
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// Leave ends the membership, and waits until the member has ended: its followers have let all slots go, and its Lease records that. Owns returns
// false at once. If ctx ends first, the member ends without that record, other members wait until its Lease expires, and Leave returns a
// [*LeaveError]. If the context of Join has ended, the member waits for RenewDeadline at most. Otherwise give ctx a limit: if the API server
// rejects the requests or does not respond, Leave waits until ctx ends. A member that has not sent a request for a Lease of its own leaves at
// once. A member whose Lease was deleted, or is that of another process, waits only for its followers. Later calls return the same error. An
// event handler must not call Leave: it would wait for itself, since its informer is a follower.
func (m *Member) Leave(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	m.leave()
	select {
	case <-m.done:
	case <-ctx.Done():
		m.abandon(context.Cause(ctx))
		<-m.done
	}
	return m.ended
}

// leave begins to leave.
func (m *Member) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.machine.leaving && !m.machine.left {
		m.machine.leave()
		m.machine.left = m.machine.stored.version == "" && m.machine.written.write == 0 // there is no Lease
		m.publishLocked()
	}
	m.wake()
}

// Done returns a channel that closes when the member has ended. It ends after it has left, or if its identity is in use.
func (m *Member) Done() <-chan struct{} { return m.done }

// Err returns nil while the member runs and after it has left, a [*IdentityError] if its identity is in use, or
// a [*LeaveError].
func (m *Member) Err() error {
	select {
	case <-m.done:
		return m.ended
	default:
		return nil
	}
}

// response is what came of a request.
type response struct {
	records    []*record
	leases     []coordinationv1.Lease // of records
	lease      *coordinationv1.Lease  // the own one, as stored
	err        error
	relabelled bool // the label of the own Lease was put back
}

// run owns the machine until the member has ended. ctx ends the membership, and requests ends all requests.
func (m *Member) run(ctx, requests context.Context) {
	defer close(m.done)
	defer m.abandon(nil)
	var sending sync.WaitGroup
	defer sending.Wait()
	responses := make(chan response, 1)
	leaving := ctx.Done()
	var tooLong <-chan time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	var logged logLine
	for {
		request, wait, left := m.step()
		logged = m.log(logged)
		if left {
			m.ended = m.end()
			m.abandon(nil) // a list may hang
			return
		}
		if request.verb != 0 {
			sending.Go(func() { responses <- m.send(requests, request) })
		}
		timer.Reset(wait)
		select {
		case r := <-responses:
			m.respond(r)
		case <-timer.C:
		case <-m.woken:
		case <-leaving:
			leaving = nil
			tooLong = time.After(m.cfg.RenewDeadline)
			m.leave()
		case <-tooLong:
			m.abandon(context.Cause(ctx))
		case <-requests.Done():
			m.ended = m.abandoned(context.Cause(requests))
			return
		}
	}
}

// logLine is what the log has of a member.
type logLine struct {
	generation uint64
	reason     Reason
	failing    bool          // requests have failed for RenewDeadline, and that has no line of its own
	waiting    time.Duration // since when followers have had slots to let go, by the monotonic clock; 0: they have none
	blocked    bool          // they have had them for RenewDeadline
}

// log writes a line if the slots or the reason have changed since the last one, or if requests fail or followers keep slots for RenewDeadline.
func (m *Member) log(last logLine) logLine {
	m.mu.Lock()
	slots, err := m.machine.grant.slots, m.machine.err
	line := logLine{generation: m.machine.grant.generation, reason: m.machine.reason}
	now, followers := m.now().mono, m.waitsForLocked()
	line.failing = err != nil && !line.reason.unexpected() && now-m.machine.failingSince >= m.cfg.RenewDeadline
	if len(followers) > 0 {
		line.waiting = cmp.Or(last.waiting, now)
		line.blocked = now-line.waiting >= m.cfg.RenewDeadline
	}
	m.mu.Unlock()
	switch {
	case line.reason != last.reason && line.reason.unexpected():
		m.logger.Error(m.causeOf(line.reason, err), "The member of a shard has let its slots go", "reason", line.reason)
	case line.failing && !last.failing:
		m.logger.Error(err, "The requests of the member of a shard for Leases fail", "reason", line.reason)
	case line.blocked && !last.blocked:
		m.logger.Info("Other members wait for slots that these followers have not let go", "followers", followers)
	case line.generation != last.generation || line.reason != last.reason:
		m.logger.V(2).Info("The slots of a shard have changed", "slots", slots.Len(), "generation", line.generation, "reason", line.reason)
	}
	return line
}

// causeOf returns the error for which a member has let its slots go. Err is that of its last request.
func (m *Member) causeOf(reason Reason, err error) error {
	switch reason {
	case ReasonIdentityInUse:
		return m.identityError()
	case ReasonLeaseDeleted, ReasonLeaseChanged:
		return errTampered
	default:
		return err
	}
}

func (m *Member) identityError() *IdentityError {
	return &IdentityError{Namespace: m.cfg.Namespace, Lease: m.machine.name, Identity: m.cfg.Identity}
}

// step asks the machine what to do.
func (m *Member) step() (request, time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	request, wait := m.machine.next(m.now())
	m.publishLocked()
	return request, wait, m.machine.left
}

// respond tells the machine what came of its request.
func (m *Member) respond(r response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	how, err := m.machine.inFlight, error(nil)
	if r.err != nil {
		err = &RequestError{Verb: how.String(), Namespace: m.cfg.Namespace, Err: errtext.Clean(r.err)}
	}
	switch {
	case r.relabelled:
		m.machine.failed(now, relabelled, err)
	case err != nil && how != list && isConflict(r.err):
		m.machine.failed(now, conflict, err)
	case err != nil:
		m.machine.failed(now, unknown, err)
	case how == list:
		m.machine.listed(now, r.records)
		m.listed = r.leases
	case how == remove || how == release:
		m.machine.succeeded(now, "", "")
	default:
		m.machine.succeeded(now, r.lease.ResourceVersion, string(r.lease.UID))
	}
	if r.lease != nil {
		m.lastLease = r.lease
	}
	m.publishLocked()
}

// isConflict reports whether the API server has refused a write because of the version of the object.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// publishLocked makes the grant of the machine the one that Owns reads. Caller holds m.mu.
func (m *Member) publishLocked() {
	before, now := m.granted.Load(), m.machine.grant
	if *before == now && m.machine.reason == m.reported {
		return
	}
	m.granted.Store(&now)
	if m.machine.reason != m.reported {
		m.reported = m.machine.reason
		m.since = time.Now()
	}
	if before.generation != now.generation {
		m.changed.Broadcast()
		m.settleLocked()
	}
}

// send sends a request.
func (m *Member) send(ctx context.Context, r request) response {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	switch r.verb {
	case list:
		return m.list(ctx)
	case remove:
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &r.record.version, UID: new(types.UID(r.record.uid))}}
		err := m.leases.Delete(ctx, r.record.name, options)
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return response{err: err}
	}
	lease := m.stored(&r.record)
	r.record.writeTo(lease, m.cfg.Name, time.Now())
	var stored *coordinationv1.Lease
	var err error
	if r.verb == create {
		if stored, err = m.leases.Create(ctx, lease, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			return response{err: err, relabelled: m.putLabelBack(ctx, r.record.name)}
		}
	} else {
		stored, err = m.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil || r.verb == release {
		return response{err: err}
	}
	return response{lease: stored}
}

// putLabelBack puts the label of the group back on the Lease of a member that has lost it, so that lists show the Lease again. It changes
// nothing else: the Lease may be that of another process, which the next list shows. It reports whether it has done so: if not, the
// Lease can't be created again.
func (m *Member) putLabelBack(ctx context.Context, name string) bool {
	leases, err := m.leases.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return false
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		_, labelled := l.Labels[GroupLabel]
		if _, ofMember := l.Annotations[WriteAnnotation]; ofMember && !labelled {
			metav1.SetMetaDataLabel(&l.ObjectMeta, GroupLabel, m.cfg.Name)
			_, err := m.leases.Update(ctx, l, metav1.UpdateOptions{})
			return err == nil
		}
	}
	return false
}

// stored returns a copy of the Lease of r in its version, with what other programs have written to it, or a new Lease.
func (m *Member) stored(r *record) *coordinationv1.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lastLease != nil && m.lastLease.Name == r.name && m.lastLease.ResourceVersion == r.version {
		return m.lastLease.DeepCopy()
	}
	for i := range m.listed {
		if l := &m.listed[i]; l.Name == r.name && l.ResourceVersion == r.version {
			return l.DeepCopy()
		}
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.cfg.Namespace}}
}

// list lists the Leases of the group. Without a resourceVersion, the list is consistent: it has all writes
// that ended before it was sent. The protocol needs that.
func (m *Member) list(ctx context.Context) response {
	leases, err := m.leases.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{GroupLabel: m.cfg.Name}.String()})
	if err != nil {
		return response{err: err}
	}
	r := response{leases: leases.Items}
	for i := range leases.Items {
		of := newRecord(&leases.Items[i])
		if of.version == "" {
			return response{err: errNoVersion}
		}
		if of.name == m.machine.name {
			r.lease = &leases.Items[i]
		}
		r.records = append(r.records, of)
	}
	slices.SortFunc(r.records, compareNames)
	return r
}

// end returns the error of a member whose machine has ended.
func (m *Member) end() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.machine.inUse {
		return m.identityError()
	}
	m.machine.reason = ReasonLeft
	m.publishLocked()
	return nil
}

// abandoned ends the machine without a request.
func (m *Member) abandoned(cause error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.machine.left = true
	m.machine.reason = ReasonLeft
	m.publishLocked()
	if m.machine.released() || m.machine.stored.version == "" && m.machine.acked == 0 && m.machine.written.write == 0 {
		return nil // the Lease says so, or there is none
	}
	return &LeaveError{Lease: m.machine.name, WaitsFor: m.waitsForLocked(), Err: errors.Join(cause, m.machine.err)}
}

// waitsForLocked returns the names of the followers that have not let slots go. Caller holds m.mu.
func (m *Member) waitsForLocked() (names []string) {
	for slot := range m.machine.draining.All() {
		for _, f := range m.followers {
			if f.letGo < m.machine.lost[slot] && !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	return names
}

// Status returns the status of the member and of its group.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.machine.tick(m.now())
	m.publishLocked()
	c := m.machine
	s := Status{
		Identity: m.cfg.Identity, Generation: c.grant.generation,
		Held: c.grant.slots, Pending: c.pending, Blocked: c.blocking, LettingGo: c.draining,
		Seat: c.seat, Reason: c.reason, Since: m.since, Err: c.err, WaitsFor: m.waitsForLocked(),
	}
	for _, f := range m.followers {
		if f.loaded < c.grant.generation && !slices.Contains(s.Loading, f.name) {
			s.Loading = append(s.Loading, f.name)
		}
	}
	for _, p := range c.peers {
		s.Members = append(s.Members, MemberStatus{
			Identity: p.identity, Claims: p.claims, Seat: p.seat, Leaving: p.leaving, Expired: p.expired, Deleted: p.gone,
		})
	}
	return s
}

package sharding

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reason says why a member acts on no slots, or waits.
type Reason string

// The reasons.
const (
	// ReasonNone means that the member has all slots that it should have, except those of Status.Pending.
	ReasonNone Reason = ""
	// ReasonJoining means that the member has not had a slot yet: its first requests have not succeeded, or
	// another process had its identity, whose Lease has not expired.
	ReasonJoining Reason = "Joining"
	// ReasonNotRenewed means that the member could not renew its Lease for RenewDeadline, and has let all slots
	// go. Status.Err says why.
	ReasonNotRenewed Reason = "NotRenewed"
	// ReasonLeaseDeleted means that the Lease of the member was deleted, or has lost its GroupLabel. The member has let all
	// slots go, and creates it again, or puts the label back. It can't if the Lease has the label of another group or is not that of a
	// member, and Status.Err says so.
	ReasonLeaseDeleted Reason = "LeaseDeleted"
	// ReasonLeaseChanged means that the Lease of the member was changed by another program, or restored
	// from a backup. The member has let all slots go, and claims them again. If the Lease is then that of another process,
	// such as the one before a restart, the member waits first until it has expired.
	ReasonLeaseChanged Reason = "LeaseChanged"
	// ReasonIdentityInUse means that another process has the same identity. The member has ended.
	ReasonIdentityInUse Reason = "IdentityInUse"
	// ReasonLeaving means that the member leaves: its followers have not let all slots go, or its Lease does not
	// say so yet.
	ReasonLeaving Reason = "Leaving"
	// ReasonLeft means that the member has left.
	ReasonLeft Reason = "Left"
)

// unexpected reports whether the member has let its slots go against its will.
func (r Reason) unexpected() bool {
	return r == ReasonNotRenewed || r == ReasonLeaseDeleted || r == ReasonLeaseChanged || r == ReasonIdentityInUse
}

// Status is a snapshot of a member and of its group, as the member sees it.
type Status struct {
	Identity   string
	Generation uint64 // of the View
	// Held are the slots on which the member acts, Pending those for which it waits, Blocked those of Pending
	// that other members have not let go, and LettingGo those that its followers have not let go.
	Held, Pending, Blocked, LettingGo Slots
	// Reason and Since say why the member does not act, and since when. If Reason is ReasonNone, Since is the
	// time of the last change of Reason.
	Reason Reason
	Since  time.Time
	// Err is the [*RequestError] of the last request that failed, until a request of the same kind has
	// succeeded.
	Err error
	// WaitsFor has the names of the followers that have not let go slots of LettingGo.
	WaitsFor []string
	// Loading has the names of the followers that have not loaded the slots of Held.
	Loading []string
	// Seat decides which slots the member gets; zero: it has none yet.
	Seat int
	// Members are the Leases of the other members, in the order of the names of the Leases. After the member has left, they are
	// those that it saw last.
	Members []MemberStatus
}

// MemberStatus is what a member knows of another one.
type MemberStatus struct {
	Identity string // empty: it has left
	Claims   Slots  // those on which it may act, or for which it waits
	Seat     int    // decides which slots it gets; zero: it has none yet
	Leaving  bool
	Expired  bool // it has not renewed its Lease, and its claims do not count
	Deleted  bool // its Lease was deleted, and counts until it would have expired
}

// ErrIdentityInUse means that another process is a member of the group with the same identity. Type:
// [*IdentityError].
var ErrIdentityInUse = errors.New("identity is in use")

// IdentityError is the error of a member whose identity another process has, too.
type IdentityError struct{ Namespace, Lease, Identity string }

// Error implements error.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("lease %s/%s: another process has the identity %q: give each process its own, such as the name of its pod",
		e.Namespace, e.Lease, e.Identity)
}

// Is reports whether target is ErrIdentityInUse.
func (e *IdentityError) Is(target error) bool { return target == ErrIdentityInUse }

// RequestError is the error of a request for Leases. It unwraps to the error of client-go.
type RequestError struct {
	Verb      string // list, create, update or delete
	Namespace string // of the Leases
	Err       error
}

// Error implements error.
func (e *RequestError) Error() string {
	text := fmt.Sprintf("%s leases in namespace %s: %v", e.Verb, e.Namespace, e.Err)
	switch {
	case apierrors.IsForbidden(e.Err):
		text += ": allow the member to create, update, list and delete leases there"
	case apierrors.IsAlreadyExists(e.Err): // and no list shows it
		text += ": it is not in the group without the label " + GroupLabel + ": put the label back, or delete the Lease"
	}
	return text
}

// Unwrap returns the error of client-go.
func (e *RequestError) Unwrap() error { return e.Err }

// LeaveError is the error of a member that has ended without recording that in its Lease. Other members wait
// until the Lease expires. It unwraps to the cause.
type LeaveError struct {
	Lease    string
	WaitsFor []string // the followers that have not let go
	Err      error
}

// Error implements error.
func (e *LeaveError) Error() string {
	if len(e.WaitsFor) > 0 {
		return fmt.Sprintf("lease %s: not released, since %q have not let their objects go: %v", e.Lease, e.WaitsFor, e.Err)
	}
	return fmt.Sprintf("lease %s: not released: %v", e.Lease, e.Err)
}

// Unwrap returns the cause.
func (e *LeaveError) Unwrap() error { return e.Err }

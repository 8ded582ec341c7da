package status

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// ErrNotSynced is matched by every [*NotSyncedError].
var ErrNotSynced = errors.New("informer not synced")

// NotSyncedError says why one resource's informer has not synced. It unwraps to
// the cause, so that apierrors.IsForbidden, meta.IsNoMatchError and the sentinels
// of package discovery hold for it where they hold for that.
type NotSyncedError struct {
	GVR schema.GroupVersionResource
	// Namespace is where requests go; empty means everywhere. Before discovery has
	// found that a type has no namespaces, it is the factory's.
	Namespace string
	// Verb is that of the request that failed, list or watch; empty if none was
	// made.
	Verb   string
	Reason Reason
	// Since is when it went wrong first without having gone right since.
	Since time.Time
	// Attempts is how often it has gone wrong since.
	Attempts int
	// Err is how it went wrong last; nil if nothing has.
	Err error
	// At is when this was found.
	At time.Time
}

func (e *NotSyncedError) Error() string {
	var b strings.Builder
	// The errors of discovery begin with the resource.
	if refused := e.Verb == "" && e.Err != nil; refused {
		fmt.Fprintf(&b, "%v (%s", e.Err, e.Reason)
	} else {
		fmt.Fprintf(&b, "%s: not synced %s: ", discovery.RefOf(e.GVR), NamespaceText(e.Namespace))
		if e.Err != nil {
			fmt.Fprintf(&b, "cannot %s: %v ", e.Verb, e.Err)
		}
		fmt.Fprintf(&b, "(%s", e.Reason)
	}
	if !e.Since.IsZero() && !e.At.IsZero() {
		fmt.Fprintf(&b, " for %s", e.At.Sub(e.Since).Round(100*time.Millisecond))
	}
	switch {
	case e.Attempts == 1:
		b.WriteString(", 1 attempt")
	case e.Attempts > 1:
		fmt.Fprintf(&b, ", %d attempts", e.Attempts)
	}
	b.WriteString(")")
	if advice := e.Advice(); advice != "" {
		b.WriteString("; " + advice)
	}
	return b.String()
}

// Advice says what a person can do, or "".
func (e *NotSyncedError) Advice() string {
	switch {
	case e.Reason == ReasonForbidden && e.Verb == "":
		return "let the user read discovery, or do without it: WithDiscovery(nil)"
	case e.Reason == ReasonForbidden:
		return "grant the user list and watch on it"
	case e.Reason == ReasonUnauthorized:
		return "check the credentials"
	case e.Reason == ReasonUnavailable:
		return "is the API server reachable and healthy?"
	case e.Reason == ReasonConversionFailed:
		return "see to the CRD's conversion webhook"
	case e.Reason == ReasonNotStarted:
		return "ask for it with ForResource and call Start"
	}
	return ""
}

// Is reports whether target is ErrNotSynced.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns the cause.
func (e *NotSyncedError) Unwrap() error { return e.Err }

// NamespaceText says where requests go, for texts: in one namespace or at cluster scope.
func NamespaceText(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "at cluster scope"
	}
	return "in namespace " + namespace
}

package status

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// ErrNotSynced is matched by every [*NotSyncedError].
var ErrNotSynced = errors.New("informer not synced")

// NotSyncedError reports why the informer on one resource has not synced. It unwraps to
// the cause, so that apierrors.IsForbidden, meta.IsNoMatchError and the sentinels of
// package discovery work with it.
type NotSyncedError struct {
	GVR schema.GroupVersionResource
	// Namespace is the namespace of requests; empty means all namespaces. It is the
	// factory's namespace until discovery has found that the type is cluster-scoped.
	Namespace string
	// Verb is the verb of the failed request, list or watch; empty if no request has
	// failed.
	Verb   string
	Reason Reason
	// Since is the time of the first failure since the last success; zero if the informer has ended.
	Since time.Time
	// Attempts is the number of failures since then.
	Attempts int
	// Err is the last failure; nil if there was none.
	Err error
	// At is the time of this report.
	At time.Time
}

func (e *NotSyncedError) Error() string {
	var b strings.Builder
	ref, problem := discovery.RefOf(e.GVR).String(), e.Problem()
	if strings.HasPrefix(problem, ref+": ") { // the errors of discovery begin with the resource
		b.WriteString(problem)
	} else {
		fmt.Fprintf(&b, "%s: not synced: %s", ref, problem)
	}
	fmt.Fprintf(&b, " (%s", e.Reason)
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

// Problem describes the problem without the resource and the reason. It returns "" if only the
// reason is known.
func (e *NotSyncedError) Problem() string {
	cause := ""
	switch {
	case e.Err != nil && e.Verb != "":
		cause = requestText(e.Verb, e.Namespace, e.Err)
	case e.Err != nil:
		cause = e.Err.Error()
	}
	switch {
	case e.Reason == ReasonStopped && cause != "":
		return "the informer was stopped, its last error: " + cause
	case e.Reason == ReasonStopped:
		return "the informer was stopped"
	case e.Reason == ReasonNotStarted:
		return "no informer on it has been started"
	case cause == "" && e.Reason == ReasonSyncing:
		return "the list is not complete yet"
	case cause == "" && e.Reason == ReasonQueued:
		return "the list waits for the lists of other resources"
	}
	return cause
}

// requestText describes a failed list or watch. It does not repeat the verb and the scope, which an
// API server's Forbidden error already has.
func requestText(verb, namespace string, err error) string {
	text := err.Error()
	if _, rest, found := strings.Cut(text, " is forbidden: "); found && apierrors.IsForbidden(err) {
		text = rest
		if strings.Contains(text, "cannot "+verb) {
			return text
		}
	}
	if namespace != metav1.NamespaceAll {
		verb += fmt.Sprintf(" in namespace %q", namespace)
	}
	return "cannot " + verb + ": " + text
}

// Advice returns what a person can do, or "".
func (e *NotSyncedError) Advice() string {
	switch {
	case e.Reason == ReasonForbidden && e.Verb != "":
		return "grant this rule to the user in a " + roleText(e.refused(), e.Namespace)
	case errors.Is(e.Err, discovery.ErrInvalidRef):
		return "correct the name of the resource"
	case e.Reason == ReasonNotFound && e.Verb == "":
		return "" // the error of discovery says it
	}
	return advice[e.Reason]
}

// advice is what a person can do about a reason, where that depends on nothing else.
var advice = map[Reason]string{
	ReasonForbidden:        "bind the ClusterRole system:discovery to the user, or use a factory without discovery: WithDiscovery(nil)",
	ReasonUnauthorized:     "check the credentials",
	ReasonBadRequest:       "correct the options of the informer, such as its selectors",
	ReasonAmbiguous:        "add a group to the name, such as ipamblocks.crd.projectcalico.org",
	ReasonTransformFailed:  "correct the function that failed, or the object",
	ReasonIndexFailed:      "correct the function that failed, or the object",
	ReasonTLS:              "check the server's URL, the CA and the client certificate in the rest.Config",
	ReasonUnavailable:      "check that the API server is reachable and healthy",
	ReasonConversionFailed: "check the conversion webhook of the CustomResourceDefinition",
	ReasonDecodeFailed:     "check which server responds at the URL of the rest.Config, and the stored objects",
	ReasonVerbNotSupported: "use WithPolling, if the type supports list",
	ReasonVersionNotServed: "request a version that is served, or use WithVersionPolicy",
	ReasonNotFound:         "check that its CustomResourceDefinition is installed",
	ReasonOverBudget:       "raise WithMemoryBudget, release leases on other types, or cache less: WithPackedCache, WithMetadataOnly or a selector",
	ReasonNotStarted:       "call Start, and before it ForResource or Acquire if there is no informer",
}

// refused returns the resource of the request that the server has refused: that of the informer, or the namespaces of a
// selector.
func (e *NotSyncedError) refused() schema.GroupVersionResource {
	var refusal apierrors.APIStatus
	if errors.As(e.Err, &refusal) {
		if details := refusal.Status().Details; details != nil && details.Group == "" && details.Kind == "namespaces" {
			return schema.GroupVersionResource{Version: "v1", Resource: details.Kind}
		}
	}
	return e.GVR
}

// roleText returns the kind of role that requests in namespace require, and a rule for it as one
// line of YAML, for the list "rules:".
func roleText(gvr schema.GroupVersionResource, namespace string) string {
	role := "ClusterRole"
	if namespace != metav1.NamespaceAll {
		role = fmt.Sprintf("Role of namespace %q", namespace)
	}
	return fmt.Sprintf(`%s: - {apiGroups: [%q], resources: [%q], verbs: ["list", "watch"]}`, role, gvr.Group, gvr.Resource)
}

// Is reports whether target is ErrNotSynced.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns the cause.
func (e *NotSyncedError) Unwrap() error { return e.Err }

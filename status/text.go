package status

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gvrkit/gvrkit/discovery"
)

// String describes the informer in one line: the resource, what differs from the defaults, the state, the
// reason, the problem, and what a person can do. It has no times.
func (i Informer) String() string {
	text := i.Name()
	if notes := i.Notes(); notes != "" {
		text += " (" + notes + ")"
	}
	i.Since = time.Time{}
	text += ": " + i.Summary(time.Time{})
	if message := i.Message(); message != "" && i.State != StateStopped {
		text += ": " + message
	}
	if advice := i.Advice(); advice != "" {
		text += "; " + advice
	}
	return text
}

// Summary returns the state, its reason and its duration, such as "Degraded (Forbidden) for 5m".
func (i Informer) Summary(at time.Time) string {
	text := string(i.State)
	if i.Reason != "" && string(i.Reason) != text {
		text += " (" + string(i.Reason) + ")"
	}
	if !i.Since.IsZero() {
		text += " for " + elapsed(i.Since, at)
	}
	return text
}

// Message describes the problem of the informer, or what it waits for. It returns "" if there is no
// problem.
func (i Informer) Message() string {
	switch {
	case i.Reason == ReasonStopped:
		return "the informer was stopped"
	case i.Reason == ReasonNotStarted:
		return "the factory has not been started"
	case i.hasEnded():
		return i.EvidenceText()
	case i.FailedObjects > 0:
		return i.failedObjects()
	}
	return strings.TrimPrefix(i.notSynced().Problem(), i.Name()+": ")
}

// hasEnded reports whether Evidence describes the problem: a type that discovery does not list may be served again.
func (i *Informer) hasEnded() bool {
	return i.Evidence.Kind == discovery.CRDDeleted || i.Evidence.Kind != "" && (i.State == StateNotServed || i.Verb == "" && i.Reason != "")
}

// Advice returns what a person can do, or "".
func (i Informer) Advice() string {
	switch {
	case i.Reason == "", i.Reason == ReasonSyncing:
		return i.namespaceAdvice()
	case i.Reason == ReasonNotStarted:
		return "call Start on the factory"
	case i.Reason == ReasonDecodeFailed && i.FailedObjects > 0:
		return "correct the object, or the Go type of the informer"
	}
	return i.notSynced().Advice()
}

// notSynced returns the problem as an error. With a set of namespaces, its namespace is that of the request that Err is about.
func (i *Informer) notSynced() *NotSyncedError {
	namespace := i.Namespace
	if request, is := errors.AsType[ofRequest](i.Err); is {
		namespace = request.RequestNamespace()
	}
	return &NotSyncedError{GVR: i.GVR, Namespace: namespace, Verb: i.Verb, Reason: i.Reason, Since: i.Since, Attempts: i.Attempts, Err: i.Err}
}

// ofRequest is the error of a request in one namespace of a set.
type ofRequest interface {
	error
	RequestNamespace() string
}

// failedObjects describes the objects that Reason concerns.
func (i *Informer) failedObjects() string {
	text := count(i.FailedObjects, "object") + " failed"
	if i.LastFailed != "" {
		text += ", the last one is " + i.LastFailed
	}
	if i.Err != nil {
		text += ": " + i.Err.Error()
	}
	return text
}

// Retries describes the duration of a failure, the number of attempts, the next attempt, and whether
// the cache may be out of date. It returns "" if nothing fails.
func (i Informer) Retries(at time.Time) string {
	var parts []string
	if !i.Since.IsZero() && i.Reason != "" {
		parts = append(parts, "for "+elapsed(i.Since, at))
	}
	if i.Attempts > 0 {
		parts = append(parts, count(i.Attempts, "attempt"))
	}
	if next := i.nextRetry(at); next != "" {
		parts = append(parts, "next in "+next)
	}
	if !i.StaleSince.IsZero() {
		parts = append(parts, "cache may be out of date")
	}
	return strings.Join(parts, ", ")
}

// nextRetry returns the time until the next attempt, or "" if it is not known.
func (i *Informer) nextRetry(at time.Time) string {
	if !i.NextRetry.After(at) {
		return ""
	}
	return duration.HumanDuration(i.NextRetry.Sub(at).Round(time.Second))
}

// Notes describes what differs from the defaults: namespace, version policy, version, lists instead of a
// watch, and changes of the type. It returns "" if there is no difference.
func (i Informer) Notes() string {
	var notes []string
	if i.Namespace != "" {
		notes = append(notes, "namespace "+i.Namespace)
	}
	if text := i.NamespacesText(); text != "" {
		notes = append(notes, text)
	}
	if i.Ref != "" {
		notes = append(notes, fmt.Sprintf("by name %q", i.Ref))
	}
	if i.Form != "" {
		notes = append(notes, i.Form)
	}
	if i.VersionPolicy != discovery.Exact() {
		notes = append(notes, i.VersionPolicy.String())
	}
	if i.resolved() && i.Resource.GVR != i.GVR {
		notes = append(notes, "as "+discovery.RefOf(i.Resource.GVR).String())
	}
	if i.PollPeriod > 0 {
		notes = append(notes, "listed every "+i.pollPeriod())
	}
	if i.resolved() && i.Resource.Terminating && i.Evidence.Kind != discovery.CRDDeleted {
		notes = append(notes, "its CRD is being deleted")
	}
	if i.Flushing {
		notes = append(notes, "still has objects of the previous generation")
	}
	return strings.Join(notes, ", ")
}

// resolved reports whether discovery has resolved the resource.
func (i *Informer) resolved() bool { return i.Resource.GVK.Kind != "" }

// ServedAs describes the type as the server serves it: name, kind, scope, and the CRD or API server
// behind it. It returns "" if the type has not been resolved.
func (i Informer) ServedAs() string {
	if !i.resolved() {
		return ""
	}
	res := &i.Resource
	text := fmt.Sprintf("%s, kind %s, cluster-scoped", discovery.RefOf(res.GVR), res.GVK.Kind)
	if res.Namespaced {
		text = fmt.Sprintf("%s, kind %s, namespaced", discovery.RefOf(res.GVR), res.GVK.Kind)
	}
	switch {
	case res.CRDUID != "":
		text += fmt.Sprintf(", by the CustomResourceDefinition with UID %s", res.CRDUID)
		if res.Terminating {
			text += ", which is being deleted"
		}
	case res.Backing == discovery.BackingAggregated:
		text += ", by an aggregated API server"
	}
	return text
}

// EvidenceText describes the evidence that the type is gone. It returns "" if there is none.
func (i Informer) EvidenceText() string {
	switch e := i.Evidence; {
	case e.Kind == "":
		return ""
	case e.Kind == discovery.CRDDeleted && e.CRDUID == "":
		return "its CustomResourceDefinition was deleted"
	case e.Kind == discovery.CRDDeleted:
		return fmt.Sprintf("its CustomResourceDefinition (UID %s) was deleted", e.CRDUID)
	case e.Kind == discovery.NoVersionServed:
		return "its CustomResourceDefinition serves no version of it"
	}
	return "discovery no longer lists it"
}

// Call describes the handler's call in progress. It returns "" if there is none.
func (h Handler) Call(at time.Time) string {
	if h.RunningSince.IsZero() {
		return ""
	}
	return h.waiting("has been in one call for " + elapsed(h.RunningSince, at))
}

// Delay describes a call that has lasted for a second or longer, or the backlog of a handler that is
// [Handler.Late]. Otherwise it returns "".
func (h Handler) Delay(at time.Time) string {
	switch {
	case h.runs(slowCall, at):
		return h.Call(at)
	case h.Late(at):
		return h.waiting("has been behind for " + elapsed(h.BehindSince, at))
	}
	return ""
}

// Failure describes the objects for which the handler has panicked. It returns "" if there are none.
func (h Handler) Failure() string {
	if h.Reason == "" {
		return ""
	}
	return fmt.Sprintf("%s has panicked for %s, the last one is %s; its last panic: %s", h.name(), count(uint64(h.FailedObjects), "object"), h.LastFailed, h.LastPanic) //nolint:gosec // not negative
}

// waiting returns text with the name of the handler and the number of waiting events.
func (h *Handler) waiting(text string) string {
	text = h.name() + " " + text
	if h.Backlog > 0 {
		text += ", " + count(h.Backlog, "event") + " waiting"
	}
	return text
}

// name returns the name of the handler, without the path of its package, and of its lease.
func (h *Handler) name() string {
	name := "handler " + h.Handler[strings.LastIndex(h.Handler, "/")+1:]
	if h.Lease != "" {
		name += " of " + strconv.Quote(h.Lease)
	}
	return name
}

// elapsed returns the time from since to at.
func elapsed(since, at time.Time) string { return duration.HumanDuration(max(0, at.Sub(since))) }

// sentence returns text with a full stop, unless it ends with a punctuation mark or a YAML rule.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "}") {
		return text
	}
	return text + "."
}

// list joins texts with commas and "and".
func list(texts []string) string {
	last := len(texts) - 1
	if last <= 0 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// count returns n with thousands separators, and noun in singular or plural.
func count[N int | uint64](n N, noun string) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return digits + " " + noun
}

package dynamicinformer

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gvrkit/gvrkit/discovery"
)

// message says in words what is wrong, or what is waited for; "" if nothing is.
func (s *ResourceStatus) message() string {
	switch wrong := s.wrong(); {
	case s.Reason == ReasonStopped:
		return "the informer was stopped"
	case s.Reason == ReasonNotStarted:
		return "the factory has not been started"
	case s.Evidence.Kind != "":
		return evidenceText(s.Evidence)
	case s.FailedObjects > 0:
		return s.failedText()
	default:
		return strings.TrimPrefix(wrong.Problem(), discovery.RefOf(s.GVR).String()+": ")
	}
}

// advice is what a person can do, or "".
func (s *ResourceStatus) advice() string {
	switch {
	case s.Reason == "":
		return ""
	case s.Reason == ReasonNotStarted:
		return "call Start on the factory"
	}
	return s.wrong().Advice()
}

// wrong returns what is wrong as an error.
func (s *ResourceStatus) wrong() *NotSyncedError {
	return &NotSyncedError{GVR: s.GVR, Namespace: s.Namespace, Verb: s.Verb, Reason: s.Reason, Since: s.Since, Attempts: s.Attempts, Err: s.Err}
}

// failedText tells of the objects that Reason is about.
func (s *ResourceStatus) failedText() string {
	text := count(s.FailedObjects, "object") + " failed"
	if s.LastFailed != "" {
		text += fmt.Sprintf(", the last one is %s", s.LastFailed)
	}
	if s.Err != nil {
		text += ": " + s.Err.Error()
	}
	return text
}

// teller describes one informer in sentences.
type teller struct {
	ResourceStatus
	at        time.Time
	discovery *discovery.Status
}

// tell returns the chain of e.
func (e *Explanation) tell() []Step {
	if len(e.Informers) == 0 {
		return []Step{{StepWanted, e.unknown()}}
	}
	var chain []Step
	for _, status := range e.Informers {
		t := teller{status, e.At, e.Discovery}
		for _, step := range []Step{
			{StepWanted, t.wanted()},
			{StepServed, t.served()},
			{StepRequests, t.requests()},
			{StepCache, t.cache()},
			{StepHandlers, t.handlers()},
			{StepNext, t.next()},
		} {
			if step.Text != "" {
				chain = append(chain, step)
			}
		}
	}
	return chain
}

// unknown says that there is no informer, and on which other versions there are some.
func (e *Explanation) unknown() string {
	text := fmt.Sprintf("There is no informer on %s.", discovery.RefOf(e.GVR))
	switch len(e.Elsewhere) {
	case 0:
		return text
	case 1:
		return text + fmt.Sprintf(" There is one on %s.", refTexts(e.Elsewhere)[0])
	}
	return text + fmt.Sprintf(" There are informers on %s.", list(refTexts(e.Elsewhere)))
}

func refTexts(gvrs []schema.GroupVersionResource) []string {
	texts := make([]string, len(gvrs))
	for i, gvr := range gvrs {
		texts[i] = discovery.RefOf(gvr).String()
	}
	return texts
}

func (t *teller) wanted() string {
	var by []string
	if t.Pinned {
		by = append(by, "ForResource")
	}
	for _, h := range t.Holders {
		name := "without a name"
		if h.Name != "" {
			name = fmt.Sprintf("of %q", h.Name)
		}
		by = append(by, fmt.Sprintf("%s %s for %s", count(h.Leases, "lease"), name, t.since(h.Since)))
	}
	policy := ""
	if t.Versions != (discovery.VersionPolicy{}) {
		policy = fmt.Sprintf(" with version policy %s", t.Versions)
	}
	ref := discovery.RefOf(t.GVR)
	switch {
	case len(by) > 0:
		return fmt.Sprintf("%s is requested by %s%s. State: %s.", ref, list(by), policy, t.state())
	case t.State == StateStopped:
		return fmt.Sprintf("%s%s has no lease. State: %s.", ref, policy, t.state())
	}
	return fmt.Sprintf("%s%s has no lease any more, and stops when its linger time is over. State: %s.", ref, policy, t.state())
}

func (t *teller) state() string {
	if t.State == StateSynced && !t.Since.IsZero() {
		return fmt.Sprintf("%s for %s", t.State, t.since(t.Since))
	}
	return stateText(t.State, t.Reason)
}

// stateText returns a state with its reason, if that says more.
func stateText(state State, reason Reason) string {
	if reason == "" || string(reason) == string(state) {
		return string(state)
	}
	return fmt.Sprintf("%s (%s)", state, reason)
}

// served describes what discovery has answered, and the evidence.
func (t *teller) served() string {
	if t.discovery == nil {
		return "The factory has no discovery: only requests show whether the type is served."
	}
	var b strings.Builder
	switch res := t.Resource; {
	case t.Evidence.Kind != "" && t.State != StateNotServed:
		fmt.Fprintf(&b, "The type may be gone: %s, seen %s ago.", evidenceText(t.Evidence), t.since(t.Evidence.At))
	case t.Evidence.Kind != "":
		fmt.Fprintf(&b, "The type is gone: %s, seen %s ago.", evidenceText(t.Evidence), t.since(t.Evidence.At))
	case t.Err != nil && t.Verb == "" && t.FailedObjects == 0:
		b.WriteString(sentence(fmt.Sprintf("Discovery has answered for %s: %v", t.since(t.Since), t.Err)))
	case res.GVK.Kind == "":
		b.WriteString("Discovery has not answered yet.")
	default:
		fmt.Fprintf(&b, "It is served as %s, kind %s, %s%s.", discovery.RefOf(res.GVR), res.GVK.Kind, scopeText(res), backingText(res))
	}
	if t.Generation > 0 {
		fmt.Fprintf(&b, " This is generation %d of this type.", t.Generation+1)
	}
	b.WriteString(t.followed())
	return b.String()
}

func scopeText(res discovery.Resource) string {
	if res.Namespaced {
		return "namespaced"
	}
	return "cluster-scoped"
}

func backingText(res discovery.Resource) string {
	switch {
	case res.CRDUID != "" && res.Terminating:
		return fmt.Sprintf(", by the CustomResourceDefinition with UID %s, which is being deleted", res.CRDUID)
	case res.CRDUID != "":
		return fmt.Sprintf(", by the CustomResourceDefinition with UID %s", res.CRDUID)
	case res.Backing == discovery.BackingAggregated:
		return ", by an aggregated API server"
	}
	return ""
}

func evidenceText(e discovery.Evidence) string {
	switch e.Kind {
	case discovery.CRDDeleted:
		if e.CRDUID == "" {
			return "its CustomResourceDefinition was deleted"
		}
		return fmt.Sprintf("its CustomResourceDefinition (UID %s) was deleted", e.CRDUID)
	case discovery.NoVersionServed:
		return "its CustomResourceDefinition serves no version of it"
	}
	return "discovery does not list it any more"
}

// followed names the sources of discovery that fail.
func (t *teller) followed() string {
	switch {
	case t.State == StateStopped, t.Reason == ReasonNotStarted:
		return ""
	case !t.discovery.Running:
		return " The resolver is not running: the informer asks discovery at intervals."
	}
	var b strings.Builder
	for _, s := range []struct {
		name string
		discovery.SourceStatus
	}{{"CustomResourceDefinitions", t.discovery.CRDs}, {"APIServices", t.discovery.APIServices}, {"Discovery documents", t.discovery.Documents}} {
		if s.Err != nil && s.State != discovery.SourceAbsent { // some servers have no APIServices
			fmt.Fprintf(&b, " %s can't be read: %s (%v).", s.name, s.State, s.Err)
		}
	}
	return b.String()
}

// requests describes how its requests go.
func (t *teller) requests() string {
	switch tr := t.Traffic; {
	case t.Err != nil && t.Verb != "":
		failed := NotSyncedError{Namespace: t.Namespace, Verb: t.Verb, Err: t.Err}
		text := failed.Problem()
		return fmt.Sprintf("%s (for %s, %s).", strings.ToUpper(text[:1])+text[1:], t.since(t.Since), count(t.Attempts, "attempt"))
	case tr.Lists+tr.Watches > 0:
		return fmt.Sprintf("Requests%s: %s and %s have succeeded.", t.scope(), count(tr.Lists, "list"), count(tr.Watches, "watch"))
	case t.State == StateStopped, t.State == StateNotServed, t.Reason == ReasonNotStarted:
		return ""
	case t.State == StateStarting:
		return "The first list has not been answered yet."
	}
	return "No list or watch has been sent."
}

// scope says where requests go, if that is known.
func (t *teller) scope() string {
	switch {
	case t.Namespace != "":
		return fmt.Sprintf(" in namespace %q", t.Namespace)
	case t.Resource.GVK.Kind != "" && t.Resource.Namespaced:
		return " in all namespaces"
	}
	return ""
}

func (t *teller) cache() string {
	var b strings.Builder
	if t.Objects > 0 || t.Traffic.Lists > 0 {
		fmt.Fprintf(&b, "The cache has %s", count(t.Objects, "object"))
		if t.ResourceVersion != "" {
			fmt.Fprintf(&b, " at resourceVersion %s", t.ResourceVersion)
		}
		if last := t.Traffic.LastEvent; !last.IsZero() {
			fmt.Fprintf(&b, "; the last event was %s ago", t.since(last))
		}
		b.WriteString(".")
	}
	add := func(text string) { b.WriteString(" " + sentence(text)) }
	if t.FailedObjects > 0 {
		add(fmt.Sprintf("%s: %s", t.Reason, t.failedText()))
	}
	if t.Flushing {
		add("It still has objects of the generation before")
	}
	if !t.StaleSince.IsZero() {
		add(fmt.Sprintf("It may have been out of date for %s", t.since(t.StaleSince)))
	}
	return strings.TrimSpace(b.String())
}

func (t *teller) handlers() string {
	texts := make([]string, len(t.Handlers))
	for i, h := range t.Handlers {
		of := ""
		if h.Lease != "" {
			of = fmt.Sprintf(" of lease %q", h.Lease)
		}
		texts[i] = fmt.Sprintf("Handler %s%s: %s finished", h.Handler, of, count(h.Delivered, "call"))
		if !h.RunningSince.IsZero() {
			texts[i] += fmt.Sprintf(", one running for %s", t.since(h.RunningSince))
		}
		if h.Backlog > 0 {
			texts[i] += fmt.Sprintf(", %s waiting", count(h.Backlog, "event"))
		}
		texts[i] += "."
	}
	return strings.Join(texts, " ")
}

// stuckAfter is how long a handler may be in one call before an explanation says that a person
// should look at it.
const stuckAfter = 10 * time.Second

// next says what it waits for, and what to do.
func (t *teller) next() string {
	var parts []string
	switch {
	case t.State == StateStopped:
		return ""
	case t.State == StateNotServed:
		parts = append(parts, "No list or watch is sent until the type is served.")
	case t.NextRetry.After(t.at):
		parts = append(parts, fmt.Sprintf("The next attempt is in %s.", duration.HumanDuration(t.NextRetry.Sub(t.at).Round(time.Second))))
	}
	if advice := t.advice(); advice != "" {
		parts = append(parts, sentence("To do: "+advice))
	}
	for _, h := range t.Handlers {
		if !h.RunningSince.IsZero() && t.at.Sub(h.RunningSince) >= stuckAfter {
			parts = append(parts, fmt.Sprintf("To do: find out why handler %s does not return.", h.Handler))
		}
	}
	return strings.Join(parts, " ")
}

func (t *teller) since(when time.Time) string { return duration.HumanDuration(t.at.Sub(when)) }

// sentence returns text with a full stop, if it does not end as a sentence does. A YAML rule
// stays as it is.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "}") {
		return text
	}
	return text + "."
}

// list joins texts as a sentence does.
func list(texts []string) string {
	last := len(texts) - 1
	if last <= 0 {
		return strings.Join(texts, "")
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// count returns n with a noun.
func count[N int | uint64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

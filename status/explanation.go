package status

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// Explanation describes the informers on one resource at one moment, in sentences.
// [Explanation.MarshalJSON] documents its JSON.
type Explanation struct {
	GVR schema.GroupVersionResource `json:"-"`
	At  time.Time                   `json:"at"`
	// Informers are the statuses of the resource's informers. There may be several if leases have
	// different version policies or separate informers. The status page leaves some out if there are
	// very many; MoreInformers is the number of these.
	Informers     []Informer `json:"informers"`
	MoreInformers int        `json:"moreInformers,omitempty"`
	// Elsewhere are the other versions of the resource that have informers, if this version has none.
	Elsewhere []schema.GroupVersionResource `json:"-"`
	// Discovery is the status of discovery; nil without discovery.
	Discovery *discovery.Status `json:"-"`
	// Chain is the explanation in sentences, from the request for the informer to its next action.
	Chain []Step `json:"chain"`
}

// Step is one part of an explanation.
type Step struct {
	// About is the subject of Text.
	About StepKind `json:"about"`
	// Text is one or more sentences.
	Text string `json:"text"`
}

// StepKind is the subject of a [Step].
type StepKind string

// The steps, in the order in which each informer has them. Steps without a text are left out.
const (
	// StepWanted is about the owners of the informer.
	StepWanted StepKind = "Wanted"
	// StepServed is about the type that the server serves, and the evidence if it is gone.
	StepServed StepKind = "Served"
	// StepRequests is about the results of requests.
	StepRequests StepKind = "Requests"
	// StepCache is about the contents of the cache.
	StepCache StepKind = "Cache"
	// StepHandlers is about the event handlers.
	StepHandlers StepKind = "Handlers"
	// StepNext is about the next attempt, and what a person can do.
	StepNext StepKind = "Next"
)

// NewExplanation returns the explanation of gvr at a moment, from the statuses of its informers, the
// other versions that have informers, and the status of discovery, which may be nil.
func NewExplanation(gvr schema.GroupVersionResource, at time.Time, informers []Informer, elsewhere []schema.GroupVersionResource, d *discovery.Status) Explanation {
	e := Explanation{GVR: gvr, At: at, Informers: informers, Discovery: d}
	if len(informers) == 0 {
		e.Elsewhere = elsewhere
		e.Chain = []Step{{StepWanted, e.none()}}
	}
	for n := range informers {
		i := &informers[n]
		for _, step := range []Step{
			{StepWanted, e.wanted(i)},
			{StepServed, e.served(i)},
			{StepRequests, e.requests(i)},
			{StepCache, e.cache(i)},
			{StepHandlers, e.handlers(i)},
			{StepNext, e.next(i)},
		} {
			if step.Text != "" {
				e.Chain = append(e.Chain, step)
			}
		}
	}
	return e
}

// Name returns the resource as a reference: plural, version and group.
func (e Explanation) Name() string { return discovery.RefOf(e.GVR).String() }

// ElsewhereNames returns Elsewhere as references.
func (e Explanation) ElsewhereNames() []string { return names(e.Elsewhere) }

// String returns the sentences, one line per step.
func (e Explanation) String() string {
	lines := make([]string, len(e.Chain))
	for i, step := range e.Chain {
		lines[i] = step.Text
	}
	return strings.Join(lines, "\n")
}

// none says that there is no informer, and which other versions have one.
func (e *Explanation) none() string {
	if e.GVR.Version == "" { // Resource is the whole name
		text := "There is no informer on a resource with this name."
		if !strings.Contains(e.GVR.Resource, ".") {
			text += " A name without a group is one of the core group."
		}
		return text
	}
	text := fmt.Sprintf("There is no informer on %s.", e.Name())
	switch len(e.Elsewhere) {
	case 0:
		return text
	case 1:
		return text + fmt.Sprintf(" There is one on %s.", names(e.Elsewhere)[0])
	}
	return text + fmt.Sprintf(" There are informers on %s.", list(names(e.Elsewhere)))
}

func names(gvrs []schema.GroupVersionResource) []string {
	texts := make([]string, len(gvrs))
	for i, gvr := range gvrs {
		texts[i] = discovery.RefOf(gvr).String()
	}
	return texts
}

// wanted says who requested the informer, and its state.
func (e *Explanation) wanted(i *Informer) string {
	var by []string
	if i.Pinned {
		by = append(by, "ForResource")
	}
	for _, o := range i.Owners {
		name := "without a name"
		if o.Name != "" {
			name = fmt.Sprintf("of %q", o.Name)
		}
		by = append(by, fmt.Sprintf("%s %s for %s", count(o.Leases, "lease"), name, e.since(o.Since)))
	}
	policy := ""
	if i.Ref != "" {
		policy = fmt.Sprintf(" by the name %q", i.Ref)
	}
	if i.Form != "" {
		policy += fmt.Sprintf(" as %s", i.Form)
	}
	if i.VersionPolicy != discovery.Exact() {
		policy += fmt.Sprintf(" with version policy %s", i.VersionPolicy)
	}
	state := i.Summary(e.At)
	switch {
	case len(by) > 0:
		return fmt.Sprintf("%s is requested by %s%s. State: %s.", i.Name(), list(by), policy, state)
	case i.State == StateStopped:
		return fmt.Sprintf("%s%s has no lease. State: %s.", i.Name(), policy, state)
	}
	return fmt.Sprintf("%s%s has no lease, and stops after its linger time. State: %s.", i.Name(), policy, state)
}

// served describes the answer of discovery, and the evidence that the type is gone.
func (e *Explanation) served(i *Informer) string {
	if e.Discovery == nil {
		return "The factory has no discovery: only requests show whether the type is served."
	}
	var b strings.Builder
	switch {
	case i.Evidence.Kind != "" && i.State != StateNotServed:
		fmt.Fprintf(&b, "The type may be gone: %s, seen %s ago.", i.EvidenceText(), e.since(i.Evidence.At))
	case i.Evidence.Kind != "":
		fmt.Fprintf(&b, "The type is gone: %s, seen %s ago.", i.EvidenceText(), e.since(i.Evidence.At))
	case i.Err != nil && i.Verb == "" && i.FailedObjects == 0:
		verb := "answered"
		if errors.Is(i.Err, discovery.ErrInconclusive) {
			verb = "failed"
		}
		if !i.Since.IsZero() {
			verb += " for " + e.since(i.Since)
		}
		b.WriteString(sentence(fmt.Sprintf("Discovery has %s: %v", verb, i.Err)))
	case !i.resolved():
		b.WriteString("Discovery has not answered yet.")
	default:
		fmt.Fprintf(&b, "It is served as %s.", i.ServedAs())
	}
	if i.Generation > 0 {
		fmt.Fprintf(&b, " This is generation %d of this type.", i.Generation+1)
	}
	b.WriteString(e.sources(i))
	return b.String()
}

// sources names the sources of discovery that fail.
func (e *Explanation) sources(i *Informer) string {
	switch {
	case i.State == StateStopped, i.Reason == ReasonNotStarted:
		return ""
	case !e.Discovery.Running:
		return " The resolver is not running: the informer asks discovery at intervals."
	}
	var b strings.Builder
	for _, s := range DiscoverySources(e.Discovery) {
		if s.Err != nil && s.State != discovery.SourceAbsent { // some servers have no APIServices
			fmt.Fprintf(&b, " %s can't be read: %s (%v).", s.Name, s.State, s.Err)
		}
	}
	return b.String()
}

// requests describes the results of requests.
func (e *Explanation) requests(i *Informer) string {
	switch tr := i.Traffic; {
	case i.Err != nil && i.Verb != "":
		failed := NotSyncedError{Namespace: i.notSynced().Namespace, Verb: i.Verb, Err: i.Err}
		text := failed.Problem()
		attempts := count(i.Attempts, "attempt")
		if !i.Since.IsZero() {
			attempts = "for " + e.since(i.Since) + ", " + attempts
		}
		return fmt.Sprintf("%s (%s).", strings.ToUpper(text[:1])+text[1:], attempts)
	case i.PollPeriod > 0:
		return fmt.Sprintf("The type can't be watched. It is listed%s every %s; successful so far: %s.", i.scope(), i.pollPeriod(), count(tr.Lists, "list")) + i.namespaceSentences(e.At)
	case tr.Lists+tr.Watches > 0:
		return fmt.Sprintf("Requests%s: %s and %s have succeeded.", i.scope(), count(tr.Lists, "list"), count(tr.Watches, "watch")) + i.namespaceSentences(e.At)
	case i.State == StateStopped, i.State == StateNotServed, i.Reason == ReasonNotStarted:
		return ""
	case i.Reason == ReasonQueued:
		return "The first list waits for the lists of other resources, whose number or size is limited."
	case i.State == StateStarting:
		return "The first list is not complete yet." + i.namespaceSentences(e.At)
	}
	return "No list or watch has been sent."
}

// scope describes the namespaces of requests, if they are known.
func (i *Informer) scope() string {
	switch {
	case i.Namespace != "":
		return fmt.Sprintf(" in namespace %q", i.Namespace)
	case i.Namespaces != nil:
		return " in " + count(len(i.Namespaces), "namespace")
	case i.resolved() && i.Resource.Namespaced:
		return " in all namespaces"
	}
	return ""
}

// cache describes the contents of the cache.
func (e *Explanation) cache(i *Informer) string {
	var b strings.Builder
	if i.Objects > 0 || i.Traffic.Lists > 0 {
		fmt.Fprintf(&b, "The cache has %s", count(i.Objects, "object"))
		if i.ResourceVersion != "" {
			fmt.Fprintf(&b, " at resourceVersion %s", i.ResourceVersion)
		}
		if last := i.Traffic.LastEvent; !last.IsZero() {
			fmt.Fprintf(&b, "; the last event was %s ago", e.since(last))
		}
		b.WriteString(".")
	}
	add := func(text string) { b.WriteString(" " + sentence(text)) }
	if i.Shard != nil {
		add("The informer has a part of the objects: " + i.Shard.Text())
	}
	for _, text := range i.Quarantine.sentences(e.At) {
		add(text)
	}
	if i.FailedObjects > 0 && i.Quarantine.IsZero() {
		add(fmt.Sprintf("%s: %s", i.Reason, i.failedObjects()))
	}
	if i.Flushing {
		add("It still has objects of the previous generation")
	}
	if !i.StaleSince.IsZero() {
		add(fmt.Sprintf("It may be out of date; the failure began %s ago", e.since(i.StaleSince)))
	}
	return strings.TrimSpace(b.String())
}

// handlers describes the calls of the event handlers.
func (e *Explanation) handlers(i *Informer) string {
	texts := make([]string, len(i.Handlers))
	for n, h := range i.Handlers {
		of := ""
		if h.Lease != "" {
			of = fmt.Sprintf(" of lease %q", h.Lease)
		}
		texts[n] = fmt.Sprintf("Handler %s%s: %s finished", h.Handler, of, count(h.Delivered, "call"))
		if h.Panics > 0 {
			texts[n] += fmt.Sprintf(" (%s, the last one: %s)", count(h.Panics, "panic"), h.LastPanic)
		}
		if !h.RunningSince.IsZero() {
			texts[n] += fmt.Sprintf(", one running for %s", e.since(h.RunningSince))
		}
		if h.Backlog > 0 {
			texts[n] += fmt.Sprintf(", %s waiting", count(h.Backlog, "event"))
		}
		if h.Merged > 0 {
			texts[n] += fmt.Sprintf(", %s merged with later events", count(h.Merged, "event"))
		}
		texts[n] += "."
	}
	return strings.Join(texts, " ")
}

// next describes the next attempt, and what a person can do.
func (e *Explanation) next(i *Informer) string {
	var parts []string
	switch next := i.nextRetry(e.At); {
	case i.State == StateStopped:
		return ""
	case i.State == StateNotServed:
		parts = append(parts, "No list or watch is sent until the type is served.")
	case next != "":
		parts = append(parts, fmt.Sprintf("The next attempt is in %s.", next))
	}
	if advice := i.Advice(); advice != "" {
		parts = append(parts, sentence("To do: "+advice))
	}
	for _, h := range i.Handlers {
		if h.runs(LateAfter, e.At) {
			parts = append(parts, fmt.Sprintf("To do: find out why handler %s does not return.", h.Handler))
		}
		if h.Reason != "" {
			parts = append(parts, fmt.Sprintf("To do: correct handler %s, which has panicked for %s; the log has the stack.", h.Handler, h.LastFailed))
		}
	}
	return strings.Join(parts, " ")
}

func (e *Explanation) since(when time.Time) string { return elapsed(when, e.At) }

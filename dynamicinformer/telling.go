package dynamicinformer

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typestate"
	"github.com/gvrkit/gvrkit/status"
)

// teller says in sentences how one informer does.
type teller struct {
	ResourceStatus
	at        time.Time
	discovery *discovery.Status
}

// tell returns the chain of e.
func (e *Explanation) tell() []Step {
	if len(e.Informers) == 0 {
		text := fmt.Sprintf("Nobody has asked for %s.", discovery.RefOf(e.GVR))
		if len(e.Elsewhere) > 0 {
			there := make([]string, len(e.Elsewhere))
			for i, gvr := range e.Elsewhere {
				there[i] = discovery.RefOf(gvr).String()
			}
			text += fmt.Sprintf(" There are informers on %s.", strings.Join(there, " and "))
		}
		return []Step{{StepWanted, text}}
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

func (t *teller) wanted() string {
	var who []string
	if t.Pinned {
		who = append(who, "ForResource")
	}
	for _, h := range t.Holders {
		name := "without a name"
		if h.Name != "" {
			name = fmt.Sprintf("of %q", h.Name)
		}
		who = append(who, fmt.Sprintf("%s %s for %s", count(h.Leases, "lease"), name, t.since(h.Since)))
	}
	policy := ""
	if t.Versions != (VersionPolicy{}) {
		policy = fmt.Sprintf(", version policy %s", t.Versions)
	}
	if len(who) == 0 {
		who = []string{"nobody any more, and lingers"}
	}
	return fmt.Sprintf("%s is wanted by %s%s: %s.", discovery.RefOf(t.GVR), strings.Join(who, ", "), policy, t.state())
}

func (t *teller) state() string {
	switch {
	case t.State == StateSynced && !t.Since.IsZero():
		return fmt.Sprintf("%s for %s", t.State, t.since(t.Since))
	case t.Reason == "":
		return string(t.State)
	}
	return fmt.Sprintf("%s (%s)", t.State, t.Reason)
}

// served tells what discovery has said, and what it says that by.
func (t *teller) served() string {
	if t.discovery == nil {
		return "Without discovery, its requests have to tell whether it is served."
	}
	var b strings.Builder
	switch res := t.Resource; {
	case t.Evidence.Kind != "" && t.State != StateNotServed:
		fmt.Fprintf(&b, "It may be gone: %s, seen %s ago.", evidenceText(t.Evidence), t.since(t.Evidence.At))
	case t.Evidence.Kind != "":
		fmt.Fprintf(&b, "It is gone: %s, seen %s ago.", evidenceText(t.Evidence), t.since(t.Evidence.At))
	case t.Err != nil && t.Verb == "":
		b.WriteString(sentence(fmt.Sprintf("Discovery has said for %s: %v", t.since(t.Since), t.Err)))
	case res.GVK.Kind == "":
		b.WriteString("Discovery has not said anything about it yet.")
	default:
		fmt.Fprintf(&b, "It is served as %s, kind %s, %s%s.", discovery.RefOf(res.GVR), res.GVK.Kind, scopeText(res), backingText(res))
	}
	if t.Generation > 0 {
		fmt.Fprintf(&b, " It is the %d. type of that name.", t.Generation+1)
	}
	b.WriteString(t.followed())
	return b.String()
}

func scopeText(res discovery.Resource) string {
	if res.Namespaced {
		return "in namespaces"
	}
	return "without namespaces"
}

func backingText(res discovery.Resource) string {
	switch {
	case res.CRDUID != "" && res.Terminating:
		return fmt.Sprintf(", of the CustomResourceDefinition with UID %s, which is being deleted", res.CRDUID)
	case res.CRDUID != "":
		return fmt.Sprintf(", of the CustomResourceDefinition with UID %s", res.CRDUID)
	case res.Backing == discovery.BackingAggregated:
		return ", by a server behind the API server"
	}
	return ""
}

func evidenceText(e discovery.Evidence) string {
	switch e.Kind {
	case discovery.CRDDeleted:
		return fmt.Sprintf("its CustomResourceDefinition (UID %s) was deleted", e.CRDUID)
	case discovery.NoVersionServed:
		return "its CustomResourceDefinition serves no version of it"
	}
	return "the server has left it out of what it serves"
}

// followed tells where news of types would come from, if that is not all as it should be.
func (t *teller) followed() string {
	switch {
	case t.State == StateStopped, t.Reason == ReasonNotStarted:
		return ""
	case !t.discovery.Running:
		return " The resolver does not run: the server is asked again and again."
	}
	var b strings.Builder
	for _, s := range []struct {
		name string
		discovery.SourceStatus
	}{{"CustomResourceDefinitions", t.discovery.CRDs}, {"APIServices", t.discovery.APIServices}, {"discovery documents", t.discovery.Documents}} {
		if s.Err != nil {
			fmt.Fprintf(&b, " News of %s: %s (%v).", s.name, s.State, s.Err)
		}
	}
	return b.String()
}

// requests tells how its requests go, if any has been made.
func (t *teller) requests() string {
	switch tr := t.Traffic; {
	case t.Err != nil && t.Verb != "":
		return fmt.Sprintf("It cannot %s %s: %v (%s for %s, %s).", t.Verb, status.NamespaceText(t.Namespace), t.Err, typestate.Classify(t.Err), t.since(t.Since), count(t.Attempts, "attempt"))
	case tr.Lists+tr.Watches > 0:
		text := "Requests go well"
		if t.State != StateSynced {
			text = "Requests so far"
		}
		return fmt.Sprintf("%s, %s: %s and %s were answered.", text, status.NamespaceText(t.Namespace), count(int(tr.Lists), "list"), count(int(tr.Watches), "watch")) //nolint:gosec // for people
	case t.State == StateStopped || t.Reason == ReasonNotStarted:
		return ""
	case t.State == StateStarting:
		return "Its first list has not been answered yet."
	}
	return "No request has been made for it."
}

func (t *teller) cache() string {
	if t.Objects == 0 && t.Traffic.Lists == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Its cache has %s", count(t.Objects, "object"))
	if t.ResourceVersion != "" {
		fmt.Fprintf(&b, ", up to resourceVersion %s", t.ResourceVersion)
	}
	if last := t.Traffic.LastEvent; !last.IsZero() {
		fmt.Fprintf(&b, "; the last event came %s ago", t.since(last))
	}
	if t.Flushing {
		b.WriteString("; they are of a type that is gone, and on their way out")
	}
	if !t.StaleSince.IsZero() {
		fmt.Fprintf(&b, "; it may be behind the server since %s ago", t.since(t.StaleSince))
	}
	return b.String() + "."
}

func (t *teller) handlers() string {
	texts := make([]string, len(t.Handlers))
	for i, h := range t.Handlers {
		of := ""
		if h.Lease != "" {
			of = fmt.Sprintf(" of %q", h.Lease)
		}
		texts[i] = fmt.Sprintf("Handler %s%s has been called %s", h.Handler, of, count(int(h.Delivered), "time")) //nolint:gosec // for people
		if !h.RunningSince.IsZero() {
			texts[i] += fmt.Sprintf(", is in a call for %s", t.since(h.RunningSince))
		}
		if h.Backlog > 0 {
			texts[i] += fmt.Sprintf(", %s waiting", count(h.Backlog, "event"))
		}
		texts[i] += "."
	}
	return strings.Join(texts, " ")
}

// next tells what it waits for, if it does.
func (t *teller) next() string {
	var parts []string
	switch {
	case t.State == StateStopped, t.State == StateSynced:
		return ""
	case t.Reason == ReasonNotStarted:
		return "It waits for the factory's Start."
	case t.State == StateNotServed:
		parts = append(parts, "No request is made for it until it is served.")
	case t.NextRetry.After(t.at):
		parts = append(parts, fmt.Sprintf("It is tried again in %s.", duration.HumanDuration(t.NextRetry.Sub(t.at).Round(time.Second))))
	}
	wrong := NotSyncedError{Reason: t.Reason, Verb: t.Verb, Err: t.Err}
	if advice := wrong.Advice(); advice != "" {
		parts = append(parts, sentence("To do: "+advice))
	}
	return strings.Join(parts, " ")
}

func (t *teller) since(when time.Time) string { return duration.HumanDuration(t.at.Sub(when)) }

// sentence returns text with a full stop, if it does not end as a sentence does.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// count returns n of what noun names.
func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

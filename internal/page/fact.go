package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// facts are all fields of i that have a value and are not shown beside.
func (i *Informer) facts(at time.Time) []fact {
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, plain(value)})
		}
	}
	moment := func(name string, when time.Time) {
		if !when.IsZero() {
			add(name, ago(when, at)+" ago, "+clock(when))
		}
	}
	add("State", strings.TrimSpace(i.State+" "+i.Reason))
	if i.Error == "" {
		add("Message", i.Message)
	}
	add("To do", i.Advice)
	add("Request", i.Verb)
	add("Error", i.Error)
	moment("Since", i.Since)
	if i.Attempts > 0 {
		add("Attempts", number(i.Attempts))
	}
	if next := ahead(i.NextRetry, at); next != "" {
		add("Next retry", "in "+next+", "+clock(i.NextRetry))
	}
	moment("May be behind since", i.StaleSince)
	add("Namespace", orWord(i.Namespace, "all"))
	add("Version policy", orWord(i.VersionPolicy, "Exact"))
	add("Served as", i.Served.text())
	if e := i.Evidence; e != nil {
		add("Gone", strings.TrimSpace(e.Kind+" "+e.CRDUID))
		moment("Gone since", e.At)
	}
	add("Generation", number(i.Generation))
	if i.Flushing {
		add("Flushing", "yes: the cache has objects of a type that is gone")
	}
	add("Objects", number(i.Objects))
	add("Resource version", i.ResourceVersion)
	t := &i.Traffic
	add("Answered", fmt.Sprintf("%s, %s", count(t.Lists, "list"), number(t.Watches)+" watch requests"))
	add("Failures", failures(t.Failures))
	add("Received", fmt.Sprintf("%s, %s", count(t.Events, "event"), size(t.Bytes)))
	moment("Last event", t.LastEvent)
	held := count(i.Leases, "lease")
	if i.Pinned {
		held += ", and until the end by ForResource"
	}
	add("Held by", held)
	return facts
}

func failures(counts map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, reason+" "+number(counts[reason]))
	}
	return strings.Join(parts, ", ")
}

func (s *Served) text() string {
	if s == nil {
		return ""
	}
	text := s.Name + ", kind " + s.Kind
	if s.Namespaced {
		text += ", in namespaces"
	}
	if s.Backing != "" {
		text += ", by " + s.Backing
	}
	if s.CRDUID != "" {
		text += " " + s.CRDUID
	}
	if s.Terminating {
		text += ", which is being deleted"
	}
	return text
}

// facts are where answers about types come from.
func (d *Discovery) facts(at time.Time) []fact {
	switch {
	case d == nil:
		return []fact{{"Discovery", "none: requests have to tell what is served"}}
	case !d.Running:
		return append([]fact{{"Discovery", "the resolver does not run: each question goes to the server"}}, d.asked()...)
	}
	facts := append([]fact{{"Discovery", "running, " + count(d.Types, "type") + " known"}}, d.asked()...)
	for _, s := range d.Sources {
		value := s.State
		if !s.Since.IsZero() {
			value += " for " + ago(s.Since, at)
		}
		if s.Error != "" {
			value += ": " + strings.TrimSpace(s.Verb+" "+s.Error)
		}
		facts = append(facts, fact{plain(s.Name), plain(value)})
	}
	return facts
}

// asked tells what has been asked so far, of the server and of the resolver.
func (d *Discovery) asked() []fact {
	a := d.Answers
	answers := []string{number(a.Served) + " served", number(a.NotServed) + " not served", number(a.Inconclusive) + " inconclusive", number(a.Ambiguous) + " ambiguous"}
	return []fact{{"Requests of discovery", number(d.Requests)}, {"Answers of discovery", strings.Join(answers, ", ")}}
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

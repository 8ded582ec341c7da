package statuspage

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
	moment("Since", i.Since)
	if i.FailedObjects > 0 {
		add("Failed objects", number(i.FailedObjects))
		add("Last failed", i.LastFailed)
	}
	if i.Attempts > 0 {
		add("Attempts", number(i.Attempts))
	}
	if next := ahead(i.NextRetry, at); next != "" {
		add("Next retry", "in "+next+", "+clock(i.NextRetry))
	}
	moment("May be out of date since", i.StaleSince)
	namespace := orWord(i.Namespace, "all")
	if i.Served != nil && !i.Served.Namespaced {
		namespace = "none: cluster-scoped"
	}
	add("Namespace", namespace)
	add("Version policy", orWord(i.VersionPolicy, "Exact"))
	add("Served as", i.Served.text())
	if e := i.Evidence; e != nil {
		add("Evidence of its end", strings.TrimSpace(e.Kind+" "+e.CRDUID))
		moment("Evidence since", e.At)
	}
	add("Generation", number(i.Generation+1))
	if i.Flushing {
		add("Flushing", "yes: the cache still has objects of the generation before")
	}
	add("Objects", number(i.Objects))
	add("Resource version", i.ResourceVersion)
	t := &i.Traffic
	add("Succeeded", fmt.Sprintf("%s, %s", count(t.Lists, "list"), count(t.Watches, "watch")))
	add("Failed", failures(t.Failures))
	add("Received", fmt.Sprintf("%s, %s", count(t.Events, "event"), size(t.Bytes)))
	moment("Last event", t.LastEvent)
	held := count(i.Leases, "lease")
	if i.Pinned {
		held = "ForResource, " + held
	}
	add("Requested by", held)
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
		text += ", namespaced"
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
		return []fact{{"Discovery", "none: only requests show what is served"}}
	case !d.Running:
		return append([]fact{{"Discovery", "not running: each lookup is a request to the server"}}, d.asked()...)
	}
	facts := append([]fact{{"Discovery", "running, " + count(d.Types, "type") + " known"}}, d.asked()...)
	for _, s := range d.Sources {
		value := s.State
		if !s.Since.IsZero() {
			value += " for " + ago(s.Since, at)
		}
		switch {
		case s.State == "Absent": // which its error says, too
			value = "not served by this server"
		case s.Error != "":
			value += ": "
			if s.Verb != "" {
				value += "cannot " + s.Verb + ": "
			}
			value += s.Error
		}
		facts = append(facts, fact{plain(s.Name), plain(value)})
	}
	return facts
}

// asked returns how many requests were sent, and how lookups were answered.
func (d *Discovery) asked() []fact {
	a := d.Answers
	answers := []string{number(a.Served) + " served", number(a.NotServed) + " not served", number(a.Inconclusive) + " inconclusive", number(a.Ambiguous) + " ambiguous"}
	return []fact{{"Discovery requests", number(d.Requests)}, {"Discovery answers", strings.Join(answers, ", ")}}
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

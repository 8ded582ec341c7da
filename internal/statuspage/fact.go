package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// factsOf returns the fields of i that have a value and are not displayed elsewhere.
func factsOf(i *status.Informer, at time.Time) []fact {
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
	add("State", strings.TrimSpace(string(i.State)+" "+string(i.Reason)))
	moment("Since", i.Since)
	if i.FailedObjects > 0 {
		add("Failed objects", number(i.FailedObjects))
		add("Last failed", i.LastFailed)
	}
	add("Left out", i.Quarantine.Text())
	if i.Attempts > 0 {
		add("Attempts", number(i.Attempts))
	}
	if next := ahead(i.NextRetry, at); next != "" {
		add("Next retry", "in "+next+", "+clock(i.NextRetry))
	}
	moment("May be out of date since", i.StaleSince)
	namespace := cmp.Or(i.Namespace, i.NamespacesText(), "all")
	if i.Resource.GVK.Kind != "" && !i.Resource.Namespaced {
		namespace = "none: cluster-scoped"
	}
	add("Namespace", namespace)
	if shard := i.Shard; shard != nil {
		add("Shard", shard.Text())
	}
	if i.Ref != "" {
		add("Name", i.Ref)
	}
	if i.Form != "" {
		add("Form", i.Form)
	}
	add("Version policy", i.VersionPolicy.String())
	add("Served as", i.ServedAs())
	add("Evidence of its end", i.EvidenceText())
	moment("Evidence since", i.Evidence.At)
	add("Generation", number(i.Generation+1))
	if i.Flushing {
		add("Flushing", "yes: the cache still has objects of the previous generation")
	}
	add("Objects", number(i.Objects))
	if i.CacheBytes > 0 {
		packed := ""
		if i.Packed {
			packed = ", packed"
		}
		add("Cache", size(uint64(i.CacheBytes))+" of memory"+packed)
	}
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

func failures(counts map[status.Reason]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, string(reason)+" "+number(counts[reason]))
	}
	return strings.Join(parts, ", ")
}

// discoveryFacts describes discovery and its sources.
func discoveryFacts(e *status.Explanation) []fact {
	d := e.Discovery
	if d == nil {
		return []fact{{"Discovery", "none: only requests show what is served"}}
	}
	state := "not running: each lookup is a request to the server"
	if d.Running {
		state = "running, " + count(d.Types, "type") + " known"
	}
	a := d.Answers
	answers := []string{number(a.Served) + " served", number(a.NotServed) + " not served", number(a.Inconclusive) + " inconclusive", number(a.Ambiguous) + " ambiguous"}
	facts := []fact{{"Discovery", state}, {"Discovery requests", number(d.Requests)}, {"Discovery answers", strings.Join(answers, ", ")}}
	for _, s := range status.DiscoverySources(d) {
		facts = append(facts, fact{s.Name, plain(s.Summary(e.At))})
	}
	return facts
}

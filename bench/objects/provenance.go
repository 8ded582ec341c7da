package objects

import (
	"fmt"
	"strings"
)

var (
	people = []string{
		"a.keller", "b.okafor", "c.lindqvist", "d.moreau", "e.tanaka", "f.rossi", "g.novak", "h.silva", "i.petrov", "j.murphy",
		"k.nguyen", "l.haddad", "m.schulz", "n.patel", "o.garcia", "p.jansen", "renovate[bot]", "release-bot", "release-bot", "release-bot",
	}
	actions = []string{"raise", "lower", "fix", "remove", "add", "rename", "move", "split", "pin", "revert", "document", "tune", "rotate", "disable", "enable", "clean up"}
	things  = []string{
		"connection pool", "timeout", "retry budget", "memory limit", "log level", "feature flag", "dashboard link", "probe", "cache size",
		"batch size", "consumer group", "base image", "TLS settings", "rate limit", "header", "service account", "topic name", "tracing sample rate",
	}
	reasons = []string{
		"after the incident", "for the sale", "before the migration", "as asked by security", "because of flaky tests", "to save cost",
		"until upstream is fixed", "for the new region", "as the old one is gone", "so that it can be told apart", "since nobody uses it",
	}
)

// provenance annotates what came out of a pipeline with where it came from.
func (d *draft) provenance() {
	if d.chance(.45) {
		d.annotations["deploy.example.com/commit"] = d.hex(40)
		d.annotations["deploy.example.com/pipeline"] = fmt.Sprintf("https://git.%s/%s/%s/-/pipelines/%d", d.app.domain, d.app.team, d.app.name, d.between(100_000, 9_999_999))
		d.annotations["deploy.example.com/by"] = d.pick(people...)
	}
	if d.chance(.3) {
		d.annotations["deploy.example.com/at"] = timestamp(d.settled)
	}
	if d.chance(.35) {
		d.annotations["kubernetes.io/change-cause"] = d.changeCause()
	}
	if d.chance(.3) {
		d.annotations["checksum/values"] = d.hex(64)
	}
	if d.chance(.2) {
		d.annotations["example.com/description"] = fmt.Sprintf("The %s %s of %s. Talks to %s and %s; page %s when it is down, and see https://wiki.%s/%s/%d first.",
			d.pick(subjects...), d.pick(roles...), d.app.partOf, d.pick(subjects...), d.pick(subjects...), d.pick(people...), d.app.domain, d.app.team, d.between(1000, 99_999))
	}
	if d.chance(.25) {
		d.labels["cost-center"] = fmt.Sprint(4000 + d.IntN(60)*5)
	}
}

// changeCause is what somebody wrote about a change.
func (d *draft) changeCause() string {
	var parts []string
	for range d.between(1, 3) {
		parts = append(parts, strings.Join([]string{d.pick(actions...), d.pick(subjects...), d.pick(things...), d.pick(reasons...)}, " "))
	}
	text := strings.Join(parts, "; ")
	if d.chance(.5) {
		text += fmt.Sprintf(" (%s-%d)", strings.ToUpper(d.app.partOf[:4]), d.between(100, 9999))
	}
	return text
}

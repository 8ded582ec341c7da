package main

import (
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/servers"
	"github.com/gvrkit/gvrkit/bench/systems"
)

// slowLimit is how many objects a slow server gets at most.
const slowLimit = 10_000

// step is one case to be measured.
type step struct {
	server  servers.Sort
	kind    objects.Kind
	objects int
	events  int
	systems []systems.System
}

// plan returns what the settings ask for, in the order in which it is done.
func plan(s settings) []step {
	var steps []step
	for _, server := range s.servers {
		for _, kind := range s.kinds {
			for _, n := range s.objects {
				if server.Slow && n > slowLimit {
					continue
				}
				steps = append(steps, step{
					server: server, kind: kind, objects: n, events: eventsFor(s, server), systems: systemsFor(s, server),
				})
			}
		}
	}
	return steps
}

func eventsFor(s settings, server servers.Sort) int {
	switch {
	case s.events > 0:
		return s.events
	case server.Slow:
		return 2000
	}
	return 5000
}

func systemsFor(s settings, server servers.Sort) []systems.System {
	if s.chosen || !server.Slow {
		return s.systems
	}
	var main []systems.System
	for _, system := range s.systems {
		if system.Main {
			main = append(main, system)
		}
	}
	return main
}

// work is about how long one run of the step takes, in objects and events handled.
// The objects are decoded three times: once to fill the cache, twice to check it.
func (st step) work() int { return 3*st.objects + st.events + 1000 }

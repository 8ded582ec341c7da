package discovery_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// Of two sources that don't work, none may end the other's back-off, over and over.
func TestRun_WhatNeverWorksIsAskedForSlowly(t *testing.T) {
	for _, fault := range []string{"500", "404", "410", "401", "403", "html", "emptyjson", "garbage", "endsatonce", "hang", "flaky"} {
		for name, classes := range map[string][]string{
			"watches": {"crds.watch", "apis.watch"},
			"lists":   {"crds.list", "apis.list"},
			"crds":    {"crds.watch"},
			"apis":    {"apis.watch"},
			"all":     {"crds.watch", "apis.watch", "crds.list", "apis.list", "core", "named"},
		} {
			t.Run(fmt.Sprintf("%s/%s", name, fault), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
					t.Helper()
					w.change(func() { w.byService("gadgets") })
					runFor(t, r)
					elapse(time.Minute)
					w.change(func() {
						w.cut(w.crds, true)
						w.cut(w.apis, true)
						for _, class := range classes {
							w.fault[class] = fault
						}
					})
					elapse(time.Minute) // it backs off
					w.change(func() { clear(w.counts) })
					elapse(10 * time.Minute)
					counts := map[string]int{}
					w.change(func() { counts = maps.Clone(w.counts) })
					for class, count := range counts {
						if count > 70 {
							t.Errorf("%s: %d requests in ten minutes: %v", class, count, counts)
						}
					}
				})
			})
		}
	}
}

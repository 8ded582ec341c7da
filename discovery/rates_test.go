package discovery_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
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

// What never becomes otherwise is asked for like all else in the end. News are asked for at once.
func TestRun_WhatIsExpectedInVainIsAskedForOnceAMinute(t *testing.T) {
	const metrics = "v1beta1.metrics.k8s.io"
	for name, upset := range map[string]func(w *world){
		"a CRD that is not established": func(w *world) {
			c := gadget("v1")
			c.established = false
			w.setCRD(c)
		},
		"an APIService without a server": func(w *world) {
			w.setAPI(&wapi{name: metrics, service: true})
		},
		"an APIService of which no document tells": func(w *world) {
			w.setAPI(&wapi{name: metrics, service: true})
			w.apis.objs[metrics].(*wapi).available = true // the documents are as before
		},
	} {
		for _, legacy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, legacy=%v", name, legacy), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
					t.Helper()
					w.legacy = legacy
					w.change(func() { upset(w) })
					runFor(t, r)
					w.change(func() { clear(w.counts) })
					asked := func() (count int) {
						w.change(func() {
							count = w.counts["named"]
							clear(w.counts)
						})
						return count
					}
					elapse(2 * time.Minute)
					if got := asked(); got < 4 {
						t.Errorf("%d documents in the first two minutes, want them to be expected", got)
					}
					elapse(8 * time.Minute)
					asked()
					elapse(10 * time.Minute)
					if got := asked(); got < 8 || got > 12 {
						t.Errorf("%d documents in ten minutes, want one a minute", got)
					}
					w.change(func() {
						w.lags = []time.Duration{8 * time.Second} // of documents
						w.setCRD(wcrd{name: "widgets.example.com", uid: "2", group: "example.com", plural: "widgets", kind: "Widget", versions: []string{"v1"}, established: true})
						w.setAPI(&wapi{name: "v1.example.com", auto: "true", available: true})
					})
					elapse(50 * time.Millisecond)
					if got := asked(); got != 1 {
						t.Errorf("%d documents after news, want 1", got)
					}
					elapse(7 * time.Second)
					if got := asked(); !legacy && got < 3 {
						t.Errorf("%d documents in 7 s after news, want one every 2 s", got)
					}
				})
			})
		}
	}
}

// A type that is waited for where CRDs can't be watched is asked for at the same pace for ever.
func TestRun_WhatIsWaitedForIsAskedForEveryTenSeconds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.fault["crds.watch"] = "403"
		runFor(t, r)
		defer typefacts.Of(r).Expect(gadgets.GroupResource())()
		elapse(20 * time.Minute)
		w.change(func() { clear(w.counts) })
		elapse(10 * time.Minute)
		w.change(func() {
			if got := w.counts["named"]; got < 50 || got > 70 {
				t.Errorf("%d documents in ten minutes, want one every 10 s", got)
			}
		})
	})
}

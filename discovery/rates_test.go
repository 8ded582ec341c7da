package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// Two sources that fail must not end each other's back-off.
func TestRun_RequestsThatAlwaysFailAreRare(t *testing.T) {
	for _, fault := range []string{"500", "404", "410", "401", "403", "html", "emptyjson", "garbage", "endsatonce", "reset", "hang", "flaky"} {
		for name, classes := range map[string][]string{
			"watches": {"crds.watch", "apis.watch"},
			"lists":   {"crds.list", "apis.list"},
			"crds":    {"crds.watch"},
			"apis":    {"apis.watch"},
			"all":     {"crds.watch", "apis.watch", "crds.list", "apis.list", "core", "named"},
		} {
			t.Run(fmt.Sprintf("%s/%s", name, fault), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
					t.Helper()
					w.update(func() { w.serveByService("gadgets") })
					runFor(t, r)
					sleep(time.Minute)
					w.update(func() {
						w.endWatches(w.crds, true)
						w.endWatches(w.apis, true)
						for _, class := range classes {
							w.fault[class] = fault
						}
					})
					sleep(time.Minute) // it backs off
					w.update(func() { clear(w.counts) })
					sleep(10 * time.Minute)
					counts := map[string]int{}
					w.update(func() { counts = maps.Clone(w.counts) })
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

// every calls do each period, until the test ends.
func (w *memoryServer) every(t *testing.T, period time.Duration, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(period):
				w.update(do)
			}
		}
	})
}

// An object that changes without end is read at most five times a second, after a burst.
func TestRun_ReadsAreRareIfAnObjectChangesWithoutEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.serveByService("gadgets") })
		runFor(t, r)
		changes := 0
		w.every(t, 20*time.Millisecond, func() {
			changes++
			w.setAPI(&apiServiceObject{name: gadgetsService, service: true, server: strconv.Itoa(changes), available: true})
		})
		sleep(time.Minute) // the burst
		w.update(func() { clear(w.counts) })
		sleep(time.Minute)
		w.update(func() {
			if got := w.counts["apis.get"]; got < 250 || got > 310 {
				t.Errorf("%d reads in a minute, after %d changes: %v", got, changes, w.counts)
			}
		})
	})
}

// Events during a short watch make no difference.
func TestRun_AShortWatchIsOpenedLessAndLessOften(t *testing.T) {
	for name, upset := range map[string]func(t *testing.T, w *memoryServer){
		"its connection is reset": func(_ *testing.T, w *memoryServer) { w.update(func() { w.fault["crds.watch"] = "reset" }) },
		"it has nothing to tell":  func(_ *testing.T, w *memoryServer) { w.update(func() { w.fault["crds.watch"] = "endsatonce" }) },
		"it ends after three seconds": func(t *testing.T, w *memoryServer) {
			t.Helper()
			w.every(t, 3*time.Second, func() { w.endWatches(w.crds, false) })
		},
		"it ends after an event": func(t *testing.T, w *memoryServer) {
			t.Helper()
			labels := 0
			w.every(t, 50*time.Millisecond, func() {
				if len(w.crds.streams) > 0 {
					labels++
					c := gadget("v1")
					c.labels = map[string]string{"x": strconv.Itoa(labels)}
					w.setCRD(c)
					w.endWatches(w.crds, false)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				runFor(t, r)
				sleep(time.Minute)
				upset(t, w)
				w.update(func() { w.endWatches(w.crds, false) })
				sleep(5 * time.Minute) // it backs off
				w.update(func() { clear(w.counts) })
				sleep(10 * time.Minute)
				w.update(func() {
					if got := w.counts["crds.watch"]; got < 15 || got > 30 {
						t.Errorf("%d watches in ten minutes, want one every 30 s: %v", got, w.counts)
					}
					if got := w.counts["named"]; got > 50 {
						t.Errorf("%d documents in ten minutes: %v", got, w.counts)
					}
				})
			})
		})
	}
}

// The normal end of a watch is not a failure, and a watch that works ends the back-off. If the server ends it early, a list of one object
// shows that versions have not gone back.
func TestRun_AWatchThatWorkedIsOpenedAgainAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.fault["crds.watch"] = "reset"
		runFor(t, r)
		sleep(10 * time.Minute)
		w.update(func() { clear(w.fault) })
		sleep(time.Minute)
		for range 10 {
			w.update(func() {
				clear(w.counts)
				w.endWatches(w.crds, false)
			})
			sleep(10 * time.Millisecond)
			w.update(func() {
				if w.counts["crds.watch"] != 1 || w.counts["crds.list"] != 1 {
					t.Errorf("after the end of a watch: %v", w.counts)
				}
			})
			sleep(6 * time.Second)
		}
		for _, fault := range []string{"reset", "endsatonce"} {
			w.update(func() {
				w.fault["crds.watch"] = fault
				w.endWatches(w.crds, false)
			})
			sleep(400 * time.Millisecond)
			w.update(func() {
				if got := w.counts["crds.watch"]; got < 2 {
					t.Errorf("%s: %d watches after the first that fails, want another soon: %v", fault, got, w.counts)
				}
			})
			sleep(10 * time.Minute)
			w.update(func() { clear(w.fault) })
			sleep(time.Minute)
			w.update(func() { clear(w.counts) })
		}
	})
}

// Changes are requested at once.
func TestRun_DocumentsThatDoNotChangeAsExpectedAreRequestedOnceAMinute(t *testing.T) {
	const metrics = "v1beta1.metrics.k8s.io"
	for name, upset := range map[string]func(w *memoryServer){
		"a CRD that is not established": func(w *memoryServer) {
			c := gadget("v1")
			c.established = false
			w.setCRD(c)
		},
		"an APIService without a server": func(w *memoryServer) {
			w.setAPI(&apiServiceObject{name: metrics, service: true})
		},
		"an APIService of which no document tells": func(w *memoryServer) {
			w.setAPI(&apiServiceObject{name: metrics, service: true})
			w.apis.objs[metrics].(*apiServiceObject).available = true // the documents are as before
		},
	} {
		for _, legacy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, legacy=%v", name, legacy), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
					t.Helper()
					w.legacy = legacy
					w.update(func() { upset(w) })
					runFor(t, r)
					w.update(func() { clear(w.counts) })
					asked := func() (count int) {
						w.update(func() {
							count = w.counts["named"]
							clear(w.counts)
						})
						return count
					}
					sleep(2 * time.Minute)
					least := 4
					if legacy { // 50 s apart, more or less
						least = 3
					}
					if got := asked(); got < least {
						t.Errorf("%d documents in the first two minutes, want them to be expected", got)
					}
					sleep(8 * time.Minute)
					asked()
					sleep(10 * time.Minute)
					if got := asked(); got < 8 || got > 12 {
						t.Errorf("%d documents in ten minutes, want one a minute", got)
					}
					w.update(func() {
						w.lags = []time.Duration{8 * time.Second} // of documents
						w.setCRD(crdObject{name: "widgets.example.com", uid: "2", group: "example.com", plural: "widgets", kind: "Widget", versions: []string{"v1"}, established: true})
						w.setAPI(&apiServiceObject{name: "v1.example.com", auto: "true", available: true})
					})
					sleep(150 * time.Millisecond) // longer than the gap after a request that was sent just before
					if got := asked(); got < 1 || got > 2 {
						t.Errorf("%d documents after news, want 1 or 2", got)
					}
					sleep(7 * time.Second)
					if got := asked(); !legacy && got < 3 {
						t.Errorf("%d documents in 7 s after news, want one every 2 s", got)
					}
				})
			})
		}
	}
}

// A group version becomes stale, and nothing else changes: its last known types stay.
func TestRun_StaleDocumentsAreRequestedLessAndLessOften(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() { w.serveByService("gadgets") })
		sleep(10 * time.Minute)
		w.update(func() {
			w.apis.objs[gadgetsService].(*apiServiceObject).available = false // watches send nothing
			w.snapshot()
			clear(w.counts)
		})
		for _, span := range []struct {
			during      time.Duration
			least, most int
		}{
			{2 * time.Minute, 5, 65},  // the first one is within a minute; then every 2 s or 10 s
			{8 * time.Minute, 20, 65}, // every 10 s for five minutes or more
			{5 * time.Minute, 0, 30},
			{10 * time.Minute, 8, 12}, // every minute
		} {
			sleep(span.during)
			w.update(func() {
				if got := w.counts["named"]; got < span.least || got > span.most {
					t.Errorf("%d documents in %v, want %d to %d", got, span.during, span.least, span.most)
				}
				clear(w.counts)
			})
		}
		wantEvents(t, next)
		if got, err := r.ResolveGVR(t.Context(), gadgets); err != nil || got.GVR != gadgets {
			t.Errorf("ResolveGVR = %v, %v", got.GVR, err)
		}
	})
}

// If CRDs and APIServices can't be watched, a poll is two conditional requests, once a minute while all
// awaited types are served.
func TestRun_PollsAreFrequentOnlyWhileAnAwaitedTypeIsAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		for _, class := range []string{"crds.list", "crds.watch", "crds.get", "apis.list", "apis.watch", "apis.get"} {
			w.fault[class] = "403"
		}
		w.setCRD(gadget("v1"))
		runFor(t, r)
		polls := func(during time.Duration, least, most int) {
			t.Helper()
			w.update(func() { clear(w.counts); w.unchanged = 0 })
			sleep(during)
			w.update(func() {
				core, named := w.counts["core"], w.counts["named"]
				if core != named || named < least || named > most {
					t.Errorf("%d and %d requests for documents in %v, want %d to %d each: %v", core, named, during, least, most, w.counts)
				}
				if w.unchanged != core+named {
					t.Errorf("%d of %d requests got a document that had not changed", core+named-w.unchanged, core+named)
				}
			})
		}
		sleep(5 * time.Minute) // what is new may change again
		polls(10*time.Minute, 9, 11)
		absent := typefacts.Of(r).Expect(widgets.GroupResource())
		polls(58*time.Second, 24, 30)
		sleep(10 * time.Second)
		polls(10*time.Minute, 50, 70)
		absent()
		sleep(time.Minute)
		polls(9*time.Minute, 8, 10)
		w.update(func() {
			for _, class := range []string{"crds.list", "apis.list"} { // one every 4.5 to 5.5 minutes
				if lists := w.counts[class]; lists > 2 {
					t.Errorf("%s: %d forbidden lists in nine minutes, want at most 2", class, lists)
				}
			}
		})
	})
}

// A poll notices a new type late. Without a watch, an answer NotServed is therefore from memory for some seconds only; with watches, until
// the next change.
func TestRun_ANotServedAnswerIsRepeatedFromMemoryForAShortTimeWithoutAWatch(t *testing.T) {
	gr := gadgets.GroupResource()
	newGadgets := func(w *memoryServer) { w.setCRD(gadget("v1")) }
	for name, ask := range map[string]func(ctx context.Context, r *discovery.Resolver) error{
		"Resolve": func(ctx context.Context, r *discovery.Resolver) error {
			_, err := r.Resolve(ctx, "gadgets")
			return err
		},
		"ResolveGVR": func(ctx context.Context, r *discovery.Resolver) error {
			_, err := r.ResolveGVR(ctx, gadgets)
			return err
		},
		"RESTMapping": func(_ context.Context, r *discovery.Resolver) error {
			_, err := r.RESTMapper().ResourceFor(gr.WithVersion(""))
			return err
		},
	} {
		for _, tc := range []struct {
			name, forbidden string // a class of requests
			legacy          bool
			memory          time.Duration
			come            func(w *memoryServer) // without an event
		}{
			{"CRDs are forbidden", "crds", false, 2 * time.Second, newGadgets},
			{"APIServices are forbidden", "apis", false, 2 * time.Second, func(w *memoryServer) { w.serveByService("bolts", "gadgets") }},
			{"CRDs are forbidden, legacy documents", "crds", true, 10 * time.Second, newGadgets},
			{"nothing is forbidden", "", false, 40 * time.Second, nil},
		} {
			t.Run(name+", "+tc.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
					t.Helper()
					w.legacy = tc.legacy
					for _, request := range []string{".list", ".watch", ".get"} {
						w.fault[tc.forbidden+request] = "403"
					}
					w.update(func() { // the group version is served before
						w.setCRD(crdObject{name: "bolts.example.org", uid: "2", group: "example.org", plural: "bolts", kind: "Bolt", versions: []string{"v1"}, established: true})
					})
					sleep(time.Minute)
					runFor(t, r)
					sleep(3 * time.Minute)
					var polled int // the last request for documents was between 10 and 11 s ago
					for asked := 0; asked == polled; w.update(func() { asked = w.counts["named"] }) {
						w.update(func() { polled = w.counts["named"] })
						sleep(time.Second)
					}
					sleep(10 * time.Second)
					soFar := func() (requests int) {
						w.update(func() { requests = w.counts["named"] + w.counts["version"] })
						return requests
					}
					asked := func() int {
						t.Helper()
						before := soFar()
						if err := ask(t.Context(), r); !errors.Is(err, discovery.ErrNotServed) {
							t.Errorf("%v, want ErrNotServed", err)
						}
						return soFar() - before
					}
					if asked() == 0 {
						t.Error("the first question sends no request")
					}
					sleep(tc.memory - 100*time.Millisecond)
					if got := asked(); got > 0 {
						t.Errorf("%d requests for the same question before %v", got, tc.memory)
					}
					if tc.come == nil {
						return
					}
					w.update(func() { tc.come(w) })
					sleep(200 * time.Millisecond)
					if err := ask(t.Context(), r); err != nil {
						t.Errorf("after %v: %v", tc.memory, err)
					}
				})
			})
		}
	}
}

// A caller that waits again after some time is a new one, also if no document was requested meanwhile.
func TestRun_ATypeThatIsAwaitedAgainIsRequestedEveryTwoSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		for _, class := range []string{"crds.list", "crds.watch", "crds.get", "apis.list", "apis.watch", "apis.get"} {
			w.fault[class] = "403"
		}
		runFor(t, r)
		sleep(5 * time.Minute)
		absent := typefacts.Of(r).Expect(widgets.GroupResource())
		sleep(85 * time.Second)
		absent()
		sleep(40 * time.Second) // there is one request in the first 11 s, and another one after 54 s
		defer typefacts.Of(r).Expect(widgets.GroupResource())()
		w.update(func() { clear(w.counts) })
		sleep(50 * time.Second)
		w.update(func() {
			if got := w.counts["named"]; got < 20 || got > 30 {
				t.Errorf("%d documents in 50 s, want one every 2 s", got)
			}
		})
	})
}

// A watch that is forbidden does not make the lists less frequent, if they are permitted: they have news.
func TestRun_TheIntervalOfForbiddenListsGrows(t *testing.T) {
	lists := func(t *testing.T, w *memoryServer, since int, during time.Duration, least, most int) {
		t.Helper()
		sleep(during)
		w.update(func() {
			if got := w.counts["crds.list"] - since; got < least || got > most {
				t.Errorf("%d lists in %v, want %d to %d", got, during, least, most)
			}
		})
	}
	listsSoFar := func(w *memoryServer) (lists int) {
		w.update(func() { lists = w.counts["crds.list"] })
		return lists
	}
	for _, tc := range []struct {
		fault, request string
		later          int // lists in ten minutes
	}{
		{"403", "crds.list", 2},
		{"403", "crds.watch", 20},
		{"401", "crds.list", 20},
	} {
		t.Run(tc.fault+" "+tc.request, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.fault[tc.request] = tc.fault
				runFor(t, r)
				lists(t, w, 0, 40*time.Second, 5, 5) // after 0, 2, 6, 14 and 30 s
				sleep(10 * time.Minute)
				lists(t, w, listsSoFar(w), 10*time.Minute, tc.later-1, tc.later+2)
				w.update(func() { clear(w.fault) })
				sleep(330 * time.Second)
				if got := r.Status().CRDs.State; got != discovery.SourceCurrent {
					t.Errorf("CRDs are %s after they are permitted", got)
				}
				w.update(func() {
					w.fault[tc.request] = tc.fault
					w.endWatches(w.crds, true)
				})
				sleep(time.Second)
				lists(t, w, listsSoFar(w), 40*time.Second, 4, 4) // the first intervals again
			})
		})
	}
}

// A server that starts may respond NotFound to the first lists of CRDs. A server without CRDs always does.
func TestRun_TheIntervalOfListsThatAreNotFoundGrows(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		soFar := func() (lists int) {
			w.update(func() { lists = w.counts["crds.list"] })
			return lists
		}
		w.update(func() {
			w.dropAPI("v1.apiextensions.k8s.io")
			w.fault["crds.list"] = "404"
		})
		runFor(t, r)
		sleep(40 * time.Second)
		if got := soFar(); got != 5 { // after 0, 2, 6, 14 and 30 s
			t.Errorf("%d lists in 40 s, want 5", got)
		}
		if got := r.Status().CRDs.State; got != discovery.SourceAbsent {
			t.Errorf("CRDs are %s", got)
		}
		sleep(2 * time.Minute)
		before := soFar()
		sleep(10 * time.Minute)
		if got := soFar() - before; got < 8 || got > 12 {
			t.Errorf("%d lists in ten minutes, want one a minute", got)
		}
	})
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.fault["crds.list"] = "404"
		runFor(t, r)
		sleep(time.Second)
		w.update(func() { clear(w.fault) })
		sleep(3*time.Second + 100*time.Millisecond) // a second pause takes 1 to 3 s, if documents were known before the first list
		if got := r.Status().CRDs.State; got != discovery.SourceCurrent {
			t.Errorf("CRDs are %s after 3 s of a server that serves them", got)
		}
	})
}

// If CRDs can't be watched, the requests for an awaited type do not become less frequent.
func TestRun_AnAwaitedTypeIsRequestedEveryTenSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.fault["crds.watch"] = "403"
		runFor(t, r)
		defer typefacts.Of(r).Expect(gadgets.GroupResource())()
		sleep(20 * time.Minute)
		w.update(func() { clear(w.counts) })
		sleep(10 * time.Minute)
		w.update(func() {
			if got := w.counts["named"]; got < 50 || got > 70 {
				t.Errorf("%d documents in ten minutes, want one every 10 s", got)
			}
		})
	})
}

// The first document will list the CRDs. It may be late, or fail.
func TestRun_ReadsNoCRDBeforeADocumentHasTheNamedGroups(t *testing.T) {
	for _, fault := range []string{"hang", "503"} {
		t.Run(fault, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() {
					for i := range 50 {
						plural := fmt.Sprintf("gadgets%d", i)
						w.setCRD(crdObject{
							name: plural + ".example.org", uid: w.uid(), group: "example.org", plural: plural, kind: "Gadget",
							versions: []string{"v1"}, established: true,
						})
					}
				})
				sleep(time.Minute)
				w.update(func() { w.fault["named"] = fault })
				runFor(t, r)
				sleep(20 * time.Second)
				w.update(func() { clear(w.fault) })
				sleep(time.Minute)
				w.update(func() {
					if got := w.counts["crds.get"]; got > 0 {
						t.Errorf("%d reads, want none", got)
					}
				})
				if _, err := r.Resolve(t.Context(), "gadgets7"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server may deny /apis for good. Then only the CRDs have their types.
func TestRun_ReadsCRDsIfNoDocumentHasTheNamedGroups(t *testing.T) {
	for _, fault := range []string{"403", "503"} {
		t.Run(fault, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() {
					w.setCRD(gadget("v1"))
					w.fault["named"] = fault
				})
				runFor(t, r)
				sleep(5 * time.Minute)
				for _, name := range []string{"gadgets", "Gadget.v1.example.org"} {
					if res, err := r.Resolve(t.Context(), name); err != nil || res.GVR != gadgets {
						t.Errorf("Resolve %s: %v, %v; want %v", name, res.GVR, err, gadgets)
					}
				}
				if res, err := r.ResolveGVK(t.Context(), gadgets.GroupVersion().WithKind("Gadget")); err != nil || res.GVR != gadgets {
					t.Errorf("ResolveGVK: %v, %v; want %v", res.GVR, err, gadgets)
				}
			})
		})
	}
}

// The limit is one of questions: it does not delay the documents that Run requests.
func TestRun_TheLimitOfQuestionsDoesNotDelayDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryServer(1)
		r, err := discovery.NewForConfig(&rest.Config{Host: "http://server", Transport: w}, discovery.WithUnknownRate(.05, 1))
		if err != nil {
			t.Fatal(err)
		}
		next, stop := started(t, w, r, func() { w.fault["crds.get"] = "403" })
		defer stop()
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, name := range []string{"bolts.v9", "nuts.v9"} {
			wg.Go(func() { _, _ = r.Resolve(t.Context(), name) })
			sleep(100 * time.Millisecond)
		}
		w.update(func() {
			w.setCRD(gadget("v1"))
			w.setAPI(&apiServiceObject{name: gadgetsService, auto: "true", available: true})
		})
		sleep(3 * time.Second)
		wantEvents(t, next, "Added gadgets.v1.example.org")
	})
}

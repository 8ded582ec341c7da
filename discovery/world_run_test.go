package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
)

// inBubble runs test in a bubble, with a server in memory and a resolver of it.
func inBubble(t *testing.T, test func(t *testing.T, w *memoryServer, r *discovery.Resolver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryServer(1)
		r, err := discovery.NewForConfig(&rest.Config{Host: "http://server", Transport: w})
		if err != nil {
			t.Fatal(err)
		}
		test(t, w, r)
	})
}

// runFor runs r until stop is called, or the test ends.
func runFor(t *testing.T, r *discovery.Resolver) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// recordEvents subscribes, and returns a function that returns the events since its last call.
func recordEvents(t *testing.T, r *discovery.Resolver) func() []string {
	t.Helper()
	return recordEventsWith(t.Context(), t, r)
}

func recordEventsWith(ctx context.Context, t *testing.T, r *discovery.Resolver) func() []string {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		texts []string
	)
	wg.Go(func() {
		for event := range r.Subscribe(ctx) {
			mu.Lock()
			texts = append(texts, event.String())
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return func() []string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		out := texts
		texts = nil
		return out
	}
}

// started sets up the server, runs r for a minute, and returns the function of heard, without the
// events so far.
func started(t *testing.T, w *memoryServer, r *discovery.Resolver, setUp func()) (next func() []string, stop func()) {
	t.Helper()
	w.update(setUp)
	sleep(3 * time.Second)
	next = recordEvents(t, r)
	stop = runFor(t, r)
	sleep(time.Minute)
	next()
	return next, stop
}

// wantEvents checks the events since the last call of next.
func wantEvents(t *testing.T, next func() []string, want ...string) {
	t.Helper()
	if got := next(); !slices.Equal(got, want) {
		t.Errorf("events: %q, want %q", got, want)
	}
}

// sleep waits for d in a bubble.
func sleep(d time.Duration) { time.Sleep(d) }

// update changes the server.
func (w *memoryServer) update(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

// gadget returns an established CRD.
func gadget(versions ...string) crdObject {
	return crdObject{name: gadgetsCRD, uid: "1", group: "example.org", plural: "gadgets", kind: "Gadget", versions: versions, established: true, namespaced: true}
}

// A CRD may be deleted between two runs, and CRDs may be forbidden during the second one.
func TestRun_ACRDThatIsDeletedBetweenRunsIsDoubted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
		stop()
		w.update(func() {
			w.dropCRD(gadgetsCRD)
			for _, class := range []string{"crds.list", "apis.list"} {
				w.fault[class] = "403"
			}
		})
		sleep(3 * time.Second)
		next()
		runFor(t, r)
		sleep(time.Minute)
		wantEvents(t, next, "Removed gadgets.v1.example.org (NotListed)")
	})
}

// CRDs are forbidden, and a type changes to a version that can't be read, or whose APIService is not known yet.
func TestRun_ATypeThatMayHaveAnotherVersionStays(t *testing.T) {
	for name, fail := range map[string]func(w *memoryServer){
		"document":   func(w *memoryServer) { w.legacy, w.fault["version"] = true, "500" },
		"APIService": func(w *memoryServer) { clear(w.apis.streams) }, // they have no events any more
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, _ := started(t, w, r, func() {
					w.fault["crds.list"] = "403"
					w.setCRD(gadget("v2"))
				})
				w.update(func() {
					fail(w)
					w.setCRD(gadget("v1"))
				})
				sleep(time.Minute)
				wantEvents(t, next)
				w.update(func() { clear(w.fault) })
				sleep(5 * time.Minute)
				wantEvents(t, next, "Changed gadgets.v1.example.org [Versions]")
			})
		})
	}
}

// The deletion of an APIService begins the doubt, also if it is seen after a document that can't be read. One later document that can be read
// ends it: no event says that the former version is still served beside the new one.
func TestEvidence_TheDeletionOfAnAPIServiceCountsWhileDocumentsFail(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() {
			w.fault["crds.list"] = "403"
			w.setCRD(gadget("v2"))
		})
		var caughtUp func()
		w.update(func() {
			w.legacy, w.fault["version"] = true, "500"
			caughtUp = w.delayEvents(w.apis)
			w.setCRD(gadget("v1"))
		})
		sleep(2 * time.Minute) // a document is requested each minute
		w.update(caughtUp)
		sleep(time.Minute)
		wantEvents(t, next)
		w.update(func() { clear(w.fault) })
		sleep(5 * time.Minute)
		wantEvents(t, next, "Changed gadgets.v1.example.org [Versions]")
	})
}

// An APIService that is created again ends the doubt: one document that can be read is no evidence any more, since it may be of a server that is
// behind.
func TestEvidence_AnAPIServiceThatIsCreatedAgainEndsTheDoubt(t *testing.T) {
	for name, late := range map[string]bool{"its deletion is seen at once": false, "its deletion is seen while documents fail": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, _ := started(t, w, r, func() {
					w.fault["crds.list"] = "403"
					w.setCRD(gadget("v2"))
				})
				sleep(10 * time.Second) // no document is in progress
				caughtUp := func() {}
				w.update(func() {
					w.legacy, w.fault["version"] = true, "500"
					if late {
						caughtUp = w.delayEvents(w.apis)
					}
					w.setCRD(gadget("v1"))
				})
				sleep(2 * time.Minute) // a document is requested each minute
				w.update(caughtUp)
				sleep(time.Minute)
				w.update(func() { w.setCRD(gadget("v1", "v2")) })
				sleep(10 * time.Second)
				wantEvents(t, next)
				w.update(func() {
					clear(w.fault)
					w.turn, w.lags = 0, []time.Duration{90 * time.Second}
				})
				for requested := false; !requested; {
					sleep(100 * time.Millisecond)
					w.update(func() { requested = w.turn > 0 })
				}
				sleep(time.Second)
				w.update(func() { w.lags = []time.Duration{0} })
				sleep(5 * time.Minute)
				wantEvents(t, next, "Changed gadgets.v2.example.org [Versions]")
			})
		})
	}
}

// Only a timeout ends a request that hangs.
func TestRun_AWatchWithoutAResponseEnds(t *testing.T) {
	for _, class := range []string{"crds.watch", "apis.watch"} {
		t.Run(class, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.fault[class] = "hang"
				runFor(t, r)
				sleep(time.Minute)
				w.update(func() {
					w.fault[class] = ""
					w.setCRD(gadget("v1"))
				})
				sleep(2 * time.Minute)
				if _, err := r.ResolveGVR(t.Context(), gadgets); err != nil {
					t.Error(err)
				}
				status := r.Status()
				if status.CRDs.State != discovery.SourceCurrent || status.APIServices.State != discovery.SourceCurrent {
					t.Errorf("%+v", status)
				}
			})
		})
	}
}

// An API server ends a watch after its timeout. Otherwise the connection hangs.
func TestRun_AnOverdueWatchEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		runFor(t, r)
		sleep(time.Minute)
		w.update(func() {
			clear(w.crds.streams) // they have no events any more
			w.setCRD(gadget("v1"))
		})
		sleep(12 * time.Minute)
		if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.CRDUID != "1" {
			t.Error(res.CRDUID, err)
		}
	})
}

// A document without one root must not count as the second document.
func TestEvidence_AFailedRootIsNotEvidence(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() {
			w.fault["crds.list"], w.fault["crds.watch"], w.fault["crds.get"] = "403", "403", "403"
			w.setCRD(gadget("v2"))
		})
		w.update(func() {
			w.fault["named"] = "500"
			w.setCRD(gadget("v1")) // its objects are the same
		})
		w.autoregister() // before a document fails: the doubt begins, and the next document that can be read ends it
		sleep(time.Minute)
		if got := next(); len(got) > 0 {
			t.Errorf("while documents fail: %q", got)
		}
		w.update(func() { w.fault["named"] = "" })
		sleep(time.Minute)
		wantEvents(t, next, "Changed gadgets.v1.example.org [Versions]")
	})
}

// After an outage, documents are requested as soon as another request succeeds that had failed.
func TestRun_DocumentsAreRequestedWhenTheServerResponds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		runFor(t, r)
		sleep(time.Minute)
		for range 3 {
			w.update(func() {
				w.endWatches(w.crds, true)
				for _, class := range []string{"crds.watch", "crds.list", "core", "named"} {
					w.fault[class] = "500"
				}
			})
			sleep(10 * time.Minute) // all back off
			w.update(func() {
				clear(w.counts)
				clear(w.fault)
				w.fault["core"], w.fault["named"] = "500", "500"
			})
			var list, named, before int
			asked := func() { w.update(func() { list, named = w.counts["crds.list"], w.counts["named"] }) }
			for list == 0 {
				before = named
				sleep(10 * time.Millisecond)
				asked()
			}
			sleep(1300 * time.Millisecond) // they may have failed a moment ago, and are paused for a second
			if asked(); named == before {
				t.Error("CRDs are listed again, and documents are not asked for")
			}
			w.update(func() { clear(w.fault) })
			sleep(time.Minute)
		}
	})
}

// A pause of a second after a failed question delays the documents by a second only.
func TestRun_APauseDoesNotRestartTheBackOff(t *testing.T) {
	for name, question := range map[string]schema.GroupResource{
		"of the named groups": {Group: "example.org", Resource: "bolts"},
		"of all groups":       {Resource: "bolts"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				runFor(t, r)
				sleep(time.Minute)
				w.update(func() {
					w.endWatches(w.crds, true)
					for _, class := range []string{"crds.watch", "crds.list", "core", "named"} {
						w.fault[class] = "500"
					}
				})
				sleep(10 * time.Minute) // all back off
				w.update(func() {
					delete(w.fault, "crds.watch")
					delete(w.fault, "crds.list")
					w.healer = "crds.list"
				})
				for faults := 1; faults > 0; w.update(func() { faults = len(w.fault) }) {
					_, _ = r.ResolveGR(t.Context(), question) // it asks for documents
					sleep(200 * time.Millisecond)
				}
				sleep(1500 * time.Millisecond)
				if status := r.Status(); status.Documents.State != discovery.SourceCurrent {
					t.Errorf("documents: %+v", status.Documents)
				}
			})
		})
	}
}

// The pause of one root may be over when the other root has responded.
func TestRun_APauseMayEndBeforeTheResponse(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		runFor(t, r)
		sleep(time.Minute)
		w.update(func() { w.fault["core"], w.fault["named"] = "hang1", "500" }) // one answers after 3 s
		for range 600 {
			_, _ = r.Resolve(t.Context(), "bolts.example.org")
			sleep(100 * time.Millisecond)
		}
		w.update(func() { clear(w.fault) })
		sleep(15 * time.Second)
		if status := r.Status(); status.Documents.State != discovery.SourceCurrent {
			t.Errorf("documents: %+v", status.Documents)
		}
	})
}

// The timeout of an http.Client would end watches, too.
func TestRun_AClientsTimeoutDoesNotEndWatches(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, _ *discovery.Resolver) {
		t.Helper()
		client := &http.Client{Transport: w, Timeout: 10 * time.Second}
		r, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://server"}, client)
		if err != nil {
			t.Fatal(err)
		}
		runFor(t, r)
		sleep(2 * time.Minute)
		w.update(func() {
			if w.counts["crds.watch"] != 1 || w.counts["apis.watch"] != 1 {
				t.Errorf("in two minutes: %v", w.counts)
			}
		})
	})
}

// An event of a CRD removes a stored refusal before documents list the type.
func TestRun_AnEventEndsAnswersInMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		runFor(t, r)
		sleep(time.Minute)
		asked := func() (count int) {
			for range 2 {
				_, _ = r.ResolveGVR(t.Context(), gadgets)
			}
			w.update(func() { count = w.counts["version"] + w.counts["crds.get"] })
			return count
		}
		if got := asked(); got != 1 {
			t.Errorf("%d requests for what is not served, want 1", got)
		}
		w.update(func() {
			w.lags = []time.Duration{8 * time.Second} // of documents
			w.setCRD(gadget("v1"))
		})
		sleep(100 * time.Millisecond)
		if got := asked(); got != 2 {
			t.Errorf("%d requests after its CRD was created, want 2", got)
		}
	})
}

func TestRun_ARemovedTypeNeedsNoRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() { w.serveByService("gadgets", "others") })
		w.update(func() { w.backends[gadgetsService] = []string{"others"}; w.snapshot() })
		sleep(2 * time.Minute)
		if got, want := next(), []string{"Removed gadgets.v1.example.org (NotListed)"}; !slices.Equal(got, want) {
			t.Fatalf("events: %q, want %q", got, want)
		}
		_, err := r.ResolveGVR(t.Context(), gadgets)
		w.update(func() {
			if !errors.Is(err, discovery.ErrNotServed) || w.counts["version"] != 0 {
				t.Errorf("%v, after %d requests", err, w.counts["version"])
			}
		})
	})
}

// Changes in quick succession are computed together: what a run makes known is at least 20 ms apart.
func TestRun_ChangesAreLearntInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.setCRD(gadget("v1")) })
		runFor(t, r)
		sleep(3 * time.Minute) // no watch ends for another two minutes
		const changes = 200
		published, last := 0, discovery.Published(r)
		for i := range changes {
			w.update(func() {
				c := gadget("v1")
				c.labels = map[string]string{"i": strconv.Itoa(i)}
				w.setCRD(c)
			})
			sleep(time.Millisecond)
			if now := discovery.Published(r); now != last {
				published, last = published+1, now
			}
		}
		if published < 5 || published > changes/20+2 { // a document may be read meanwhile
			t.Errorf("%d changes in %d ms were made known in %d steps, want one each 20 ms", changes, changes, published)
		}
	})
}

// Documents of kube-apiserver are some seconds behind a changed CRD.
func TestRun_ANewVersionIsServedThoughDocumentsAreBehind(t *testing.T) {
	v2 := gadgets.GroupResource().WithVersion("v2")
	questions := map[string]func(ctx context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error){
		"Resolve": func(ctx context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			res, err := r.Resolve(ctx, "gadgets.v2.example.org")
			return res.GVR, err
		},
		"Resolve with a kind": func(ctx context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			res, err := r.Resolve(ctx, "Gadget.v2.example.org")
			return res.GVR, err
		},
		"ResolveGVR": func(ctx context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			res, err := r.ResolveGVR(ctx, v2)
			return res.GVR, err
		},
		"ResolveGVK": func(ctx context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			res, err := r.ResolveGVK(ctx, v2.GroupVersion().WithKind("Gadget"))
			return res.GVR, err
		},
		"RESTMapping": func(_ context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			to, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v2")
			if err != nil {
				return schema.GroupVersionResource{}, err
			}
			return to.Resource, nil
		},
		"RESTMapping with two versions": func(_ context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			to, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v3", "v2")
			if err != nil {
				return schema.GroupVersionResource{}, err
			}
			return to.Resource, nil
		},
		"ResourceFor": func(_ context.Context, r *discovery.Resolver) (schema.GroupVersionResource, error) {
			return r.RESTMapper().ResourceFor(v2)
		},
	}
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, stop := started(t, w, r, func() {
					w.setCRD(gadget("v1"))
					w.setCRD(crdObject{name: "bolts.example.org", uid: "2", group: "example.org", plural: "bolts", kind: "Bolt", versions: []string{"v1"}, established: true})
				})
				defer stop()
				sleep(time.Minute)
				next()
				w.update(func() {
					w.lags = []time.Duration{8 * time.Second}
					w.setCRD(gadget("v1", "v2"))
				})
				synctest.Wait()
				if got, err := ask(t.Context(), r); err != nil || got != v2 {
					t.Errorf("%v, %v; want %v", got, err, v2)
				}
				w.update(func() { clear(w.counts) })
				if _, err := r.ResolveGVR(t.Context(), v2.GroupResource().WithVersion("v9")); !errors.Is(err, discovery.ErrNotServed) {
					t.Errorf("v9: %v, want ErrNotServed", err)
				}
				if _, err := r.ResolveGVR(t.Context(), schema.GroupVersionResource{Group: "example.org", Version: "v2", Resource: "bolts"}); !errors.Is(err, discovery.ErrNotServed) {
					t.Errorf("bolts: %v, want ErrNotServed", err)
				}
				if got := w.counts["crds.get"]; got > 0 {
					t.Errorf("%d requests for a CRD that has been read, or has not changed", got)
				}
			})
		})
	}
}

func TestRun_ANewKindIsServedThoughDocumentsAreBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		_, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
		defer stop()
		sleep(time.Minute)
		w.update(func() {
			w.lags = []time.Duration{8 * time.Second}
			w.setCRD(crdObject{name: "bolts.example.org", uid: "2", group: "example.org", plural: "bolts", kind: "Bolt", versions: []string{"v1"}, established: true})
		})
		synctest.Wait()
		to, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Bolt"})
		if err != nil || to.Resource.Resource != "bolts" {
			t.Errorf("%v, %v; want bolts", to, err)
		}
	})
}

// lacksCRDs answers the next two requests for the named groups like a server that starts and lists no CRDs yet, the second one after 6 s. The
// function that it returns checks that the second one was sent soon after the first one, and that a third one followed.
func (i *intercepted) lacksCRDs(t *testing.T) (check func()) {
	t.Helper()
	starts := newMemoryServer(1)
	var requested []time.Time
	lacking := func(req *http.Request) *http.Response {
		if classOf(req) != "named" {
			return nil
		}
		var number int
		i.update(func() {
			requested = append(requested, time.Now())
			number = len(requested)
		})
		if number > 2 {
			return nil
		}
		res, err := starts.RoundTrip(req)
		if err != nil {
			panic(err)
		}
		if number == 2 {
			sleep(6 * time.Second)
		}
		return res
	}
	i.instead.Store(&lacking)
	return func() {
		t.Helper()
		i.update(func() {
			if len(requested) < 3 || requested[1].Sub(requested[0]) > time.Second {
				t.Errorf("requests at %v, want three, the second one soon after the first", requested)
			}
		})
	}
}

// A document that is long on its way may be as old as the one before.
func TestEvidence_ADocumentThatWasRequestedSoonIsNotTheSecondOne(t *testing.T) {
	intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, i.memoryServer, r, func() {
			for _, class := range []string{"crds.list", "crds.get", "apis.list", "apis.get"} {
				i.fault[class] = "403"
			}
		})
		check := i.lacksCRDs(t)
		_, err := r.Resolve(t.Context(), "unicorns")
		checkKind(t, err, discovery.ErrNotServed)
		sleep(time.Minute)
		wantEvents(t, next)
		check()
	})
}

// Also if the CRD was read, and CRDs can't be watched any more.
func TestEvidence_ADocumentThatWasRequestedSoonDoesNotRefuteACRD(t *testing.T) {
	intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, i.memoryServer, r, func() {})
		i.update(func() {
			c := *i.crds.objs[gadgetsCRD].(*crdObject)
			c.versions = []string{"v1", "v2"}
			i.setCRD(c)
			i.lags = []time.Duration{8 * time.Second}
		})
		synctest.Wait()
		_, err := r.Resolve(t.Context(), "gadgets.v2.example.org")
		i.update(func() {
			if err != nil || i.counts["crds.get"] != 1 {
				t.Fatalf("%v; the CRD was read %d times, want once", err, i.counts["crds.get"])
			}
			i.lags = []time.Duration{0}
		})
		sleep(5 * time.Minute)
		next()
		check := i.lacksCRDs(t)
		i.update(func() {
			i.fault["crds.list"], i.fault["crds.watch"] = "503", "503"
			i.endWatches(i.crds, false)
		})
		sleep(time.Minute)
		wantEvents(t, next)
		check()
	})
}

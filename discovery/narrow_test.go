package discovery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// crdsPath and apisPath are of the CRDs and APIServices.
const (
	crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	apisPath = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// inNarrow runs test in a bubble, with a server that has the CRD of gadgets in some versions and four
// other CRDs, all a minute old, and with a resolver that runs for informers.
func inNarrow(t *testing.T, versions []string, test func(t *testing.T, w *memoryServer, r *discovery.Resolver)) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() {
			w.setCRD(gadget(versions...))
			for _, plural := range []string{"bolts", "nuts", "screws", "washers"} {
				w.setCRD(crdObject{
					name: plural + ".example.net", uid: plural, group: "example.net", plural: plural, kind: "K" + plural,
					versions: []string{"v1"}, established: true, namespaced: true,
				})
			}
		})
		sleep(time.Minute)
		w.update(func() { clear(w.counts); w.asked = nil })
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(typefacts.WithInformers(t.Context()))
		wg.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		t.Cleanup(func() {
			cancel()
			wg.Wait()
		})
		synctest.Wait()
		test(t, w, r)
	})
}

// validated returns the answer to the question of an informer on gvr.
func validated(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource) (discovery.Resource, error) {
	t.Helper()
	return r.ValidateVersion(typefacts.WithInformers(t.Context()), gvr, discovery.Exact())
}

// admit returns the answer of a narrow run about gvr.
func admit(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource) discovery.Resource {
	t.Helper()
	res, err := validated(t, r, gvr)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Status().Narrow {
		t.Fatalf("%v has widened the run", gvr)
	}
	return res
}

// recordInformerEvents is recordEvents for a factory.
func recordInformerEvents(t *testing.T, r *discovery.Resolver) func() []string {
	t.Helper()
	next := recordEventsWith(typefacts.WithInformers(t.Context()), t, r)
	synctest.Wait() // until it has subscribed
	return next
}

func example(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.net", Version: "v1", Resource: resource}
}

func (w *memoryServer) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// A program that acquires one type after the other has at most four requests before its first list.
func TestNarrow_RequestsOfTheNextTypeComeAfterTheFirstList(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		admit(t, r, gadgets)
		w.requests()
		next := make(chan error, 1)
		ctx := typefacts.WithInformers(t.Context())
		go func() { _, err := r.ValidateVersion(ctx, example("bolts"), discovery.Exact()); next <- err }()
		sleep(4 * time.Millisecond)
		if got := w.requests(); len(got) > 0 {
			t.Errorf("after 4 ms: %q", got)
		}
		sleep(10 * time.Millisecond)
		if got := w.requests(); len(got) != 3 {
			t.Errorf("after 14 ms: %q, want 3 requests", got)
		}
		if err := <-next; err != nil || !r.Status().Narrow {
			t.Errorf("the next type: %v, narrow %v", err, r.Status().Narrow)
		}
	})
}

func TestNarrow_RequestsOnlyTheTypeOfAnInformer(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		if got := w.requests(); len(got) > 0 {
			t.Errorf("requests without an informer: %q", got)
		}
		res := admit(t, r, gadgets)
		if res.GVR != gadgets || res.GVK.Kind != "Gadget" || !res.Namespaced || res.CRDUID != "1" || res.Backing != discovery.BackingCRD || len(res.Versions) > 0 {
			t.Errorf("%+v", res)
		}
		first := w.requests()
		slices.Sort(first[1:])
		if want := []string{"version /apis/example.org/v1", "list " + crdsPath + " gadgets.example.org", "list " + apisPath + " v1.example.org"}; !slices.Equal(first, want) {
			t.Errorf("at first: %q, want %q", first, want)
		}
		sleep(30 * time.Second)
		then := w.requests()
		slices.Sort(then)
		if want := []string{"watch " + crdsPath + " gadgets.example.org", "watch " + apisPath + " v1.example.org"}; !slices.Equal(then, want) {
			t.Errorf("then: %q, want %q", then, want)
		}
		s := r.Status()
		if !s.Running || s.Types != 1 || s.CRDs.State != discovery.SourceCurrent || s.APIServices.State != discovery.SourceCurrent || s.Documents.State != discovery.SourceCurrent {
			t.Errorf("status: %+v", s)
		}
		for range 3 {
			if again := admit(t, r, gadgets); again.CRDUID != "1" {
				t.Errorf("%+v", again)
			}
		}
		if got := w.requests(); len(got) > 0 {
			t.Errorf("requests for a known type: %q", got)
		}
		if got := r.Status().Answers; got.Served != 4 {
			t.Errorf("answers: %+v", got)
		}
		sleep(2 * time.Minute)
		if got := w.requests(); len(got) != 2 || got[0] != first[0] || got[1] != first[0] {
			t.Errorf("in two minutes: %q, want %q twice", got, first[0])
		}
	})
}

func TestNarrow_BuiltInTypes(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		for _, gvr := range []schema.GroupVersionResource{pods, deployments} {
			if res := admit(t, r, gvr); res.Backing != discovery.BackingBuiltIn || res.CRDUID != "" {
				t.Errorf("%+v", res)
			}
		}
		want := []string{"list " + crdsPath + " deployments.apps", "list " + apisPath + " v1.apps", "version /api/v1", "version /apis/apps/v1"}
		if got := w.requests(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("requests: %q, want %q", got, want)
		}
	})
}

// A server may have no APIServices.
func TestNarrow_WithoutAnAggregator(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.fault["apis.list"] = "404" })
		if res := admit(t, r, gadgets); res.Backing != discovery.BackingCRD || res.CRDUID != "1" {
			t.Errorf("%+v", res)
		}
		sleep(5 * time.Minute)
		if s := r.Status(); !s.Narrow || s.APIServices.State != discovery.SourceAbsent {
			t.Errorf("status: %+v", s)
		}
		w.update(func() { w.fault["apis.list"] = "" })
		sleep(2 * time.Minute)
		if r.Status().Narrow {
			t.Error("APIServices have come, and the run is narrow")
		}
	})
}

func TestNarrow_StaysNarrow(t *testing.T) {
	for name, happens := range map[string]func(t *testing.T, w *memoryServer, r *discovery.Resolver){
		"a fourth type": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			for _, gvr := range []schema.GroupVersionResource{example("bolts"), example("nuts"), pods} {
				admit(t, r, gvr)
			}
		},
		"calls without requests for documents": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_ = typefacts.Of(r).Pending(gadgets.GroupResource())
			if uid, err := typefacts.Of(r).CRDUID(t.Context(), gadgets.GroupResource()); uid != "1" || err != nil {
				t.Error(uid, err)
			}
			<-r.Running()
		},
		"the subscription of the informers": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			if got, want := recordInformerEvents(t, r)(), []string{"Added gadgets.v1.example.org"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		},
		"a caller that does not wait": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			ctx, cancel := context.WithCancel(typefacts.WithInformers(t.Context()))
			cancel()
			_, _ = r.ValidateVersion(ctx, example("bolts"), discovery.Exact())
			synctest.Wait()
		},
		"another run for informers": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			if err := r.Run(typefacts.WithInformers(t.Context())); err == nil {
				t.Error("two runs")
			}
		},
		"watches that end": func(_ *testing.T, w *memoryServer, _ *discovery.Resolver) {
			w.update(func() { w.endWatches(w.crds, false); w.endWatches(w.apis, false) })
		},
		"watches that expire": func(_ *testing.T, w *memoryServer, _ *discovery.Resolver) {
			w.update(func() { w.endWatches(w.crds, true); w.endWatches(w.apis, true) })
		},
		"the CRD's labels, and its status": func(_ *testing.T, w *memoryServer, _ *discovery.Resolver) {
			w.update(func() {
				c := gadget("v1")
				c.labels = map[string]string{"a": "b"}
				w.setCRD(c)
			})
		},
		"other CRDs": func(_ *testing.T, w *memoryServer, _ *discovery.Resolver) {
			w.update(func() { w.dropCRD("bolts.example.net") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				admit(t, r, gadgets)
				sleep(30 * time.Second)
				happens(t, w, r)
				sleep(5 * time.Minute)
				if !r.Status().Narrow || w.counts["named"]+w.counts["core"] > 0 {
					t.Errorf("the run has widened: %q", w.requests())
				}
				if res := admit(t, r, gadgets); res.CRDUID != "1" {
					t.Errorf("%+v", res)
				}
			})
		})
	}
}

// Everything unusual is left to the wide run.
func TestNarrow_Widens(t *testing.T) {
	few := func(gvrs ...schema.GroupVersionResource) func(*testing.T, *memoryServer, *discovery.Resolver) {
		return func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			for _, gvr := range gvrs {
				_, _ = validated(t, r, gvr)
			}
		}
	}
	faulty := func(class, fault string, gvr schema.GroupVersionResource) func(*testing.T, *memoryServer, *discovery.Resolver) {
		return func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.fault[class] = fault })
			_, _ = validated(t, r, gvr)
			sleep(2 * time.Minute)
			w.update(func() { clear(w.fault) })
			sleep(150 * time.Second) // a list that was forbidden is tried again after up to 141 s
		}
	}
	for name, happens := range map[string]func(t *testing.T, w *memoryServer, r *discovery.Resolver){
		"a fifth type":                few(example("bolts"), example("nuts"), example("screws"), example("washers")),
		"a type that is not there":    few(example("nails")),
		"a group that is not there":   few(widgets),
		"another version of the type": few(gadgets.GroupResource().WithVersion("v2")),
		"the preferred version": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.ValidateVersion(typefacts.WithInformers(t.Context()), gadgets, discovery.FollowPreferred())
		},
		"the first of some versions": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.ValidateVersion(typefacts.WithInformers(t.Context()), gadgets, discovery.FirstOf("v1"))
		},
		"the same question of a program": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.ValidateVersion(t.Context(), gadgets, discovery.Exact())
		},
		"a GVR": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.ResolveGVR(t.Context(), gadgets)
		},
		"a name": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.Resolve(t.Context(), "gadget")
		},
		"a kind": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.ResolveGVK(t.Context(), gadgets.GroupVersion().WithKind("Gadget"))
		},
		"a selector": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.ResolveAll(t.Context(), discovery.Selector{CRDLabels: labels.Everything()})
		},
		"whether a selector selects": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.Selects(discovery.Selector{CRDLabels: labels.Everything()}, discovery.Resource{GVR: gadgets})
		},
		"the mapper": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.RESTMapper().KindFor(gadgets)
		},
		"a subscriber": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) { t.Helper(); recordEvents(t, r) },
		"who awaits a type": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, _ = r.Await(t.Context(), gadgets)
		},
		"an informer that is answered NotFound": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			typefacts.Of(r).Expect(gadgets.GroupResource())()
		},
		"a run of a program": func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
			t.Helper()
			if err := r.Run(t.Context()); err == nil {
				t.Error("two runs")
			}
		},
		"a CRD that has just come": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				w.setCRD(crdObject{name: "nails.example.net", uid: "nails", group: "example.net", plural: "nails", kind: "Nail", versions: []string{"v1"}, established: true})
			})
			_, _ = validated(t, r, example("nails"))
		},
		"a type of another server": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				w.backends["v1.other.io"] = []string{"blocks"}
				w.setAPI(&apiServiceObject{name: "v1.other.io", service: true, available: true})
			})
			sleep(time.Minute)
			_, _ = validated(t, r, schema.GroupVersionResource{Group: "other.io", Version: "v1", Resource: "blocks"})
		},
		"a CRD without an APIService": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				w.lags = []time.Duration{5 * time.Second} // documents list the type
				w.drop(w.apis, "v1.example.net")
			})
			_, _ = validated(t, r, example("nuts"))
			if r.Status().Narrow {
				t.Error("at first the run is narrow")
			}
		},
		"a CRD behind which another server is": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				w.setCRD(crdObject{name: "clamps.shared.io", uid: "clamps", group: "shared.io", plural: "clamps", kind: "Clamp", versions: []string{"v1"}, established: true})
			})
			sleep(time.Minute)
			w.update(func() {
				w.backends["v1.shared.io"] = []string{"clamps"}
				w.setAPI(&apiServiceObject{name: "v1.shared.io", service: true, available: true})
			})
			if res, err := validated(t, r, schema.GroupVersionResource{Group: "shared.io", Version: "v1", Resource: "clamps"}); err != nil || res.Backing != discovery.BackingAggregated {
				t.Error(res, err)
			}
		},
		"a built-in type without an aggregator": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.fault["apis.list"] = "404" }) // the type may be of a CRD that has just gone
			_, _ = validated(t, r, deployments)
			if r.Status().Narrow {
				t.Error("at first the run is narrow")
			}
			w.update(func() { clear(w.fault) })
			sleep(time.Minute)
		},
		"CRDs are forbidden":             faulty("crds.list", "403", example("nuts")),
		"CRDs can't be watched":          faulty("crds.watch", "403", example("nuts")),
		"CRDs fail":                      faulty("crds.list", "500", example("nuts")),
		"CRDs hang":                      faulty("crds.list", "hang", example("nuts")),
		"APIServices are forbidden":      faulty("apis.list", "403", example("nuts")),
		"APIServices can't be watched":   faulty("apis.watch", "405", example("nuts")),
		"a CRD's list is none":           faulty("crds.list", "emptyjson", example("nuts")),
		"the group version can't be had": faulty("version", "503", example("nuts")),
		"the group version hangs":        faulty("version", "hang", example("nuts")),
		"the group version fails later":  faulty("version", "500", gadgets),
		"an APIService is lost": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.drop(w.apis, "v1.example.org") })
		},
		"an APIService is another server's": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				w.backends["v1.example.org"] = []string{"gadgets"}
				w.setAPI(&apiServiceObject{name: "v1.example.org", service: true, available: true})
			})
		},
		"the CRD has other versions": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.setCRD(gadget("v2", "v1")) })
		},
		"the CRD is being deleted": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				c := gadget("v1")
				c.terminating = true
				w.setCRD(c)
			})
		},
		"the CRD is being deleted, and is of the same generation": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				c := *w.crds.objs[gadgetsCRD].(*crdObject)
				c.terminating = true
				w.put(w.crds, gadgetsCRD, &c)
			})
		},
		"the CRD is deleted": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.dropCRD(gadgetsCRD) })
		},
		"the CRD is another one after an outage": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				clear(w.crds.streams)
				w.dropCRD(gadgetsCRD)
				c := gadget("v1")
				c.uid = "2"
				w.setCRD(c)
			})
			sleep(15 * time.Minute)
		},
		"the group version has another kind": func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.crds.objs[gadgetsCRD].(*crdObject).kind = "Gizmo"; w.snapshot() })
			sleep(2 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				admit(t, r, gadgets)
				sleep(30 * time.Second)
				happens(t, w, r)
				sleep(time.Minute)
				if r.Status().Narrow {
					t.Fatal("the run is narrow")
				}
				if s := r.Status(); s.Types < 7 || s.CRDs.State != discovery.SourceCurrent || s.APIServices.State != discovery.SourceCurrent {
					t.Errorf("status: %+v", s)
				}
				if res, err := r.Resolve(t.Context(), "bolts"); err != nil || res.CRDUID != "bolts" {
					t.Error(res, err)
				}
				w.update(func() {
					if len(w.crds.streams) != 1 || len(w.apis.streams) != 1 {
						t.Errorf("%d watches of CRDs, %d of APIServices", len(w.crds.streams), len(w.apis.streams))
					}
				})
			})
		})
	}
}

func TestNarrow_WidensForTwoVersionsOfAType(t *testing.T) {
	inNarrow(t, []string{"v2", "v1"}, func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
		t.Helper()
		admit(t, r, gadgets)
		res, err := validated(t, r, gadgets.GroupResource().WithVersion("v2"))
		if err != nil || !slices.Equal(res.Versions, []string{"v2", "v1"}) || r.Status().Narrow {
			t.Errorf("%+v, %v, narrow: %v", res, err, r.Status().Narrow)
		}
	})
}

func TestNarrow_AnswersInTimeIfARequestHangs(t *testing.T) {
	for _, class := range []string{"crds.list", "apis.list"} {
		inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() { w.fault[class] = "hang" })
			begin := time.Now()
			if _, err := validated(t, r, gadgets); err != nil {
				t.Error(class, err)
			}
			if d := time.Since(begin); d > 3*time.Second {
				t.Errorf("%s: it took %v", class, d)
			}
		})
	}
}

// Requests that are sent at the same time before there is a connection make one each.
func TestNarrow_ListsWaitForTheConnectionOfTheFirstRequest(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.fault["version"] = "hang" })
		_, _ = validated(t, r, gadgets)
		for _, asked := range w.requests() {
			if strings.HasSuffix(asked, gadgetsCRD) || strings.HasSuffix(asked, "v1.example.org") {
				t.Errorf("there was no connection: %s", asked)
			}
		}
	})
}

func TestNarrow_ATypeThatCannotBeWatchedIsRefused(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() {
			groups := w.history[len(w.history)-1].groups
			at := slices.IndexFunc(groups, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == gadgets.Group })
			groups[at].Versions[0].Resources[0].Verbs = []string{"get", "list"}
		})
		if _, err := validated(t, r, gadgets); !errors.Is(err, discovery.ErrVerbNotSupported) {
			t.Error(err)
		}
	})
}

func TestNarrow_AQuestionEndsWithTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.setCRD(gadget("v1")) })
		sleep(time.Minute)
		w.fault["crds.list"] = "hang"
		ctx, cancel := context.WithCancel(typefacts.WithInformers(t.Context()))
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		synctest.Wait()
		begin := time.Now()
		wg.Go(func() {
			if res, err := validated(t, r, gadgets); err != nil || res.CRDUID != "" {
				t.Error(res, err)
			}
		})
		sleep(100 * time.Millisecond)
		cancel()
		wg.Wait()
		if d := time.Since(begin); d > 100*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	})
}

// The responses of a server that starts, or of another one, may say that there are neither CRDs nor APIServices.
func TestNarrow_ATypeIsNotBuiltInBecauseOfNotFound(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.fault["crds.list"], w.fault["apis.list"] = "404", "404" })
		if res, err := validated(t, r, gadgets); err != nil || res.Backing != discovery.BackingUnknown {
			t.Errorf("admitted as %q, %v", res.Backing, err)
		}
		next := recordInformerEvents(t, r)
		sleep(time.Minute)
		next()
		if !r.Status().Narrow {
			t.Error("the run has widened")
		}
		w.update(func() { clear(w.fault) })
		sleep(2 * time.Minute)
		for _, event := range next() {
			if strings.Contains(event, "gadgets.v1.example.org") && event != "Changed gadgets.v1.example.org [Versions Labels]" {
				t.Error(event)
			}
		}
		if res, err := validated(t, r, gadgets); err != nil || res.Backing != discovery.BackingCRD || res.CRDUID == "" {
			t.Errorf("healed: %q %q, %v", res.Backing, res.CRDUID, err)
		}
	})
}

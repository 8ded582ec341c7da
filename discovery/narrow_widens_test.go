package discovery_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

func aboutGadgets(events []string) []string {
	return slices.DeleteFunc(events, func(e string) bool { return !strings.Contains(e, " gadgets.") })
}

// The types of the narrow run are compared with the types of the server, whatever has happened.
func TestNarrow_IsComparedWithAllTypesWhenItWidens(t *testing.T) {
	recreated := func(uid string) func(w *memoryServer) {
		return func(w *memoryServer) {
			w.dropCRD(gadgetsCRD)
			c := gadget("v1")
			c.uid = uid
			w.setCRD(c)
		}
	}
	outage := func(what func(w *memoryServer)) func(w *memoryServer) {
		return func(w *memoryServer) {
			for _, class := range []string{"core", "named", "crds.list", "apis.list"} {
				w.fault[class] = "500"
			}
			what(w)
		}
	}
	// Only the wide run knows all versions of a type. This may be the first event.
	versions, gone, added := "Changed gadgets.v1.example.org [Versions]", "Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org"
	for name, test := range map[string]struct {
		happens func(w *memoryServer)
		want    []string
	}{
		"nothing":                              {func(*memoryServer) {}, []string{versions}},
		"deleted":                              {func(w *memoryServer) { w.dropCRD(gadgetsCRD) }, []string{gone}},
		"recreated":                            {recreated("2"), []string{gone, added}},
		"recreated with its old UID":           {recreated("1"), []string{gone, added}},
		"deleted in an outage":                 {outage(func(w *memoryServer) { w.dropCRD(gadgetsCRD) }), []string{gone}},
		"recreated in an outage":               {outage(recreated("2")), []string{gone, added}},
		"recreated in an outage, with its UID": {outage(recreated("1")), []string{gone, added}},
		"recreated unheard":                    {outage(func(w *memoryServer) { clear(w.crds.streams); recreated("2")(w) }), []string{gone, added}},
		"deleted unheard":                      {outage(func(w *memoryServer) { clear(w.crds.streams); w.dropCRD(gadgetsCRD) }), []string{gone}},
		"the version is not served any more":   {func(w *memoryServer) { w.setCRD(gadget("v2")) }, []string{"Changed gadgets.v2.example.org [Versions]"}},
		"another server takes over": {func(w *memoryServer) {
			w.backends["v1.example.org"] = []string{"gadgets"}
			w.setAPI(&apiServiceObject{name: "v1.example.org", service: true, available: true})
		}, []string{"Changed gadgets.v1.example.org [Versions Backing]"}},
		"documents are behind": {func(w *memoryServer) {
			w.lags = []time.Duration{3 * time.Second}
			recreated("2")(w)
		}, []string{gone, added}},
	} {
		t.Run(name, func(t *testing.T) {
			inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				informers := recordInformerEvents(t, r)
				admit(t, r, gadgets)
				sleep(time.Minute)
				w.update(func() { test.happens(w) })
				synctest.Wait()
				program := recordEvents(t, r) // widens the run, if nothing else has
				sleep(30 * time.Second)
				w.update(func() { clear(w.fault) })
				sleep(2 * time.Minute)
				if got := aboutGadgets(informers()); !slices.Equal(got, test.want) && !slices.Equal(got, append([]string{versions}, test.want...)) {
					t.Errorf("informers: %q, want %q", got, test.want)
				}
				// A program has no event about a type before Added.
				got := aboutGadgets(program())
				if len(got) > 0 && got[0] != added && got[0] != "Added gadgets.v2.example.org" || len(got) > 1 && !slices.Equal(got[1:], test.want) {
					t.Errorf("a program: %q", got)
				}
			})
		})
	}
}

func TestNarrow_AProgramHasOneAddedOfEachType(t *testing.T) {
	inNarrow(t, []string{"v2", "v1"}, func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
		t.Helper()
		informers := recordInformerEvents(t, r)
		admit(t, r, gadgets)
		sleep(time.Minute)
		if got := informers(); len(got) > 0 {
			t.Errorf("informers: %q", got)
		}
		program := recordEvents(t, r)
		sleep(time.Minute)
		got := program()
		slices.Sort(got)
		want := []string{
			"Added apiservices.v1.apiregistration.k8s.io", "Added bolts.v1.example.net", "Added customresourcedefinitions.v1.apiextensions.k8s.io",
			"Added deployments.v1.apps", "Added gadgets.v2.example.org", "Added nuts.v1.example.net", "Added pods.v1", "Added screws.v1.example.net", "Added washers.v1.example.net",
		}
		if !slices.Equal(got, want) {
			t.Errorf("a program: %q, want %q", got, want)
		}
		if got := informers(); len(got) != len(want) || !slices.Contains(got, "Changed gadgets.v2.example.org [Versions]") {
			t.Errorf("informers: %q", got)
		}
	})
}

func TestNarrow_ARunThatAProgramWaitsForIsNotNarrow(t *testing.T) {
	for name, observe := range map[string]func(ctx context.Context, r *discovery.Resolver){
		"by a subscriber": func(ctx context.Context, r *discovery.Resolver) {
			for range r.Subscribe(ctx) { // it listens
			}
		},
		"by one who waits": func(ctx context.Context, r *discovery.Resolver) { _, _ = r.Await(ctx, gadgets) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				wg.Go(func() { observe(ctx, r) })
				synctest.Wait()
				wg.Go(func() { _ = r.Run(typefacts.WithInformers(ctx)) })
				synctest.Wait()
				if r.Status().Narrow {
					t.Error("the run is narrow")
				}
			})
		})
	}
}

// The informers of a second factory on the resolver asked the run of the first. The run of the second
// finds out what has changed for them.
func TestNarrow_TheNextRunComparesWithTheLast(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.setCRD(gadget("v1")) })
		sleep(time.Minute)
		informers := recordInformerEvents(t, r)
		var wg sync.WaitGroup
		defer wg.Wait()
		first, endFirst := context.WithCancel(typefacts.WithInformers(t.Context()))
		wg.Go(func() { _ = r.Run(first) })
		synctest.Wait()
		admit(t, r, gadgets)
		endFirst()
		sleep(time.Second)
		w.update(func() {
			w.drop(w.crds, gadgetsCRD)
			c := gadget("v1")
			c.uid = "2"
			w.setCRD(c)
		})
		second, endSecond := context.WithCancel(typefacts.WithInformers(t.Context()))
		defer endSecond()
		wg.Go(func() { _ = r.Run(second) })
		sleep(time.Minute)
		if got, want := aboutGadgets(informers()), []string{"Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org"}; !slices.Equal(got, want) {
			t.Errorf("informers: %q, want %q", got, want)
		}
		program := recordEvents(t, r)
		sleep(time.Minute)
		if got, want := aboutGadgets(program()), []string{"Added gadgets.v1.example.org"}; !slices.Equal(got, want) {
			t.Errorf("a program: %q, want %q", got, want)
		}
	})
}

// A proxy may respond NotFound when all CRDs are listed for the first time: then it is not known whether they exist.
func TestNarrow_CRDsAreNotDeletedBecauseOfNotFound(t *testing.T) {
	gone, added := "Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org"
	recreated := func(w *memoryServer) {
		w.dropCRD(gadgetsCRD)
		c := gadget("v1")
		c.uid = "2"
		w.setCRD(c)
	}
	for name, test := range map[string]struct {
		failing []string // meanwhile
		happens func(w *memoryServer)
		want    []string
	}{
		"documents fail":       {[]string{"core", "named"}, func(*memoryServer) {}, nil},
		"named groups fail":    {[]string{"named"}, func(*memoryServer) {}, nil},
		"documents work":       {nil, func(*memoryServer) {}, nil},
		"the CRD is deleted":   {[]string{"core", "named"}, func(w *memoryServer) { w.dropCRD(gadgetsCRD) }, []string{gone}},
		"the CRD is recreated": {[]string{"core", "named"}, recreated, []string{gone, added}},
	} {
		t.Run(name, func(t *testing.T) {
			inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				informers := recordInformerEvents(t, r)
				admit(t, r, gadgets)
				sleep(time.Minute)
				w.update(func() {
					w.endWatches(w.crds, true)
					w.fault["crds.list"] = "404"
					for _, class := range test.failing {
						w.fault[class] = "500"
					}
				})
				sleep(10 * time.Second)
				if s := r.Status(); s.Narrow || s.CRDs.State != discovery.SourceFailing {
					t.Errorf("narrow %v, CRDs are %s", s.Narrow, s.CRDs.State)
				}
				w.update(func() { test.happens(w) })
				sleep(20 * time.Second)
				w.update(func() { clear(w.fault) })
				sleep(2 * time.Minute)
				got := slices.DeleteFunc(aboutGadgets(informers()), func(e string) bool { return strings.HasPrefix(e, "Changed") })
				if !slices.Equal(got, test.want) {
					t.Errorf("informers: %q, want %q", got, test.want)
				}
			})
		})
	}
}

// A failed root must not count as the first of two documents, either.
func TestNarrow_AFailedRootIsNotEvidence(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		informers := recordInformerEvents(t, r)
		admit(t, r, gadgets)
		sleep(time.Minute)
		w.update(func() {
			w.endWatches(w.crds, true)
			w.fault["crds.list"], w.fault["named"] = "500", "500"
		})
		sleep(31 * time.Second)
		w.update(func() {
			delete(w.fault, "named")
			w.lags, w.turn = []time.Duration{170 * time.Second, 0, 0, 0, 0, 0}, 0 // one document of a server that is far behind
		})
		sleep(2 * time.Minute)
		for _, event := range aboutGadgets(informers()) {
			if !strings.HasPrefix(event, "Changed") {
				t.Error(event)
			}
		}
	})
}

// Documents without the named groups do not show that a server has no CRDs.
func TestNarrow_TheNextRunKeepsTypesThoughCRDsAreNotFound(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.setCRD(gadget("v1")) })
		sleep(time.Minute)
		informers := recordInformerEvents(t, r)
		var wg sync.WaitGroup
		defer wg.Wait()
		first, endFirst := context.WithCancel(typefacts.WithInformers(t.Context()))
		wg.Go(func() { _ = r.Run(first) })
		synctest.Wait()
		admit(t, r, gadgets)
		endFirst()
		sleep(time.Second)
		w.update(func() { w.fault["crds.list"], w.fault["named"] = "404", "500" })
		second, endSecond := context.WithCancel(typefacts.WithInformers(t.Context()))
		defer endSecond()
		wg.Go(func() { _ = r.Run(second) })
		sleep(30 * time.Second)
		if got := r.Status().CRDs.State; got != discovery.SourceFailing {
			t.Errorf("CRDs are %s", got)
		}
		w.update(func() { clear(w.fault) })
		sleep(2 * time.Minute)
		if got, want := aboutGadgets(informers()), []string{"Changed gadgets.v1.example.org [Versions]"}; !slices.Equal(got, want) {
			t.Errorf("informers: %q, want %q", got, want)
		}
	})
}

// A question that was asked before the run may be answered after its start.
func TestNarrow_AnOldDocumentIsNotUsedWhenTheRunWidens(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.setCRD(gadget("v1")) })
		sleep(time.Minute)
		w.update(func() { w.fault["named"] = "hang1" })
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wg.Go(func() { _, _ = r.ResolveAll(ctx, discovery.Selector{}) })
		synctest.Wait()
		wg.Go(func() { _ = r.Run(typefacts.WithInformers(ctx)) })
		sleep(10 * time.Second)
		if !r.Status().Narrow {
			t.Fatal("the run is not narrow")
		}
		w.update(func() {
			w.drop(w.crds, gadgetsCRD)
			c := gadget("v1")
			c.uid, c.namespaced = "2", false
			w.setCRD(c)
		})
		sleep(time.Minute)
		w.update(func() { w.fault["named"], w.fault["core"] = "500", "500" })
		for range 2 {
			if res, err := r.Resolve(t.Context(), "gadgets"); !errors.Is(err, discovery.ErrInconclusive) {
				t.Errorf("%+v, %v", res, err)
			}
			sleep(10 * time.Second)
		}
	})
}

func TestNarrow_SourcesConnectWhenTheRunWidens(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		admit(t, r, gadgets)
		sleep(30 * time.Second)
		w.update(func() { w.fault["crds.list"], w.fault["named"] = "hang", "hang" })
		recordEvents(t, r)
		sleep(5 * time.Second)
		if s := r.Status(); s.Narrow || s.CRDs.State != discovery.SourceConnecting || s.Documents.State != discovery.SourceConnecting {
			t.Errorf("status: %+v", s)
		}
	})
}

// The CRD is missing in a list by name, and is back with its UID when all CRDs are listed.
func TestNarrow_AMissingCRDIsDeletedAlsoIfItComesBack(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		informers := recordInformerEvents(t, r)
		admit(t, r, gadgets)
		sleep(30 * time.Second)
		w.update(func() {
			streams := maps.Clone(w.crds.streams)
			clear(w.crds.streams)      // they do not get the deletion
			w.drop(w.crds, gadgetsCRD) // its APIService goes later
			w.crds.streams = streams
			w.endWatches(w.crds, true)
			w.fault["crds.list"] = "hang1"
		})
		for r.Status().Narrow {
			sleep(100 * time.Millisecond)
		}
		w.update(func() { w.setCRD(gadget("v1")) })
		sleep(time.Minute)
		if got := aboutGadgets(informers()); !slices.Contains(got, "Removed gadgets.v1.example.org (CRDDeleted)") || got[len(got)-1] != "Added gadgets.v1.example.org" {
			t.Errorf("informers: %q", got)
		}
	})
}

// The watch of the CRD may be behind.
func TestNarrow_ANextCRDThatIsReadEndsIt(t *testing.T) {
	inNarrow(t, []string{"v1"}, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next := recordInformerEvents(t, r)
		admit(t, r, gadgets)
		sleep(time.Second)
		next()
		w.update(func() {
			clear(w.crds.streams)
			w.dropCRD(gadgetsCRD)
			again := gadget("v1")
			again.uid = "2"
			w.setCRD(again)
		})
		sleep(time.Second)
		if !r.Status().Narrow {
			t.Fatal("the run is not narrow")
		}
		if uid, err := typefacts.Of(r).CRDUID(t.Context(), gadgets.GroupResource()); uid != "2" || err != nil {
			t.Fatal(uid, err)
		}
		if r.Status().Narrow {
			t.Error("the run is still narrow")
		}
		sleep(time.Minute)
		got := slices.DeleteFunc(next(), func(event string) bool { return !strings.Contains(event, "gadgets.") }) // the wide run also adds other types
		if want := []string{"Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

package discovery_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

const gadgetsService = "v1.example.org"

// byService makes another server serve v1 of example.org, with these resources.
func (w *world) byService(plurals ...string) {
	w.backends[gadgetsService] = plurals
	w.setAPI(&wapi{name: gadgetsService, service: true, available: true})
}

// What serves a type may change while that can't be told. It is told later.
func TestEvidence_AnotherBackingIsToldAfterATimeWithoutOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.change(func() { w.byService("gadgets") })
		next := heard(t, r)
		runFor(t, r)
		elapse(time.Minute)
		next()
		w.change(func() {
			w.fault["apis.list"] = "403"
			w.cut(w.apis, true)
		})
		elapse(time.Minute)
		if state := r.Status().APIServices.State; state != discovery.SourceForbidden {
			t.Fatalf("APIServices: %s", state)
		}
		w.change(func() {
			w.setCRD(gadget("v1"))
			w.setAPI(&wapi{name: gadgetsService, auto: "true", available: true})
			w.fault["apis.list"] = ""
		})
		elapse(2 * time.Minute)
		if got, want := next(), []string{"Changed gadgets.v1.example.org [Backing]"}; !slices.Equal(got, want) {
			t.Errorf("events: %q, want %q", got, want)
		}
	})
}

// Who may list APIServices may not get them. Then a CRD of the same name may be another's.
func TestEvidence_AnAPIServiceThatCannotBeReadHasNoCRD(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.change(func() {
			w.fault["apis.get"], w.fault["crds.get"] = "403", "403"
			w.setCRD(gadget("v1"))
			w.byService("gadgets")
		})
		next := heard(t, r)
		runFor(t, r)
		elapse(time.Minute)
		if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.CRDUID != "" || res.Backing != discovery.BackingUnknown {
			t.Errorf("%q by %q, %v", res.Backing, res.CRDUID, err)
		}
		next()
		w.change(func() { w.dropCRD(gadgetsCRD) })
		elapse(3 * time.Minute)
		if got := next(); len(got) > 0 {
			t.Errorf("events: %q", got)
		}
	})
}

// Where APIServices are forbidden, documents say in the end what CRDs do not.
func TestEvidence_WhatServesATypeInPlaceOfItsCRDIsBelieved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.change(func() {
			w.fault["apis.list"] = "403"
			w.setCRD(gadget("v1"))
		})
		runFor(t, r)
		elapse(time.Minute)
		w.change(func() {
			w.byService("gadgets")
			w.dropCRD(gadgetsCRD)
		})
		elapse(2 * time.Minute)
		if _, err := r.ResolveGVR(t.Context(), gadgets); err != nil {
			t.Error(err)
		}
	})
}

// A CRD may say that a type is served while another server is asked for it.
func TestEvidence_ACRDThatDocumentsRefuteIsNotServed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.change(func() { w.fault["apis.list"] = "403" })
		runFor(t, r)
		elapse(time.Minute)
		defer typefacts.Of(r).Expect(gadgets.GroupResource())()
		w.change(func() {
			w.setCRD(gadget("v1"))
			w.byService("others")
		})
		elapse(time.Second)
		if _, err := r.ResolveGVR(t.Context(), gadgets); err != nil {
			t.Error("at first: ", err)
		}
		elapse(3 * time.Minute)
		if _, err := r.ResolveGVR(t.Context(), gadgets); !errors.Is(err, discovery.ErrNotServed) {
			t.Error(err)
		}
	})
}

// Documents that are older than the end of a CRD list its type. Whatever an APIService that is
// still to be read turns out to be, they don't mean its server.
func TestEvidence_TheEndOfACRDIsToldOnce(t *testing.T) {
	for name, upset := range map[string]func(w *world){
		"and an APIService comes": func(w *world) {},
		"and it can't be read":    func(w *world) { w.fault["apis.get"] = "403" },
		"and APIServices are forbidden": func(w *world) {
			w.fault["apis.get"], w.fault["apis.list"], w.fault["apis.watch"] = "403", "403", "403"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
				t.Helper()
				w.change(func() {
					upset(w)
					w.setCRD(gadget("v1"))
				})
				elapse(3 * time.Second)
				next := heard(t, r)
				runFor(t, r)
				elapse(time.Minute)
				next()
				w.change(func() { w.dropCRD(gadgetsCRD) })
				elapse(5 * time.Millisecond)
				w.change(func() { w.byService("others") })
				elapse(time.Minute)
				want := []string{"Removed gadgets.v1.example.org (CRDDeleted)", "Added others.v1.example.org"}
				if got := next(); !slices.Equal(got, want) {
					t.Errorf("events: %q, want %q", got, want)
				}
			})
		})
	}
}

// What serves a type after the end of its CRD may not be told, and go, too.
func TestEvidence_WhatIsNotListedAfterTheEndOfItsCRDIsNotListed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.change(func() {
			w.fault["apis.get"] = "403"
			w.setCRD(gadget("v2", "v1"))
		})
		elapse(3 * time.Second)
		next := heard(t, r)
		runFor(t, r)
		elapse(time.Minute)
		next()
		w.change(func() { w.dropCRD(gadgetsCRD) })
		elapse(5 * time.Millisecond)
		w.change(func() { w.byService("gadgets") })
		elapse(20 * time.Second)
		want := []string{"Removed gadgets.v2.example.org (CRDDeleted)", "Added gadgets.v1.example.org"}
		if got := next(); !slices.Equal(got, want) {
			t.Errorf("events: %q, want %q", got, want)
		}
		w.change(func() {
			w.setAPI(&wapi{name: "v1.example.org", auto: "true", available: true})
		})
		elapse(time.Minute)
		if got, want := next(), []string{"Removed gadgets.v1.example.org (NotListed)"}; !slices.Equal(got, want) {
			t.Errorf("events: %q, want %q", got, want)
		}
	})
}

// A run that does not know the APIServices yet goes on from what the one before knew: the end of a
// CRD says nothing of a type that another server serves.
func TestEvidence_AnotherRunRemembersWhatServesAType(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, r *discovery.Resolver) {
		t.Helper()
		w.change(func() {
			w.byService("gadgets")
			w.setCRD(gadget("v1"))
		})
		elapse(3 * time.Second)
		next := heard(t, r)
		stop := runFor(t, r)
		elapse(time.Minute)
		next()
		stop()
		w.change(func() { w.fault["apis.list"], w.fault["named"] = "hang", "hang" })
		runFor(t, r)
		elapse(time.Second)
		w.change(func() {
			w.dropCRD(gadgetsCRD)
			w.fault["named"] = ""
		})
		elapse(time.Minute)
		if got := next(); len(got) > 0 {
			t.Errorf("events: %q", got)
		}
	})
}

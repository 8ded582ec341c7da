package dynamicinformer

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/bell"
	"github.com/gvrkit/gvrkit/internal/source"
)

var ships = schema.GroupVersionResource{Group: "fleet.example.com", Version: "v1", Resource: "ships"}

// newShips returns the life of a type that discovery has been asked about.
func newShips(t *testing.T) *life {
	t.Helper()
	resolver, err := discovery.NewFromDiscovery(nothing{})
	if err != nil {
		t.Fatal(err)
	}
	return newLife(ships, Exact(), resolver, newTrouble(ships, "", &bell.Bell{}))
}

// nothing is never asked.
type nothing struct {
	clientdiscovery.DiscoveryInterfaces
}

func served(uid types.UID) discovery.Resource {
	return discovery.Resource{GVR: ships, GVK: ships.GroupVersion().WithKind("Ship"), Namespaced: true, CRDUID: uid}
}

func removed(kind discovery.EvidenceKind, uid types.UID) discovery.Event {
	return discovery.Event{Type: discovery.Removed, Resource: served(uid), Evidence: discovery.Evidence{Kind: kind, CRDUID: uid}}
}

// steps are what happens to a life, one after the other.
type steps []func(l *life)

func answer(res discovery.Resource, err error) func(*life) {
	return func(l *life) { l.settle(res, err) }
}

func tell(event discovery.Event) func(*life) { return func(l *life) { l.hear(event) } }

func TestLife_WhatFollowsFromWhat(t *testing.T) {
	var (
		notServed    error = &discovery.NotServedError{Ref: discovery.RefOf(ships)}
		otherVersion error = &discovery.NotServedError{Ref: discovery.RefOf(ships), Versions: []string{"v2"}}
		notAccepted  error = &discovery.NotEstablishedError{Ref: discovery.RefOf(ships), Condition: "NamesAccepted"}
		unknown      error = &discovery.InconclusiveError{Ref: discovery.RefOf(ships), Err: errors.New("down")}
		cannot       error = &discovery.VerbError{GVR: ships, Missing: []string{"watch"}}
		clusterWide        = served("a")
	)
	clusterWide.Namespaced = false
	for name, tc := range map[string]struct {
		steps      steps
		serving    source.Serving
		generation int
	}{
		"never asked":                        {nil, source.Held, 0},
		"served":                             {steps{answer(served("a"), nil)}, source.Served, 0},
		"not served":                         {steps{answer(discovery.Resource{}, notServed)}, source.Held, 0},
		"nobody knows":                       {steps{answer(discovery.Resource{}, unknown)}, source.Held, 0},
		"nobody knows any more":              {steps{answer(served("a"), nil), answer(discovery.Resource{}, unknown)}, source.Served, 0},
		"not served, but no evidence":        {steps{answer(served("a"), nil), answer(discovery.Resource{}, notServed)}, source.Held, 0},
		"another version":                    {steps{answer(served("a"), nil), answer(discovery.Resource{}, otherVersion)}, source.Held, 0},
		"another version, though evidence":   {steps{answer(served("a"), nil), tell(removed(discovery.NotListed, "")), answer(discovery.Resource{}, otherVersion)}, source.Held, 0},
		"names are another's":                {steps{answer(served("a"), nil), tell(removed(discovery.NotListed, "")), answer(discovery.Resource{}, notAccepted)}, source.Held, 0},
		"can't be watched":                   {steps{answer(served("a"), nil), answer(discovery.Resource{}, cannot)}, source.Held, 0},
		"another that can't be watched":      {steps{answer(served("a"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(discovery.Resource{}, cannot)}, source.Gone, 0},
		"another of another version":         {steps{answer(served("a"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(discovery.Resource{}, otherVersion)}, source.Gone, 0},
		"another that is not accepted":       {steps{answer(served("a"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(discovery.Resource{}, notAccepted)}, source.Gone, 0},
		"an answer from before the end":      {steps{answer(served("a"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(served("a"), nil), answer(discovery.Resource{}, notServed)}, source.Gone, 0},
		"CRD deleted":                        {steps{answer(served("a"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(discovery.Resource{}, notServed)}, source.Gone, 0},
		"not listed":                         {steps{answer(served("a"), nil), tell(removed(discovery.NotListed, "")), answer(discovery.Resource{}, notServed)}, source.Missing, 0},
		"no version served":                  {steps{answer(served("a"), nil), tell(removed(discovery.NoVersionServed, "a")), answer(discovery.Resource{}, notServed)}, source.Held, 0},
		"CRD deleted, evidence of another":   {steps{answer(served("b"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(discovery.Resource{}, notServed)}, source.Held, 0},
		"CRD deleted and back":               {steps{answer(served("a"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(served("b"), nil)}, source.Served, 1},
		"back before anybody said":           {steps{answer(served("a"), nil), answer(served("b"), nil)}, source.Served, 1},
		"back, and then it is said":          {steps{answer(served("a"), nil), answer(served("b"), nil), tell(removed(discovery.CRDDeleted, "a")), answer(served("b"), nil)}, source.Served, 1},
		"back, whatever it is":               {steps{answer(served(""), nil), tell(removed(discovery.CRDDeleted, "a")), answer(served(""), nil)}, source.Served, 1},
		"not listed and back":                {steps{answer(served("a"), nil), tell(removed(discovery.NotListed, "")), answer(served(""), nil)}, source.Served, 0},
		"UID not known for a while":          {steps{answer(served("a"), nil), answer(served(""), nil), answer(served("a"), nil)}, source.Served, 0},
		"UID not known for a while, another": {steps{answer(served("a"), nil), answer(served(""), nil), answer(served("b"), nil)}, source.Served, 1},
		"UID known late":                     {steps{answer(served(""), nil), answer(served("a"), nil)}, source.Served, 0},
		"another scope":                      {steps{answer(served("a"), nil), answer(clusterWide, nil)}, source.Served, 1},
		"twice":                              {steps{answer(served("a"), nil), answer(served("b"), nil), answer(served("c"), nil)}, source.Served, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newShips(t)
			for _, step := range tc.steps {
				step(l)
			}
			now, _ := l.available.Current()
			if now.Serving != tc.serving || now.Generation != tc.generation {
				t.Errorf("%s in generation %d, want %s in %d", now.Serving, now.Generation, tc.serving, tc.generation)
			}
			if got := l.evidenceOfEnd().Kind; got != "" && tc.serving == source.Served {
				t.Errorf("it is served, and there is evidence that it is not: %s", got)
			}
		})
	}
}

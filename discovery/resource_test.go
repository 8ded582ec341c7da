package discovery_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestResource_String(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for want, res := range map[string]discovery.Resource{
		"gizmos.v1.example.com (Gizmo, namespaced)":     {GVR: gv.WithResource("gizmos"), GVK: gv.WithKind("Gizmo"), Namespaced: true},
		"gizmos.v1.example.com (Gizmo, cluster-scoped)": {GVR: gv.WithResource("gizmos"), GVK: gv.WithKind("Gizmo")},
		"gizmos.v1.example.com":                         {GVR: gv.WithResource("gizmos")},
		"nodes.v1 (Node, cluster-scoped)":               {GVR: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Node"}},
	} {
		if got := fmt.Sprint(res); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestResource_HasName(t *testing.T) {
	res := discovery.Resource{GVR: gadgets, GVK: gadgets.GroupVersion().WithKind("GadgetKind"), Singular: "gadget", ShortNames: []string{"gd", "gdt"}}
	for name, want := range map[string]bool{"gadgets": true, "Gadget": true, "gadgetkind": true, "GDT": true, "gadg": false, "": false, "example.org": false} {
		if got := res.HasName(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestEvent_MayMean(t *testing.T) {
	gadget, renamed := discovery.Resource{GVR: gadgets, Singular: "gadget"}, discovery.Resource{GVR: gadgets, Singular: "gizmo"}
	several := gadget
	several.Versions = []string{"v2", "v1"}
	for name, tc := range map[string]struct {
		event discovery.Event
		want  bool
	}{
		"it has the name":      {discovery.Event{Type: discovery.Added, Resource: renamed}, true},
		"it had the name":      {discovery.Event{Type: discovery.Changed, Resource: gadget, Old: renamed}, true},
		"another version may":  {discovery.Event{Type: discovery.Removed, Resource: several}, true},
		"another version had":  {discovery.Event{Type: discovery.Changed, Resource: gadget, Old: gadget, Changes: []discovery.Change{discovery.VersionsChanged}}, true},
		"it had it in between": {discovery.Event{Type: discovery.Changed, Resource: gadget, Old: gadget, Changes: []discovery.Change{discovery.NamesChanged}}, true},
		"it has other names":   {discovery.Event{Type: discovery.Changed, Resource: gadget, Old: gadget, Changes: []discovery.Change{discovery.VerbsChanged}}, false},
	} {
		if got := tc.event.MayMean("Gizmo"); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// Names can differ between versions.
func TestRun_NamesOfAnotherVersionAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := func(name, kind string) fakecluster.Type {
			return fakecluster.Type{GVR: gadgets.GroupResource().WithVersion(name), Kind: kind}
		}
		cluster := fakecluster.New(podType, version("v1", "Gadget"), version("v2", "Gadget"))
		r := fromCluster(t, cluster)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var events []string
		running.Go(func() { _ = r.Run(ctx) })
		running.Go(func() {
			for event := range r.Subscribe(ctx) {
				if event.Resource.GVR.Resource == gadgets.Resource {
					events = append(events, event.String())
				}
			}
		})
		for _, kind := range []string{"Gadget", "Other", "Another", "Another", "Gadget"} {
			cluster.Serve(version("v2", kind))
			time.Sleep(5 * time.Minute)
		}
		cancel()
		running.Wait()
		changed := "Changed gadgets.v1.example.org [Names]"
		if want := []string{"Added gadgets.v1.example.org", changed, changed, changed}; !slices.Equal(events, want) {
			t.Errorf("events: %q, want %q", events, want)
		}
	})
}

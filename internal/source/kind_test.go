package source_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// A type that was cluster-scoped may have been replaced by one whose objects are in namespaces before discovery reports that. They would
// be deleted and added again then, and an informer that is limited to namespaces must not get the objects of others.
func TestResumableWatch_ObjectsInNamespacesOfAClusterScopedType(t *testing.T) {
	for name, limited := range map[string]func() source.Config{
		"one namespace": func() source.Config { return source.Config{Namespace: "mine"} },
		"a set":         func() source.Config { return source.Config{Namespaces: source.NewNamespaces("mine", "also")} },
		"none":          func() source.Config { return source.Config{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := limited()
				cluster, available := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}), newAvailability(source.Served)
				create(t, cluster, "ns", "a", "red")
				create(t, cluster, "mine", "b", "red")
				clusterScoped, _ := available.Current()
				clusterScoped.Namespaced = false
				available.Set(clusterScoped)
				observer := &observer{}
				limit.Client, limit.GVR, limit.Observer, limit.Availability = source.Unstructured(cluster), widgets, observer, available
				r := runInformer(t, limit)
				time.Sleep(time.Second)
				if r.HasSynced() || len(r.keys()) > 0 {
					t.Errorf("before discovery, the store has %v", r.keys())
				}
				for _, err := range observer.errors() {
					if !errors.Is(err, source.ErrWrongScope) {
						t.Errorf("error: %v", err)
					}
				}
				next := clusterScoped
				next.Namespaced, next.Generation = true, next.Generation+1
				available.Set(next)
				time.Sleep(10 * time.Second)
				want := []string{"mine/b"}
				if name == "none" {
					want = []string{"mine/b", "ns/a"}
				}
				if diff := cmp.Diff(want, r.keys()); diff != "" || !r.HasSynced() {
					t.Errorf("the store with the new scope (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

// A watch of a cluster-scoped type may send the objects of its successor.
func TestResumableWatch_EventsInNamespacesOfAClusterScopedType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, available := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}), newAvailability(source.Served)
		clusterScoped, _ := available.Current()
		clusterScoped.Namespaced = false
		available.Set(clusterScoped)
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets, Namespace: "mine", Availability: available})
		time.Sleep(time.Second)
		if !r.HasSynced() {
			t.Fatal("not synced")
		}
		create(t, cluster, "ns", "a", "red")
		time.Sleep(time.Second)
		if got := r.keys(); len(got) > 0 {
			t.Errorf("the store has %v", got)
		}
		r.stop()
	})
}

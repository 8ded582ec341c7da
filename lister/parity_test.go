package lister_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
)

// The namespace listers of client-go and ours are the same type but for the name.
var (
	_ lister.NamespaceLister        = dynamiclister.NamespaceLister(nil)
	_ dynamiclister.NamespaceLister = lister.NamespaceLister(nil)
)

// testObjects is in three places: two namespaces, and none.
func testObjects() []any {
	return []any{
		newObject("ns", "a", map[string]string{"app": "a"}),
		newObject("ns", "b", map[string]string{"app": "b"}),
		newObject("other", "a", map[string]string{"app": "a"}),
		newObject("", "cluster", map[string]string{"app": "a"}),
	}
}

// allNamespaces stands for the lister of all, which Namespace is not called on.
const allNamespaces = "(Namespace not called)"

func TestParity_List(t *testing.T) {
	indexed, unindexed, empty := newIndexer(t, testObjects()...), newUnindexed(t, testObjects()...), newIndexer(t)
	for _, tc := range []struct {
		name      string
		indexer   cache.Indexer
		namespace string
		selector  string
		want      []string // nil: a nil slice
	}{
		{"everything", indexed, allNamespaces, "", []string{"cluster", "ns/a", "ns/b", "other/a"}},
		{"selected", indexed, allNamespaces, "app=a", []string{"cluster", "ns/a", "other/a"}},
		{"by set", indexed, allNamespaces, "app in (a, b),app!=a", []string{"ns/b"}},
		{"none selected", indexed, allNamespaces, "app=c", nil},
		{"empty cache", empty, allNamespaces, "", nil},
		{"empty cache selected", empty, allNamespaces, "app=a", nil},
		{"namespace", indexed, "ns", "", []string{"ns/a", "ns/b"}},
		{"namespace selected", indexed, "ns", "app=a", []string{"ns/a"}},
		{"namespace none selected", indexed, "ns", "app=c", nil},
		{"unknown namespace", indexed, "absent", "", nil},
		{"empty namespace is all", indexed, "", "", []string{"cluster", "ns/a", "ns/b", "other/a"}},
		{"empty namespace selected", indexed, "", "app=b", []string{"ns/b"}},
		{"no index", unindexed, "ns", "", []string{"ns/a", "ns/b"}},
		{"no index selected", unindexed, "ns", "app=b", []string{"ns/b"}},
		{"no index unknown namespace", unindexed, "absent", "", nil},
		{"no index empty namespace", unindexed, "", "app=b", []string{"ns/b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, s := range []subject{upstream(tc.indexer), ours(tc.indexer)} {
				list, generic := s.lister.List, s.generic.List
				if tc.namespace != allNamespaces {
					list, generic = s.lister.Namespace(tc.namespace).List, s.generic.ByNamespace(tc.namespace).List
				}
				got, err := list(parseSelector(t, tc.selector))
				if err != nil {
					t.Errorf("%s: List: %v", s.name, err)
				}
				if diff := cmp.Diff(tc.want, keys(got)); diff != "" {
					t.Errorf("%s: List (-want +got):\n%s", s.name, diff)
				}
				// The shim makes a slice even of nothing.
				want := append([]string{}, tc.want...)
				objs, err := generic(parseSelector(t, tc.selector))
				if err != nil {
					t.Errorf("%s: List of the shim: %v", s.name, err)
				}
				if diff := cmp.Diff(want, keys(unwrap(t, objs))); diff != "" {
					t.Errorf("%s: List of the shim (-want +got):\n%s", s.name, diff)
				}
			}
		})
	}
}

func TestParity_Get(t *testing.T) {
	indexer := newIndexer(t, testObjects()...)
	for _, tc := range []struct {
		name      string
		namespace string
		object    string
		want      string // the key; empty: not found
	}{
		{"cluster-scoped", allNamespaces, "cluster", "cluster"},
		{"by key", allNamespaces, "ns/a", "ns/a"},
		{"namespaced without namespace", allNamespaces, "a", ""},
		{"nobody", allNamespaces, "nobody", ""},
		{"empty name", allNamespaces, "", ""},
		{"namespace", "ns", "a", "ns/a"},
		{"other namespace", "other", "a", "other/a"},
		{"not in this namespace", "other", "b", ""},
		{"unknown namespace", "absent", "a", ""},
		{"cluster-scoped in a namespace", "ns", "cluster", ""},
		{"cluster-scoped in the empty namespace", "", "cluster", ""},
		{"by key in the empty namespace", "", "ns/a", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var wantErr error
			if tc.want == "" {
				wantErr = apierrors.NewNotFound(widgets.GroupResource(), tc.object)
			}
			for _, s := range []subject{upstream(indexer), ours(indexer)} {
				get, generic := s.lister.Get, s.generic.Get
				if tc.namespace != allNamespaces {
					get, generic = s.lister.Namespace(tc.namespace).Get, s.generic.ByNamespace(tc.namespace).Get
				}
				got, err := get(tc.object)
				if !reflect.DeepEqual(err, wantErr) {
					t.Errorf("%s: Get: error %#v, want %#v", s.name, err, wantErr)
				}
				if (got == nil) != (tc.want == "") || got != nil && keys([]*unstructured.Unstructured{got})[0] != tc.want {
					t.Errorf("%s: Get = %v, want %q", s.name, got, tc.want)
				}
				obj, err := generic(tc.object)
				if !reflect.DeepEqual(err, wantErr) {
					t.Errorf("%s: Get of the shim: error %#v, want %#v", s.name, err, wantErr)
				}
				if err == nil && obj != got {
					t.Errorf("%s: Get of the shim = %v, want the object that Get returns", s.name, obj)
				}
			}
		})
	}
}

// brokenIndexer can't look up a key.
type brokenIndexer struct{ cache.Indexer }

var errBroken = errors.New("broken")

func (brokenIndexer) GetByKey(string) (any, bool, error) { return nil, false, errBroken }

func TestParity_GetPassesOnErrorsOfTheCache(t *testing.T) {
	indexer := brokenIndexer{newIndexer(t)}
	for _, s := range []subject{upstream(indexer), ours(indexer)} {
		for name, get := range map[string]func(string) (*unstructured.Unstructured, error){
			"Get":              s.lister.Get,
			"Get in namespace": s.lister.Namespace("ns").Get,
		} {
			if got, err := get("a"); got != nil || !errors.Is(err, errBroken) || apierrors.IsNotFound(err) {
				t.Errorf("%s: %s = %v, %v; want the cache's error", s.name, name, got, err)
			}
		}
	}
}

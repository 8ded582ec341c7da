package dynamicinformer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// cached returns the objects of f's informer on gvr, sorted by name.
func cached(f *dynamicinformer.Factory, gvr schema.GroupVersionResource) (objects []*unstructured.Unstructured) {
	for _, object := range f.ForResource(gvr).Informer().GetStore().List() {
		objects = append(objects, object.(*unstructured.Unstructured))
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return objects
}

// expected returns the objects that a cache should have: decoded by encoding/json and changed by
// change.
func expected(t *testing.T, change cache.TransformFunc) (objects []*unstructured.Unstructured) {
	t.Helper()
	for i := range stubserver.Similar {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(updatedWidget(i))); err != nil {
			t.Fatal(err)
		}
		if _, err := change(object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return objects
}

func unchanged(object any) (any, error) { return object, nil }

// writeName is a transform that writes the name of an object into parts that are equal in all
// objects.
func writeName(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	metadata := u.Object["metadata"].(map[string]any)
	spec, ok := u.Object["spec"].(map[string]any)
	if !ok {
		return object, nil // a bookmark
	}
	name := metadata["name"]
	metadata["annotations"].(map[string]any)["by"] = name
	metadata["labels"].(map[string]any)["app"] = name
	entry := metadata["managedFields"].([]any)[0].(map[string]any)
	entry["manager"] = name
	delete(entry["fieldsV1"].(map[string]any)["f:spec"].(map[string]any), ".")
	template := spec["template"].(map[string]any)
	template["args"].([]any)[0] = name
	template["labels"].(map[string]any)["app"] = name
	u.Object["status"].(map[string]any)["conditions"].([]any)[0].(map[string]any)["type"] = name
	return object, nil
}

// listModes runs a test with initial objects from a list, and with those from a watch-list.
func listModes(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	for name, listed := range map[string]bool{"streamed": false, "listed": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.listed = listed
			test(t, c)
		})
	}
}

func TestClientInformers_CachedObjectsShareTheirParts(t *testing.T) {
	listModes(t, func(t *testing.T, c *cluster) { //nolint:thelper // it is the test
		f := c.factory(t)
		defer shutdown(t, f)
		c.run(t, f, widgets)
		objects := cached(f, widgets)
		if diff := cmp.Diff(expected(t, unchanged), objects); diff != "" {
			t.Errorf("cached objects (-want +got):\n%s", diff)
		}
		if !stubserver.MuchInCommon(objects) {
			t.Errorf("parts in common, by path: %v", stubserver.InCommon(objects))
		}
	})
}

func TestClientInformers_TransformMayWriteToItsObjects(t *testing.T) {
	for name, set := range map[string]func(*testing.T, *cluster) *dynamicinformer.Factory{
		"option": func(t *testing.T, c *cluster) *dynamicinformer.Factory {
			t.Helper()
			return c.factory(t, dynamicinformer.WithTransform(writeName))
		},
		"set on the informer":         informerWith(writeName),
		"set and set again":           informerWith(unchanged, writeName),
		"set after it had been unset": informerWith(writeName, nil, writeName),
	} {
		t.Run(name, func(t *testing.T) {
			listModes(t, func(t *testing.T, c *cluster) { //nolint:thelper // it is the test
				f := set(t, c)
				defer shutdown(t, f)
				c.run(t, f, widgets)
				objects := cached(f, widgets)
				if diff := cmp.Diff(expected(t, writeName), objects); diff != "" {
					t.Errorf("cached objects (-want +got):\n%s", diff)
				}
				if common := stubserver.InCommon(objects); len(common) > 0 {
					t.Errorf("parts in common, by path: %v", common)
				}
			})
		})
	}
}

// informerWith returns a constructor of factories whose informer on widgets gets transforms, one
// after another.
func informerWith(transforms ...cache.TransformFunc) func(*testing.T, *cluster) *dynamicinformer.Factory {
	return func(t *testing.T, c *cluster) *dynamicinformer.Factory {
		t.Helper()
		f := c.factory(t)
		for _, transform := range transforms {
			if err := f.ForResource(widgets).Informer().SetTransform(transform); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
}

func TestClientInformers_TransformDoesNotAffectOtherInformers(t *testing.T) {
	listModes(t, func(t *testing.T, c *cluster) { //nolint:thelper // it is the test
		f := informerWith(writeName)(t, c)
		defer shutdown(t, f)
		c.run(t, f, widgets, blocks)
		if diff := cmp.Diff(expected(t, writeName), cached(f, widgets)); diff != "" {
			t.Errorf("with a transform (-want +got):\n%s", diff)
		}
		objects := cached(f, blocks)
		if diff := cmp.Diff(expected(t, unchanged), objects); diff != "" {
			t.Errorf("without (-want +got):\n%s", diff)
		}
		if !stubserver.MuchInCommon(objects) {
			t.Errorf("without: parts in common, by path: %v", stubserver.InCommon(objects))
		}
	})
}

func TestClientInformers_TransformCanBeUnset(t *testing.T) {
	c := newCluster(t)
	f := informerWith(writeName, nil)(t, c)
	defer shutdown(t, f)
	c.run(t, f, widgets)
	objects := cached(f, widgets)
	if diff := cmp.Diff(expected(t, unchanged), objects); diff != "" {
		t.Errorf("cached objects (-want +got):\n%s", diff)
	}
	if !stubserver.MuchInCommon(objects) {
		t.Errorf("parts in common, by path: %v", stubserver.InCommon(objects))
	}
}

func TestClientInformers_UseTheOptionsOfTheClient(t *testing.T) {
	for _, tc := range []struct {
		name   string
		opts   []dynamicinformer.Option
		change cache.TransformFunc
		shares bool
	}{
		{"without sharing", options(dynamicclient.WithoutSharing()), unchanged, false},
		{"stock decoding", options(dynamicclient.WithStockDecoding()), unchanged, false},
		{"without managed fields", options(dynamicclient.WithoutManagedFields()), unmanaged, true},
		{"without managed fields, with a transform", append(options(dynamicclient.WithoutManagedFields()), dynamicinformer.WithTransform(unchanged)), unmanaged, false},
		{"two lists of options", append(options(dynamicclient.WithoutManagedFields()), options(dynamicclient.WithoutSharing())...), unmanaged, false},
		{"nil", options(nil), unchanged, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			f := c.factory(t, tc.opts...)
			defer shutdown(t, f)
			c.run(t, f, widgets)
			objects := cached(f, widgets)
			if diff := cmp.Diff(expected(t, tc.change), objects); diff != "" {
				t.Errorf("cached objects (-want +got):\n%s", diff)
			}
			if common := stubserver.InCommon(objects); (len(common) > 0) != (tc.shares || packedCaches) { // packed objects always share
				t.Errorf("parts in common, by path: %v", common)
			}
		})
	}
}

// The objects of factories have parts in common if their clients have the same tables. A packed cache has no tables.
func TestClientInformers_FactoriesShareTables(t *testing.T) {
	for name, tables := range map[string]*dynamicclient.Tables{"the same": dynamicclient.NewTables(), "their own": nil} {
		t.Run(name, func(t *testing.T) {
			var objects [2][]*unstructured.Unstructured
			for i := range objects {
				c := newCluster(t)
				f := c.factory(t, options(dynamicclient.WithTables(tables))...)
				c.run(t, f, widgets)
				objects[i] = cached(f, widgets)
				shutdown(t, f)
			}
			if common := stubserver.InBoth(objects[0], objects[1]); (common > 0) != (tables != nil && !packedCaches) {
				t.Errorf("%d parts are shared between the factories", common)
			}
		})
	}
}

func options(opts ...dynamicclient.Option) []dynamicinformer.Option {
	return []dynamicinformer.Option{dynamicinformer.WithClientOptions(opts...)}
}

func unmanaged(object any) (any, error) {
	unstructured.RemoveNestedField(object.(*unstructured.Unstructured).Object, "metadata", "managedFields")
	return object, nil
}

// Metadata and objects of Go types have equal parts of their metadata in common, as far as the options of the client and a transform allow.
func TestClientInformers_FormsUseTheOptionsOfTheClient(t *testing.T) {
	for name, test := range map[string]struct {
		opts   []dynamicinformer.Option
		shares bool
	}{
		"by default":       {nil, true},
		"without sharing":  {options(dynamicclient.WithoutSharing()), false},
		"stock decoding":   {options(dynamicclient.WithStockDecoding()), false},
		"with a transform": {[]dynamicinformer.Option{dynamicinformer.WithTransform(unchanged)}, false},
	} {
		for form, opt := range map[string]dynamicinformer.LeaseOption{
			"metadata": dynamicinformer.WithMetadataOnly(), "a Go type": dynamicinformer.WithGoType(&typedWidget{}),
		} {
			t.Run(name+"/"+form, func(t *testing.T) {
				c := newCluster(t)
				f := c.factory(t, test.opts...)
				defer shutdown(t, f)
				f.Start(t.Context())
				lease, err := f.Acquire(t.Context(), widgets, opt)
				if err != nil {
					t.Fatal(err)
				}
				if err := lease.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				different := map[*metav1.FieldsV1]bool{}
				objects := lease.Informer().GetStore().List()
				for _, object := range objects {
					different[object.(metav1.Object).GetManagedFields()[0].FieldsV1] = true
				}
				if shares := len(different) < len(objects); shares != test.shares {
					t.Errorf("%d objects have %d managed fields", len(objects), len(different))
				}
			})
		}
	}
}

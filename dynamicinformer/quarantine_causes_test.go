package dynamicinformer_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// objectForm is a form of an informer's objects.
type objectForm struct {
	replacer *strings.Replacer
	acquire  func(*testing.T, *dynamicinformer.Factory, ...dynamicinformer.LeaseOption) *dynamicinformer.Lease
}

var objectForms = map[string]objectForm{
	"unstructured": {nil, func(t *testing.T, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
		t.Helper()
		return acquire(t, f, widgets, opts...)
	}},
	"metadata": {partial, func(t *testing.T, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
		t.Helper()
		return acquire(t, f, widgets, append(opts, dynamicinformer.WithMetadataOnly())...)
	}},
	"typed": {nil, func(t *testing.T, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
		t.Helper()
		l, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return l.Lease
	}},
}

// isBad reports whether an object has the label bad.
func isBad(obj any) bool {
	object, err := meta.Accessor(obj)
	return err == nil && object.GetLabels()["bad"] != ""
}

// transformed returns a transform with the result of bad for bad objects.
func transformed(bad func(obj any) (any, error)) dynamicinformer.LeaseOption {
	return dynamicinformer.WithTransform(func(obj any) (any, error) {
		if isBad(obj) {
			return bad(obj)
		}
		return obj, nil
	})
}

// indexedBy returns an index function with the result of bad for bad objects.
func indexedBy(bad func() ([]string, error)) dynamicinformer.LeaseOption {
	return dynamicinformer.WithIndexers(cache.Indexers{"label": func(obj any) ([]string, error) {
		if isBad(obj) {
			return bad()
		}
		return []string{"good"}, nil
	}})
}

func toMetadata(any) (any, error) {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, nil
}

// causes are the causes why an object is left out.
var causes = []struct {
	name   string
	forms  []string // nil: all
	bad    string   // JSON that replaces "size":1 or the labels of an object; empty: it has the label bad
	option dynamicinformer.LeaseOption
	reason status.Reason
	text   string // a part of the error
}{
	{"a number that no decoder accepts", []string{"unstructured", "typed"}, `"size":1e999`, nil, status.ReasonDecodeFailed, "decode"},
	{"metadata that does not fit", []string{"metadata", "typed"}, `"labels":{"bad":7}`, nil, status.ReasonDecodeFailed, "labels"},
	{"a field that does not fit T", []string{"typed"}, `"size":"large"`, nil, status.ReasonDecodeFailed, "spec.size"},
	{"a transform with an error", nil, "", transformed(func(any) (any, error) { return nil, errBad }), status.ReasonTransformFailed, errBad.Error()},
	{"a transform that panics", nil, "", transformed(func(any) (any, error) { panic(errBad) }), status.ReasonTransformFailed, "panic: " + errBad.Error()},
	{"a transform that returns nil", nil, "", transformed(func(any) (any, error) { return nil, nil }), status.ReasonTransformFailed, "returned <nil>"},
	{"a transform that returns a nil pointer", nil, "", transformed(func(obj any) (any, error) { return reflect.Zero(reflect.TypeOf(obj)).Interface(), nil }), status.ReasonTransformFailed, "nil"},
	{"a transform that returns an object without metadata", nil, "", transformed(func(any) (any, error) { return 5, nil }), status.ReasonTransformFailed, "returned int"},
	{"a transform that returns an object without a name", nil, "", transformed(func(obj any) (any, error) {
		obj.(metav1.Object).SetName("")
		return obj, nil
	}), status.ReasonTransformFailed, "it has no metadata.name"},
	{"a transform that returns an object with a nil pointer for its metadata", []string{"unstructured", "metadata"}, "", transformed(func(any) (any, error) {
		return &struct{ *metav1.ObjectMeta }{}, nil
	}), status.ReasonTransformFailed, "whose metadata can't be read"},
	{"a transform that returns another type", []string{"typed"}, "", transformed(toMetadata), status.ReasonTransformFailed, "returned *v1.PartialObjectMetadata, not *dynamicinformer_test.typedWidget"},
	{"an index function with an error", nil, "", indexedBy(func() ([]string, error) { return nil, errBad }), status.ReasonIndexFailed, `index "label": ` + errBad.Error()},
	{"an index function that panics", nil, "", indexedBy(func() ([]string, error) { panic(errBad) }), status.ReasonIndexFailed, `index "label": panic: ` + errBad.Error()},
}

// Each cause, in each form, in a list, a watch-list and a watch: the object is left out and named until a good
// version, or its deletion.
func TestQuarantine_OfEachCauseInEachForm(t *testing.T) {
	for _, cause := range causes {
		for name, form := range objectForms {
			if cause.forms != nil && !slices.Contains(cause.forms, name) {
				continue
			}
			for _, policy := range policies {
				t.Run(fmt.Sprintf("%s/%s/%s", cause.name, name, policy), func(t *testing.T) {
					good := func(name string, version int) string {
						return strings.Replace(widgetJSON(name, version, `{"size":1}`), `"metadata":{`, `"metadata":{"labels":{"app":"x"},`, 1)
					}
					bad := func(name string, version int) string {
						switch {
						case strings.Contains(cause.bad, "size"):
							return strings.Replace(good(name, version), `"size":1`, cause.bad, 1)
						case cause.bad != "":
							return strings.Replace(good(name, version), `"labels":{"app":"x"}`, cause.bad, 1)
						}
						return strings.Replace(good(name, version), `"labels":{"app"`, `"labels":{"bad"`, 1)
					}
					inCache := cause.reason == status.ReasonIndexFailed
					// events returns want, and also more if bad objects are in the cache.
					events := func(more string, want ...string) []string {
						if inCache {
							want = append(want, more)
							slices.Sort(want)
						}
						return want
					}
					s := serveForm(t, form.replacer, []string{good("a", 2), bad("bad", 3), good("b", 4)}, func(f *dynamicinformer.Factory) *dynamicinformer.Lease {
						opts := []dynamicinformer.LeaseOption{dynamicinformer.WithWatchListPolicy(policy)}
						if cause.option != nil {
							opts = append(opts, cause.option)
						}
						return form.acquire(t, f, opts...)
					})
					s.sync(t)
					s.events.await(t, events("add bad 3", "add a 2", "add b 4")...)
					leftOut := func(when, key string) {
						t.Helper()
						i := awaitStatus(t, s.lease, when, failed(1))
						q := i.Quarantine
						if i.State != status.StateDegraded || i.Reason != cause.reason || !i.Listed || len(q.Objects) != 1 || len(q.Counts) != 1 || q.Counts[cause.reason] != 1 {
							t.Fatalf("%s: %s (%s), quarantine %+v", when, i.State, i.Reason, q)
						}
						o := q.Objects[0]
						if o.Key != "ns/"+key || string(o.UID) != "u-"+key || o.Reason != cause.reason || (o.Index == "label") != inCache || o.Since.IsZero() || !strings.Contains(o.Err.Error(), cause.text) {
							t.Errorf("%s: %+v, want %s with %q", when, o, key, cause.text)
						}
						if strings.Contains(o.Err.Error(), "999") || strings.Contains(o.Err.Error(), "large") {
							t.Errorf("%s: the error has a value of the object: %v", when, o.Err)
						}
					}
					none := func(when string) {
						t.Helper()
						if i := awaitStatus(t, s.lease, when, failed(0)); i.State != status.StateSynced || !i.Quarantine.IsZero() {
							t.Errorf("%s: %s, quarantine %+v", when, i.State, i.Quarantine)
						}
					}
					leftOut("listed", "bad")
					s.send("MODIFIED", good("bad", 11))
					if inCache {
						s.events.await(t, "update bad 11")
					} else {
						s.events.await(t, "add bad 11")
					}
					none("a good version")
					s.send("MODIFIED", bad("bad", 12))
					leftOut("a bad version", "bad")
					s.send("DELETED", bad("bad", 13))
					none("it is deleted")
					if inCache {
						s.events.await(t, "delete bad 13", "update bad 12")
					} else {
						s.events.await(t, "delete bad 12")
					}
					s.send("ADDED", bad("never", 14))
					leftOut("another one", "never")
					s.send("DELETED", bad("never", 15))
					none("a deletion of an object that was never good")
					s.send("ADDED", good("last", 16))
					want := []string{"add last 16"}
					if inCache {
						want = []string{"add last 16", "add never 14", "delete never 15"}
					}
					s.events.await(t, want...)
				})
			}
		}
	}
}

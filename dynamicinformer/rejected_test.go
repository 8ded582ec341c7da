package dynamicinformer_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

var errBad = errors.New("bad object")

// rejectBad is a transform that fails for an object labelled bad. It writes to other objects, as transforms
// do.
func rejectBad(obj any) (any, error) {
	object := obj.(*unstructured.Unstructured)
	switch object.GetLabels()["bad"] {
	case "error":
		return nil, errBad
	case "panic":
		panic(errBad)
	case "nil":
		return nil, nil
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	object.SetAnnotations(map[string]string{"seen": "true"})
	return object, nil
}

// relabel gives a widget the label bad.
func relabel(t *testing.T, cluster *fakecluster.Cluster, name, bad string) {
	t.Helper()
	client := cluster.Resource(widgets).Namespace("ns")
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	obj.SetLabels(map[string]string{"bad": bad})
	if _, err := client.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deleteWidget(t *testing.T, cluster *fakecluster.Cluster, name string) {
	t.Helper()
	if err := cluster.Resource(widgets).Namespace("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// An object for which the transform fails is left out and named, and all others are served. The object is
// added with its next good version.
func TestRejected_ByTheTransform(t *testing.T) {
	for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				for i := range 100 {
					create(t, cluster, widgets, "ns", fmt.Sprintf("w%02d", i))
				}
				relabel(t, cluster, "w10", "error")
				relabel(t, cluster, "w20", "panic")
				relabel(t, cluster, "w30", "nil")
				f := newFactory(t, cluster, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithTransform(rejectBad), dynamicinformer.WithPageSize(7))
				f.Start(t.Context())
				l := acquire(t, f, widgets)
				events := listen(t, l.Informer())
				check := func(when string, rejected, objects int, want ...string) {
					t.Helper()
					time.Sleep(time.Minute)
					got := l.Status()
					wantState, wantReason := status.StateDegraded, status.ReasonTransformFailed
					if rejected == 0 {
						wantState, wantReason = status.StateSynced, ""
					}
					if got.State != wantState || got.Reason != wantReason || got.FailedObjects != uint64(rejected) || got.Objects != objects { //nolint:gosec // small
						t.Errorf("%s: %s (%s), %d rejected, %d objects, want %s (%s), %d, %d",
							when, got.State, got.Reason, got.FailedObjects, got.Objects, wantState, wantReason, rejected, objects)
					}
					if rejected > 0 && (got.Err == nil || got.LastFailed == "" || got.Since.IsZero()) {
						t.Errorf("%s: %q, %v since %v", when, got.LastFailed, got.Err, got.Since)
					}
					if cached := len(l.Informer().GetStore().List()); cached != objects {
						t.Errorf("%s: %d objects in the cache, want %d", when, cached, objects)
					}
					if diff := cmp.Diff(want, events.take()); diff != "" {
						t.Errorf("%s: events (-want +got):\n%s", when, diff)
					}
				}
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				events.take()
				check("listed", 3, 97)
				relabel(t, cluster, "w10", "")
				check("one is good", 2, 98, "add ns/w10")
				relabel(t, cluster, "w11", "error")
				check("one that was good is bad: the cache keeps the good version", 3, 98)
				cluster.Expire(widgets)
				cluster.CloseWatches(widgets)
				check("listed again", 3, 98)
				deleteWidget(t, cluster, "w20")
				check("one that was left out is deleted", 2, 98)
				deleteWidget(t, cluster, "w11")
				check("one is deleted that is bad now", 1, 97, "delete ns/w11")
				deleteWidget(t, cluster, "w30")
				check("the last bad one is deleted", 0, 97)
				for _, item := range l.Informer().GetStore().List() {
					if item.(*unstructured.Unstructured).GetAnnotations()["seen"] != "true" {
						t.Fatalf("object without the change of the transform: %v", item)
					}
				}
				shutdown(t, f)
			})
		})
	}
}

// An error of a transform or index function may have any length. What is stored, logged and displayed of
// it is short, and unwraps to it.
func TestRejected_LongErrorsAreCut(t *testing.T) {
	long := fmt.Errorf("%s: %w", strings.Repeat("é", 50<<10), errBad)
	for name, opt := range map[string]dynamicinformer.Option{
		"transform":                dynamicinformer.WithTransform(func(any) (any, error) { return nil, long }),
		"panic of a transform":     dynamicinformer.WithTransform(func(any) (any, error) { panic(long) }),
		"index function":           dynamicinformer.WithIndexers(cache.Indexers{"label": func(any) ([]string, error) { return nil, long }}),
		"panic of index functions": dynamicinformer.WithIndexers(cache.Indexers{"label": func(any) ([]string, error) { panic(long) }}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(4)))
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				f := newFactory(t, cluster, opt)
				f.ForResource(widgets)
				start(klog.NewContext(t.Context(), logger), f)
				time.Sleep(time.Minute)
				got := f.Status()[0]
				if got.FailedObjects != 1 || got.Err == nil {
					t.Fatalf("status: %+v", got)
				}
				if !strings.HasPrefix(name, "panic") && !errors.Is(got.Err, errBad) {
					t.Errorf("%T does not unwrap to the error", got.Err)
				}
				texts := map[string]string{
					"status": got.Err.Error(), "explanation": f.Explain(widgets).String(),
					"page": look(t, f.Handler(), "format=text&resource=widgets.v1.example.com").Body.String(),
					"log":  logger.GetSink().(ktesting.Underlier).GetBuffer().String(),
				}
				for where, text := range texts {
					if n := strings.Count(text, "é"); n > 3*512 || !utf8.ValidString(text) {
						t.Errorf("%s: %d bytes of the error, valid: %t", where, 2*n, utf8.ValidString(text))
					}
				}
				if n := len(texts["status"]); n > 1024 {
					t.Errorf("status: %d bytes", n)
				}
				shutdown(t, f)
			})
		})
	}
}

// custom is an object with metadata that is not a runtime.Object.
type custom struct{ metav1.ObjectMeta }

// A transform may return any type with metadata. Synthetic deletions have that type too.
func TestTransform_MayReturnAnyTypeWithMetadata(t *testing.T) {
	for name, toType := range map[string]func(*unstructured.Unstructured) any{
		"no runtime.Object": func(obj *unstructured.Unstructured) any {
			return &custom{metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace()}}
		},
		"PartialObjectMetadata": func(obj *unstructured.Unstructured) any {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace(), ResourceVersion: obj.GetResourceVersion()}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType, blockType)
				create(t, cluster, widgets, "ns", "a")
				want := fmt.Sprintf("%T", toType(newObject("a", nil)))
				var mu sync.Mutex
				calls := map[string]int{}
				f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithTransform(func(obj any) (any, error) {
					accessor, err := meta.Accessor(obj)
					if err != nil {
						return nil, err
					}
					mu.Lock()
					defer mu.Unlock()
					calls[accessor.GetName()]++
					return toType(obj.(*unstructured.Unstructured)), nil
				}))
				f.Start(t.Context())
				l := acquire(t, f, widgets)
				var got []string
				record := func(what string) func(any) {
					return func(obj any) {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, fmt.Sprintf("%s %T", what, obj))
					}
				}
				handler := cache.ResourceEventHandlerFuncs{AddFunc: record("add"), DeleteFunc: record("delete")}
				if _, err := l.AddEventHandler(handler); err != nil {
					t.Fatal(err)
				}
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				create(t, cluster, widgets, "ns", "b")
				deleteWidget(t, cluster, "a")
				synctest.Wait()
				cluster.Withdraw(widgets)
				time.Sleep(5 * time.Minute)
				shutdown(t, f)
				if diff := cmp.Diff([]string{"add " + want, "add " + want, "delete " + want, "delete " + want}, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]int{"a": 2, "b": 1}, calls); diff != "" {
					t.Errorf("calls, one for each addition and deletion of the server (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// client-go's store panics if an index function returns an error.
func TestRejected_ByAnIndexFunction(t *testing.T) {
	for _, bad := range []string{"error", "panic"} {
		t.Run(bad, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				create(t, cluster, widgets, "ns", "b")
				relabel(t, cluster, "b", bad)
				byLabel := func(obj any) ([]string, error) {
					switch obj.(*unstructured.Unstructured).GetLabels()["bad"] {
					case "error":
						return nil, errBad
					case "panic":
						panic(errBad)
					}
					return []string{"good"}, nil
				}
				f := newFactory(t, cluster, dynamicinformer.WithIndexers(cache.Indexers{"label": byLabel}))
				l := syncedLease(t, f)
				check := func(when string, rejected uint64, good int) {
					t.Helper()
					synctest.Wait()
					got := l.Status()
					if got.FailedObjects != rejected || (got.Reason == status.ReasonIndexFailed) != (rejected > 0) {
						t.Errorf("%s: %s (%s), %d objects, want %d", when, got.State, got.Reason, got.FailedObjects, rejected)
					}
					found, err := l.Informer().GetIndexer().ByIndex("label", "good")
					if err != nil || len(found) != good {
						t.Errorf("%s: %d in the index (%v), want %d", when, len(found), err, good)
					}
				}
				check("listed", 1, 1)
				if err := l.Informer().AddIndexers(cache.Indexers{"other": byLabel}); err != nil {
					t.Fatal(err)
				}
				check("one more index", 2, 1)
				if err := l.Informer().AddIndexers(cache.Indexers{"third": nil}); err == nil {
					t.Error("a nil function is accepted")
				}
				object, _, _ := l.Informer().GetIndexer().GetByKey("ns/b")
				if found, err := l.Informer().GetIndexer().Index("label", object); !strings.Contains(fmt.Sprint(err), errBad.Error()) {
					t.Errorf("Index returns %v and the error %v", found, err)
				}
				relabel(t, cluster, "b", "")
				check("it is good", 0, 2)
				relabel(t, cluster, "b", bad)
				check("it is bad again", 2, 1)
				deleteWidget(t, cluster, "b")
				check("it is deleted", 0, 1)
				shutdown(t, f)
			})
		})
	}
}

package fakecluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// askAll sends a request with each verb for the object a, and returns the errors.
func askAll(ctx context.Context, client dynamic.ResourceInterface) map[string]error {
	errs := map[string]error{}
	_, errs["create"] = client.Create(ctx, newObject("a", ""), metav1.CreateOptions{})
	_, errs["get"] = client.Get(ctx, "a", metav1.GetOptions{})
	_, errs["update"] = client.Update(ctx, newObject("a", ""), metav1.UpdateOptions{})
	_, errs["list"] = client.List(ctx, metav1.ListOptions{})
	w, err := client.Watch(ctx, metav1.ListOptions{})
	if errs["watch"] = err; err == nil {
		w.Stop()
	}
	errs["delete"] = client.Delete(ctx, "a", metav1.DeleteOptions{})
	return errs
}

func TestRequests_AllVerbsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		for name, client := range map[string]dynamic.ResourceInterface{
			"namespaced":     in(cluster, "ns"),
			"cluster-scoped": cluster.Resource(blocks),
			"cluster-scoped, namespace explicitly empty": cluster.Resource(blocks).Namespace(""),
		} {
			for verb, err := range askAll(t.Context(), client) {
				if err != nil {
					t.Errorf("%s, %s: %v", name, verb, err)
				}
			}
		}
	})
}

// An API server does not have such paths, so its response is not a NotFound of an object.
func TestRequests_ForATypeThatIsNotServedGet404(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		otherVersion := widgets
		otherVersion.Version = "v2"
		for name, client := range map[string]dynamic.ResourceInterface{
			"cluster-scoped type in a namespace": cluster.Resource(blocks).Namespace("ns"),
			"unknown type":                       cluster.Resource(widgets.GroupVersion().WithResource("gadgets")),
			"another version":                    cluster.Resource(otherVersion).Namespace("ns"),
		} {
			for verb, err := range askAll(t.Context(), client) {
				if !apierrors.IsNotFound(err) {
					t.Errorf("%s, %s: %v, want 404", name, verb, err)
				}
			}
		}
		if got := cluster.OpenWatches(blocks); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
	})
}

func TestServe_AddsATypeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		create(t, cluster.Resource(blocks), "b", "")
		cluster.Serve(widgetType)
		create(t, in(cluster, "ns"), "a", "")
		if diff := cmp.Diff([]string{"ns/a"}, keys(list(t, in(cluster, ""), metav1.ListOptions{}))); diff != "" {
			t.Errorf("objects of the new type (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"/b"}, keys(list(t, cluster.Resource(blocks), metav1.ListOptions{}))); diff != "" {
			t.Errorf("objects of the old type (-want +got):\n%s", diff)
		}
	})
}

func TestRequests_WithAVerbThatTheTypeLacksGet405(t *testing.T) {
	for _, verb := range []string{"create", "delete", "get", "list", "update", "watch"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lacking := blockType
				for _, other := range []string{"create", "delete", "get", "list", "update", "watch"} {
					if other != verb {
						lacking.Verbs = append(lacking.Verbs, other)
					}
				}
				cluster := fakecluster.New(lacking)
				err := askAll(t.Context(), cluster.Resource(blocks))[verb]
				if !apierrors.IsMethodNotSupported(err) {
					t.Errorf("error = %v, want MethodNotSupported", err)
				}
			})
		})
	}
}

func TestRequests_UnsupportedMethodsGetMethodNotSupported(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	client := in(cluster, "ns")
	obj := create(t, client, "a", "")
	ctx := t.Context()
	errs := map[string]error{}
	_, errs["update status"] = client.UpdateStatus(ctx, obj, metav1.UpdateOptions{})
	_, errs["patch"] = client.Patch(ctx, "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	_, errs["apply"] = client.Apply(ctx, "a", obj, metav1.ApplyOptions{})
	_, errs["apply status"] = client.ApplyStatus(ctx, "a", obj, metav1.ApplyOptions{})
	errs["delete collection"] = client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	for what, err := range errs {
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: %v, want MethodNotSupported", what, err)
		}
	}
	if diff := cmp.Diff([]string{"ns/a"}, keys(list(t, client, metav1.ListOptions{}))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestRequests_AreRecordedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		listed := metav1.ListOptions{LabelSelector: "color=red", ResourceVersion: "0"}
		watched := metav1.ListOptions{FieldSelector: "metadata.name=a", ResourceVersion: "1"}
		list(t, in(cluster, "ns"), listed)
		list(t, in(cluster, ""), metav1.ListOptions{})
		open(t, in(cluster, "ns"), watched)
		if _, err := in(cluster, "ns").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Fatalf("get: %v", err) // the request counts
		}
		for verb, want := range map[string][]fakecluster.Request{
			"list": {
				{Verb: "list", GVR: widgets, Namespace: "ns", Options: listed},
				{Verb: "list", GVR: widgets},
			},
			"watch":  {{Verb: "watch", GVR: widgets, Namespace: "ns", Options: watched}},
			"get":    {{Verb: "get", GVR: widgets, Namespace: "ns", Name: "a"}},
			"delete": nil,
		} {
			if diff := cmp.Diff(want, cluster.Requests(verb, widgets)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", verb, diff)
			}
			if got := cluster.Requests(verb, blocks); got != nil {
				t.Errorf("%s of another type: %v", verb, got)
			}
		}
	})
}

func TestOpenWatches_CountsByType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		count := func(gvr schema.GroupVersionResource, want int) {
			t.Helper()
			synctest.Wait()
			if got := cluster.OpenWatches(gvr); got != want {
				t.Errorf("open watches of %s = %d, want %d", gvr.Resource, got, want)
			}
		}
		first := open(t, in(cluster, ""), metav1.ListOptions{})
		open(t, in(cluster, "ns"), metav1.ListOptions{})
		count(widgets, 2)
		count(blocks, 0)
		first.Stop()
		count(widgets, 1)
		open(t, cluster.Resource(blocks), metav1.ListOptions{})
		count(widgets, 1)
		count(blocks, 1)
	})
}

func TestIntercept_ErrorIsTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		broken := errors.New("broken")
		var verbs []string
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			verbs = append(verbs, req.Verb)
			return broken
		})
		for verb, err := range askAll(t.Context(), in(cluster, "ns")) {
			if !errors.Is(err, broken) {
				t.Errorf("%s: %v, want the interceptor's error", verb, err)
			}
		}
		if diff := cmp.Diff([]string{"create", "get", "update", "list", "watch", "delete"}, verbs); diff != "" {
			t.Errorf("intercepted (-want +got):\n%s", diff)
		}
		if got := len(cluster.Requests("list", widgets)); got != 1 {
			t.Errorf("requests = %d, want 1: the failed request counts", got)
		}
		cluster.Intercept(nil)
		if got := keys(list(t, in(cluster, ""), metav1.ListOptions{})); got != nil {
			t.Errorf("objects = %q, want none: the create was not served", got)
		}
	})
}

func TestIntercept_GetsRequestsForTypesThatAreNotServed(t *testing.T) {
	cluster := fakecluster.New()
	throttled := apierrors.NewTooManyRequests("slowly", 1)
	cluster.Intercept(func(context.Context, fakecluster.Request) error { return throttled })
	if _, err := in(cluster, "").List(t.Context(), metav1.ListOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("error = %v, want the interceptor's", err)
	}
}

// An interceptor that blocks until the end of the context is like a server that does not
// respond. It does not delay other requests.
func TestIntercept_HangEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				<-ctx.Done()
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		listed, watched := make(chan error), make(chan error)
		go func() { _, err := in(cluster, "").List(ctx, metav1.ListOptions{}); listed <- err }()
		go func() { _, err := in(cluster, "").Watch(ctx, metav1.ListOptions{}); watched <- err }()
		synctest.Wait()
		list(t, cluster.Resource(blocks), metav1.ListOptions{})

		begun := time.Now()
		for verb, ended := range map[string]chan error{"list": listed, "watch": watched} {
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want the context's error", verb, err)
			}
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the requests ended after %v, want a minute", took)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
	})
}

func TestRequests_FailAfterTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for verb, err := range askAll(ctx, in(fakecluster.New(widgetType), "ns")) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want the context's error", verb, err)
			}
		}
	})
}

func TestRequests_ForASubresourceDoNotAffectTheObject(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	create(t, in(cluster, "ns"), "a", "")
	if err := in(cluster, "ns").Delete(t.Context(), "a", metav1.DeleteOptions{}, "status"); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("Delete of a subresource: %v", err)
	}
	if _, err := in(cluster, "ns").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the object: %v", err)
	}
}

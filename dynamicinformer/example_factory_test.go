package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// newFakeClient returns client-go's fake client, which serves gadgets, and has the gadget
// default/a.
func newFakeClient(gadgets schema.GroupVersionResource) *dynamicfake.FakeDynamicClient {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{gadgets: "GadgetList"},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gadgets.GroupVersion().String(),
			"kind":       "Gadget",
			"metadata":   map[string]any{"namespace": "default", "name": "a"},
		}})
	client.Resources = []*metav1.APIResourceList{{
		GroupVersion: gadgets.GroupVersion().String(),
		APIResources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Namespaced: true, Verbs: []string{"list", "watch"}}},
	}}
	return client
}

// newFakeFactory returns a factory on client, with discovery. For a cluster, NewForConfig
// returns such a factory.
func newFakeFactory(client *dynamicfake.FakeDynamicClient) *dynamicinformer.Factory {
	resolver, err := discovery.NewFromDiscovery(&fakediscovery.FakeDiscovery{Fake: &client.Fake})
	if err != nil {
		log.Fatal(err)
	}
	factory, err := dynamicinformer.New(client, dynamicinformer.WithDiscovery(resolver))
	if err != nil {
		log.Fatal(err)
	}
	return factory
}

// The lease starts the informer of one resource, which stops with its last lease.
func ExampleFactory_Acquire() {
	ctx := context.Background()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	client := newFakeClient(gadgets)
	factory := newFakeFactory(client)
	factory.Start(ctx)

	lease, err := factory.Acquire(ctx, gadgets) // fails if the type is not served
	if err != nil {
		log.Fatal(err)
	}
	if err := lease.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	cached, err := lease.Lister().ByNamespace("default").Get("a")
	if err != nil {
		log.Fatal(err)
	}
	gadget := cached.(*unstructured.Unstructured).DeepCopy() // cached objects are read-only
	gadget.SetLabels(map[string]string{"tier": "gold"})
	updated, err := client.Resource(gadgets).Namespace("default").Update(ctx, gadget, metav1.UpdateOptions{})
	fmt.Println(updated.GetLabels(), err)
	lease.Release()
	<-lease.Done() // no event handler of the lease will be called again
	fmt.Println(factory.Shutdown(ctx))
	// Output:
	// map[tier:gold] <nil>
	// <nil>
}

// The names of a type, and of one that is not installed yet.
func ExampleFactory_AcquireRef() {
	ctx := context.Background()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	factory := newFakeFactory(newFakeClient(gadgets))
	factory.Start(ctx)

	lease, err := factory.AcquireRef(ctx, "Gadget")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.WaitForSync(ctx), lease.Resource().GVR.Resource)
	_, err = factory.AcquireRef(ctx, "widgets.example.com")
	fmt.Println(errors.Is(err, discovery.ErrNotServed))
	later, err := factory.AcquireRef(ctx, "widgets.example.com", dynamicinformer.WithAllowAbsent())
	if err != nil {
		log.Fatal(err)
	}
	reason := later.WaitForSync(ctx, dynamicinformer.WithFailFast())
	fmt.Println(meta.IsNoMatchError(reason), later.Status().Ref, factory.Shutdown(ctx))
	// Output:
	// <nil> gadgets
	// true
	// true widgets.example.com <nil>
}

// The server rejects the list until the user has the permission.
func ExampleLease_Watch() {
	ctx := context.Background()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	client := newFakeClient(gadgets)
	var permitted atomic.Bool
	client.PrependReactor("list", "gadgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !permitted.Load(), nil, apierrors.NewForbidden(gadgets.GroupResource(), "", nil)
	})
	factory := newFakeFactory(client)
	factory.Start(ctx)
	lease, err := factory.Acquire(ctx, gadgets)
	if err != nil {
		log.Fatal(err)
	}
	for current := range lease.Watch(ctx) {
		if current.State == status.StateDegraded && !permitted.Swap(true) {
			fmt.Println(current.State, current.Reason)
			lease.Retry() // instead of the end of the pause between two attempts
		}
		if current.State == status.StateSynced {
			fmt.Println(current.State, current.Objects)
			break // otherwise the loop ends with the informer
		}
	}
	lease.Release()
	fmt.Println(factory.Shutdown(ctx))
	// Output:
	// Degraded Forbidden
	// Synced 1
	// <nil>
}

// The handler gets the objects of every type of a group.
func ExampleFactory_Follow() {
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	factory := newFakeFactory(newFakeClient(gadgets))
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx)

	selector := discovery.Selector{Groups: []string{"example.com"}}
	show := func(obj any) { fmt.Println("object", obj.(*unstructured.Unstructured).GetName()) } // read-only
	err := factory.Follow(ctx, selector, dynamicinformer.FollowFuncs{
		Started: func(lease *dynamicinformer.Lease) {
			fmt.Println("started", lease.Resource().GVK.Kind)
			shown, err := lease.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: show})
			if err != nil {
				log.Fatal(err)
			}
			<-shown.HasSyncedChecker().Done() // the handler has had every listed object
			cancel()                          // a program would continue, and get new types
		},
		Stopped: func(res discovery.Resource, _ discovery.Evidence) { fmt.Println("stopped", res.GVK.Kind) },
	})
	fmt.Println(err, factory.Shutdown(context.Background()))
	// Output:
	// started Gadget
	// object a
	// stopped Gadget
	// <nil> <nil>
}

// The name of the resource is misspelled.
func ExampleFactory_Explain() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	factory := newFakeFactory(newFakeClient(gadgets))
	factory.Start(ctx)

	misspelled := gadgets.GroupVersion().WithResource("gadgetz")
	factory.ForResource(misspelled)
	if err := factory.WaitForSync(ctx, dynamicinformer.WithFailFast()); err == nil {
		log.Fatal("synced")
	}
	explanation := factory.Explain(misspelled) // fmt.Println(explanation) prints all of it, with times
	for _, informer := range explanation.Informers {
		fmt.Println(informer.State, informer.Reason)
		fmt.Println(informer.Message())
	}
	for _, step := range explanation.Chain {
		if step.About == status.StepNext {
			fmt.Println(step.Text)
		}
	}
	fmt.Println(factory.Shutdown(ctx))
	// Output:
	// NotServed NotFound
	// not served by the API server; did you mean gadgets.example.com?
	// No list or watch is sent until the type is served.
	// <nil>
}

// A readiness check at /readyz, as a kubelet requests it.
func ExampleFactory_Readyz() {
	ctx := context.Background()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	factory := newFakeFactory(newFakeClient(gadgets))
	factory.ForResource(gadgets)
	mux := http.NewServeMux()
	mux.Handle("/readyz", factory.Readyz())
	probe := func() {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		fmt.Println(answer.Code, strings.TrimSpace(answer.Body.String()))
	}

	probe()
	factory.Start(ctx)
	if err := factory.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
	probe()
	fmt.Println(factory.Shutdown(ctx))
	// Output:
	// 500 gvrkit-informer-sync failed:
	// gadgets.v1.example.com: Unknown (NotStarted)
	// 200 ok
	// <nil>
}

// The second list waits until the first one is complete.
func ExampleWithListConcurrency() {
	ctx := context.Background()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	gears := gadgets.GroupVersion().WithResource("gears")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{gadgets: "GadgetList", gears: "GearList"})
	arrived, respond := make(chan struct{}), make(chan struct{})
	client.PrependReactor("list", "gadgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		close(arrived)
		<-respond
		return false, nil, nil
	})
	factory, err := dynamicinformer.New(client, dynamicinformer.WithListConcurrency(1))
	if err != nil {
		log.Fatal(err)
	}
	factory.Start(ctx)
	if _, err := factory.Acquire(ctx, gadgets); err != nil {
		log.Fatal(err)
	}
	<-arrived
	lease, err := factory.Acquire(ctx, gears)
	if err != nil {
		log.Fatal(err)
	}
	for now := range lease.Watch(ctx) {
		if now.Reason == status.ReasonQueued {
			fmt.Println(now.GVR.Resource, now.State, now.Reason)
			break
		}
	}
	close(respond)
	fmt.Println(factory.WaitForSync(ctx))
	fmt.Println(lease.Status().State)
	fmt.Println(factory.Shutdown(ctx))
	// Output:
	// gears Starting Queued
	// <nil>
	// Synced
	// <nil>
}

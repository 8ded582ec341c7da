package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gvrkit/gvrkit/discovery"
)

// newFakeResolver returns a resolver on a fake of client-go that serves gadgets and nothing
// else. For a cluster, NewForConfig returns a resolver.
func newFakeResolver() *discovery.Resolver {
	resolver, err := discovery.NewFromDiscovery(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{
		Resources: []*metav1.APIResourceList{{
			GroupVersion: "example.com/v1",
			APIResources: []metav1.APIResource{{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", Namespaced: true, Verbs: all}},
		}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	return resolver
}

// A reference is a plural, a singular, a kind or a short name, also with a version and a group.
func ExampleResolver_Resolve() {
	resolver := newFakeResolver()
	for _, ref := range []string{"gadgets", "gadget.example.com", "Gadget", "gadgets.v1.example.com", "gadgetz"} {
		res, err := resolver.Resolve(context.Background(), ref)
		switch {
		case errors.Is(err, discovery.ErrNotServed):
			fmt.Println("not served:", err)
		case err != nil: // for example ErrAmbiguous, ErrInconclusive
			fmt.Println(err)
		default:
			fmt.Println(res.GVR, res.Namespaced)
		}
	}
	// Output:
	// example.com/v1, Resource=gadgets true
	// example.com/v1, Resource=gadgets true
	// example.com/v1, Resource=gadgets true
	// example.com/v1, Resource=gadgets true
	// not served: gadgetz: not served by the API server; did you mean gadgets.example.com?
}

// A server that can't be reached is no reason to take a resource for missing.
func ExampleResolver_Resolve_inconclusive() {
	resolver, err := discovery.NewForConfig(&rest.Config{Host: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = resolver.Resolve(context.Background(), "gadgets")
	fmt.Println(errors.Is(err, discovery.ErrInconclusive), errors.Is(err, discovery.ErrNotServed))
	// Output: true false
}

// A program that accepts several versions of a type asks which of them is served.
func ExampleResolver_ValidateVersion() {
	resolver := newFakeResolver()
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "gadgets"}
	_, err := resolver.Validate(context.Background(), gadgets)
	fmt.Println(err)
	res, err := resolver.ValidateVersion(context.Background(), gadgets, discovery.FirstOf("v2", "v1"), "list")
	fmt.Println(res.GVR.Version, err)
	// Output:
	// gadgets.v2.example.com: not served by the API server in version v2; it is served in v1
	// v1 <nil>
}

// A program checks the resources of its configuration before it connects to a server.
func ExampleCheckGVR() {
	for _, resource := range []string{"gadgets", "gadgets/status"} {
		fmt.Println(discovery.CheckGVR(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: resource}))
	}
	// Output:
	// <nil>
	// resource "gadgets/status.v1.example.com": a subresource can't be listed or watched: remove the part after the resource
}

// The changes come from Run.
func ExampleResolver_Subscribe() {
	resolver := newFakeResolver()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- resolver.Run(ctx) }()

	for event := range resolver.Subscribe(ctx) {
		fmt.Println(event)
		if event.Type == discovery.Removed && event.Evidence.Kind == discovery.CRDDeleted {
			fmt.Println("its objects have been deleted with it")
		}
		cancel() // a program would go on
	}
	fmt.Println(<-ended)
	// Output:
	// Added gadgets.v1.example.com
	// <nil>
}

// A program that starts Run in a goroutine waits for its begin: from then on, questions are answered from
// what Run knows, and send few requests.
func ExampleResolver_Running() {
	resolver := newFakeResolver()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- resolver.Run(ctx) }()

	<-resolver.Running()
	res, err := resolver.Resolve(ctx, "gadgets")
	fmt.Println(res.GVR.Resource, err)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// gadgets <nil>
	// <nil>
}

// A subscriber gets the events of all types. Selects decides which of them a program is interested in.
func ExampleResolver_Selects() {
	resolver := newFakeResolver()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- resolver.Run(ctx) }()

	for event := range resolver.Subscribe(ctx) {
		for _, group := range []string{"example.com", "example.org"} {
			selected, err := resolver.Selects(discovery.Selector{Groups: []string{group}}, event.Resource)
			fmt.Println(group, selected, err)
		}
		cancel() // a program would go on
	}
	fmt.Println(<-ended)
	// Output:
	// example.com true <nil>
	// example.org false <nil>
	// <nil>
}

// The mapper is one for client-go and controller-runtime.
func ExampleResolver_RESTMapper() {
	mapper := newFakeResolver().RESTMapper()
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Gadget"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mapping.Resource, mapping.Scope.Name())
	// Output: example.com/v1, Resource=gadgets namespace
}

package churn_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/churn"
	"github.com/gvrkit/gvrkit/test/churn/mirror"
)

// The controller of package mirror under random operations and faults, on the server of a test.
func Example() { //nolint:testableexamples // the example requires a server
	ctx, server := context.Background(), &rest.Config{} // of the embedded server, for example
	cfg := churn.Config{Servers: []*rest.Config{server}, Subject: mirror.New, Patience: 2 * time.Minute}
	for seed := range uint64(10) {
		result, err := churn.Run(ctx, cfg, churn.Generate(seed, mirror.Profile()))
		if err != nil {
			fmt.Println(err)
			return
		}
		if result.Failed() {
			fmt.Printf("seed %d:\n%v\n%v", seed, result, result.Script)
			short, cancel := context.WithTimeout(ctx, 3*time.Minute)
			defer cancel()
			shortest := churn.Shortest(short, cfg, result)
			fmt.Printf("a shorter script:\n%v\n%v", shortest, shortest.Script)
			return
		}
	}
}

// All kinds of faults.
func ExampleFaultKinds() {
	kinds := churn.FaultKinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Printf("%s: %s\n", kind, kinds[kind])
	}
	// Output:
	// bandwidth: N bytes per second are sent (at=N)
	// breakdefinitions: requests for CRDs fail with status N (code=N)
	// breakdiscovery: requests for discovery documents fail with status N (code=N)
	// breakgroup: requests for the discovery documents of the group fail
	// cutat: the connection breaks after N bytes of the body (at=N)
	// deadgroup: requests for the discovery documents of the group fail, and so do those for objects of all its types
	// delaybookmarks: bookmarks are sent N milliseconds later (ms=N)
	// dropbookmarks: watches send no bookmarks
	// duplicateframe: event N of each watch is sent twice (at=N)
	// expirecontinue: a list expires after N pages (at=N)
	// fail: the response is an error with status N (code=N)
	// garble: all bytes after the first N of the body are invalid (at=N)
	// garbleframe: event N of each watch is invalid (at=N)
	// gone: a watch gets an event that says 410, Gone
	// gonestatus: the response to a watch is 410, Gone
	// hang: there is no response
	// hangat: the body stops after N bytes, and the connection stays open (at=N)
	// html: the response is a page of HTML, as proxies send them
	// noinitialend: the bookmark that ends the initial events of a watch is not sent
	// retryafter: the response is 503 with a Retry-After of a second
	// stalediscovery: discovery documents stay as they are
	// stalegroup: discovery documents say that the group is stale
	// truncate: the body ends after N bytes, without an error (at=N)
}

package discovery_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
)

// follow prints what a server serves, and what becomes of it.
func follow(ctx context.Context, cfg *rest.Config) error {
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- resolver.Run(ctx) }()
	for event := range resolver.Subscribe(ctx) {
		fmt.Println(event) // Added ipamblocks.v1.crd.projectcalico.org
		if event.Type == discovery.Removed && event.Evidence.Kind == discovery.CRDDeleted {
			break // and its objects with it
		}
	}
	cancel()
	return <-ended
}

// A name may be of several resources, of none, or of one that can't be told.
func ExampleResolver_Resolve() {
	resolver, err := discovery.NewForConfig(&rest.Config{Host: "127.0.0.1:0"}) // nobody
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = resolver.Resolve(context.Background(), "ipamblock.crd.projectcalico.org")
	switch {
	case errors.Is(err, discovery.ErrAmbiguous):
		fmt.Println("say which one:", err)
	case errors.Is(err, discovery.ErrNotServed):
		fmt.Println("not there:", err)
	case errors.Is(err, discovery.ErrInconclusive):
		fmt.Println("ask again")
	}
	// Output: ask again
}

// Types are followed with Run beside Subscribe.
func ExampleResolver_Subscribe() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(follow(ctx, &rest.Config{Host: "127.0.0.1:0"}))
	// Output: <nil>
}

package churn_test

import (
	"context"
	"fmt"
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

package docs_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/sharding"
)

// The first requests have no response when the context ends.
func TestScale_TheEndOfTheContextIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	t.Setenv("POD_NAME", "a")
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	if err := run(ctx, &rest.Config{Host: server.URL}, widgets, nil); err != nil {
		t.Error(err)
	}
}

// The follower of docs/scale.md hands slots over: two members never work on one slot, and soon each slot has a member again.
func TestScale_TheFollowerLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakecluster.NewLeaseServer()
		var mu sync.Mutex
		working := map[string]sharding.Slots{}
		join := func(identity string) (leave func()) {
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			member, err := sharding.Join(ctx, server.Client(), sharding.Config{Namespace: "default", Name: "widgets", Identity: identity})
			if err != nil {
				t.Fatal(err)
			}
			end := func(slots sharding.Slots) {
				mu.Lock()
				defer mu.Unlock()
				working[identity] = working[identity].Minus(slots)
			}
			begin := func(slots sharding.Slots) {
				mu.Lock()
				defer mu.Unlock()
				working[identity] = working[identity].Union(slots)
				for other, of := range working {
					if both := of.Intersect(slots); other != identity && !both.Empty() {
						t.Errorf("%s and %s work on %v", identity, other, both)
					}
				}
			}
			following, stop := context.WithCancel(ctx)
			var running sync.WaitGroup
			running.Go(func() { follow(following, member, end, begin) })
			return func() {
				stop()
				running.Wait()
				end(member.View().Slots)
				if err := member.Leave(ctx); err != nil {
					t.Errorf("%s: %v", identity, err)
				}
				cancel()
			}
		}
		check := func(members int) {
			t.Helper()
			time.Sleep(time.Minute) //nolint:forbidigo // in a synctest bubble
			mu.Lock()
			defer mu.Unlock()
			sum := 0
			for _, slots := range working {
				sum += slots.Len()
				if !slots.Empty() && slots.Len() != sharding.SlotCount/members {
					t.Errorf("%d members, and one works on %d slots", members, slots.Len())
				}
			}
			if sum != sharding.SlotCount {
				t.Errorf("%d members work on %d slots", members, sum)
			}
		}
		leaveA := join("a")
		check(1)
		leaveB := join("b")
		check(2)
		leaveA()
		check(1)
		leaveB()
	})
}

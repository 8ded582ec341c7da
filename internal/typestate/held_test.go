package typestate

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
)

// The end of a list that was in progress when discovery refused the type is no proof that requests are possible
// now: while no request is sent, the snapshot has a failure.
func TestState_AListThatEndsWhileTheTypeIsHeldIsNoRecovery(t *testing.T) {
	s := newShips(t)
	yes(served("a"))(s)
	no(&discovery.NotServedError{Ref: discovery.RefOf(ships), Versions: []string{"v2"}})(s)
	s.Succeeded(source.VerbList)
	now := s.Snapshot()
	if _, _, failing := now.Failing(); now.Serving == source.Held && !failing {
		t.Errorf("no request leaves (%s), and nothing fails", now.Serving)
	}
}

// The factory does not run the state of an informer that a user runs. So the result of Confirm must be enough
// to continue.
func TestState_ConfirmOfAnInformerThatIsRunByHandDoesNotThrowListsAwayForEver(t *testing.T) {
	const crd = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"ships.fleet.example.com","uid":"b"}}`
	resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://ships.invalid"}, &http.Client{Transport: transport{200, crd}})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	s := New(ships, Config{Resolver: resolver, Changed: &broadcast.Broadcaster{}, Resolve: func(context.Context) (discovery.Resource, error) {
		asked++
		return served("b"), nil
	}})
	yes(served("a"))(s) // AskUntilServed has learned it, and has returned
	ended, end := context.WithCancel(t.Context())
	end()
	s.Run(ended, func() {}) // the factory has ended; the informer goes on
	for range 100 {
		now, _ := s.Availability().Current()
		if now.Serving != source.Served {
			s.AskUntilServed(t.Context()) // as the source has it called while it waits
			continue
		}
		if s.Confirm(t.Context(), now) {
			return
		}
	}
	t.Errorf("100 lists were thrown away, discovery was asked %d times: %+v", asked, s.Snapshot().Evidence)
}

// Two namespaces of a set are listed at the same time, and neither list is confirmed. The second Confirm makes the answer of discovery after
// the first one outdated.
func TestState_TwoConfirmsOfAnInformerThatIsRunByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crd = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"ships.fleet.example.com","uid":"b"}}`
		resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://ships.invalid"}, &http.Client{Transport: transport{200, crd}})
		if err != nil {
			t.Fatal(err)
		}
		s := New(ships, Config{Resolver: resolver, Changed: &broadcast.Broadcaster{}, Resolve: func(context.Context) (discovery.Resource, error) {
			time.Sleep(100 * time.Millisecond)
			return served("b"), nil
		}})
		yes(served("a"))(s)
		now, _ := s.Availability().Current()
		if s.Confirm(t.Context(), now) {
			t.Fatal("confirmed")
		}
		go func() {
			time.Sleep(50 * time.Millisecond)
			if s.Confirm(t.Context(), now) {
				t.Error("confirmed")
			}
		}()
		s.AskUntilServed(t.Context())
		if got := s.Snapshot().Serving; got != source.Served {
			t.Errorf("discovery is not asked again, and the type is %s", got)
		}
	})
}

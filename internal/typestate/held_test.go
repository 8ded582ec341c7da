package typestate

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
)

// A list that was under way when discovery refused the type says nothing about whether it can be
// asked for from now on: while nothing is requested, something fails.
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

// Of an informer that its user runs nobody follows discovery: what Confirm finds out has to be
// enough to go on.
func TestState_ConfirmOfAnInformerThatIsRunByHandDoesNotThrowListsAwayForEver(t *testing.T) {
	const crd = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"ships.fleet.example.com","uid":"b"}}`
	resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://ships.invalid"}, &http.Client{Transport: transport{200, crd}})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	s := New(Config{GVR: ships, Resolver: resolver, Changed: &broadcast.Broadcaster{}, Resolve: func(context.Context) (discovery.Resource, error) {
		asked++
		return served("b"), nil
	}})
	yes(served("a"))(s) // AskUntilServed has learned it, and has returned
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

package dynamicinformer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// explained returns what f says about gvr, a line for each step.
func explained(f *dynamicinformer.Factory, gvr schema.GroupVersionResource) []string {
	synctest.Wait()
	return strings.Split(f.Explain(gvr).String(), "\n")
}

func TestExplain_TellsTheWholeStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		v2 := schema.GroupVersionResource{Group: widgets.Group, Version: "v2", Resource: widgets.Resource}
		if diff := cmp.Diff([]string{"Nobody has asked for widgets.v1.example.com."}, explained(f, widgets)); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		l := acquire(t, f, widgets, dynamicinformer.AllowAbsent(), dynamicinformer.WithLeaseName("gc"))
		f.ForResource(widgets)
		f.ForResource(blocks)
		want := []string{
			`widgets.v1.example.com is wanted by ForResource, 1 lease of "gc" for 0s: Unknown (NotStarted).`,
			"Discovery has not said anything about it yet.",
			"It waits for the factory's Start.",
		}
		if diff := cmp.Diff(want, explained(f, widgets)); diff != "" {
			t.Errorf("not started (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Nobody has asked for widgets.v2.example.com. There are informers on widgets.v1.example.com."}, explained(f, v2)); diff != "" {
			t.Errorf("another version (-want +got):\n%s", diff)
		}

		f.Start(t.Context())
		time.Sleep(10 * time.Second)
		want = []string{
			`widgets.v1.example.com is wanted by ForResource, 1 lease of "gc" for 10s: NotServed (NotFound).`,
			"Discovery has said for 10s: widgets.v1.example.com: not served by the API server; is its CustomResourceDefinition installed?" +
				" News of CustomResourceDefinitions: Forbidden (client-go's DiscoveryInterface has no watch)." +
				" News of APIServices: Forbidden (client-go's DiscoveryInterface has no watch).",
			"No request has been made for it.",
			"No request is made for it until it is served.",
		}
		if diff := cmp.Diff(want, explained(f, widgets)); diff != "" {
			t.Errorf("not served (-want +got):\n%s", diff)
		}

		cluster.Serve(widgetType)
		create(t, cluster, widgets, "ns", "a")
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		got := explained(f, widgets)
		if len(got) != 5 || !strings.HasSuffix(got[0], ": Synced for 2s.") ||
			!strings.HasPrefix(got[1], "It is served as widgets.v1.example.com, kind Widget, in namespaces.") ||
			got[2] != "Requests go well, at cluster scope: 1 list and 1 watch were answered." ||
			!strings.HasPrefix(got[3], "Its cache has 1 object, up to resourceVersion ") || !strings.HasSuffix(got[3], "; the last event came 2s ago.") ||
			got[4] != `Handler github.com/gvrkit/gvrkit/dynamicinformer_test.slow of "gc" has been called 0 times, is in a call for 2s, 1 event waiting.` {
			t.Errorf("synced:\n%s", strings.Join(got, "\n"))
		}
		close(handler.let)
		shutdown(t, f)
	})
}

func TestExplain_SaysWhatIsTriedAgainAndWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(context.Context, fakecluster.Request) error {
			return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("not you"))
		})
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		f.Start(t.Context())
		time.Sleep(time.Minute)
		e := f.Explain(widgets)
		if len(e.Chain) != 4 || len(e.Informers) != 1 || e.Informers[0].State != dynamicinformer.StateDegraded || !e.At.Equal(time.Now()) || e.Discovery != nil {
			t.Fatalf("explanation: %+v", e)
		}
		requests, next := e.Chain[2], e.Chain[3]
		if requests.About != dynamicinformer.StepRequests || !strings.HasPrefix(requests.Text, "It cannot list at cluster scope: widgets.example.com is forbidden") || !strings.Contains(requests.Text, "(Forbidden for 60s, ") {
			t.Errorf("requests: %+v", requests)
		}
		if next.About != dynamicinformer.StepNext || !strings.HasPrefix(next.Text, "It is tried again in ") || !strings.HasSuffix(next.Text, " To do: grant the user list and watch on it.") {
			t.Errorf("next: %+v", next)
		}
		if e.Chain[1].Text != "Without discovery, its requests have to tell whether it is served." {
			t.Errorf("served: %+v", e.Chain[1])
		}
		shutdown(t, f)
	})
}

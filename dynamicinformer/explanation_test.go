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
	"github.com/gvrkit/gvrkit/status"
)

// explained returns f's explanation of gvr, with a line for each step.
func explained(f *dynamicinformer.Factory, gvr schema.GroupVersionResource) []string {
	synctest.Wait()
	return strings.Split(f.Explain(gvr).String(), "\n")
}

func TestExplain_DescribesEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		v2 := schema.GroupVersionResource{Group: widgets.Group, Version: "v2", Resource: widgets.Resource}
		if diff := cmp.Diff([]string{"There is no informer on widgets.v1.example.com."}, explained(f, widgets)); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		l := acquire(t, f, widgets, dynamicinformer.WithAllowAbsent(), dynamicinformer.WithLeaseName("gc"))
		f.ForResource(widgets)
		f.ForResource(blocks)
		want := []string{
			`widgets.v1.example.com is requested by ForResource and 1 lease of "gc" for 0s. State: Unknown (NotStarted).`,
			"Discovery has not answered yet.",
			"To do: call Start on the factory.",
		}
		if diff := cmp.Diff(want, explained(f, widgets)); diff != "" {
			t.Errorf("not started (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"There is no informer on widgets.v2.example.com. There is one on widgets.v1.example.com."}, explained(f, v2)); diff != "" {
			t.Errorf("another version (-want +got):\n%s", diff)
		}

		f.Start(t.Context())
		time.Sleep(10 * time.Second)
		want = []string{
			`widgets.v1.example.com is requested by ForResource and 1 lease of "gc" for 10s. State: NotServed (NotFound) for 10s.`,
			"Discovery has answered for 10s: widgets.v1.example.com: not served by the API server; is its CustomResourceDefinition installed?" +
				" CustomResourceDefinitions can't be read: Forbidden (client-go's DiscoveryInterface has no watch)." +
				" APIServices can't be read: Forbidden (client-go's DiscoveryInterface has no watch).",
			"No list or watch is sent until the type is served.",
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
		if len(got) != 5 || !strings.HasSuffix(got[0], " State: Synced for 2s.") ||
			!strings.HasPrefix(got[1], "It is served as widgets.v1.example.com, kind Widget, namespaced.") ||
			got[2] != "Requests in all namespaces: 1 list and 1 watch have succeeded." ||
			!strings.HasPrefix(got[3], "The cache has 1 object at resourceVersion ") || !strings.HasSuffix(got[3], "; the last event was 2s ago.") ||
			got[4] != `Handler github.com/gvrkit/gvrkit/dynamicinformer_test.slow of lease "gc": 0 calls finished, one running for 2s, 1 event waiting.` {
			t.Errorf("synced:\n%s", strings.Join(got, "\n"))
		}
		close(handler.let)
		shutdown(t, f)
	})
}

func TestExplain_HasRetriesAndAdvice(t *testing.T) {
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
		if len(e.Chain) != 4 || len(e.Informers) != 1 || e.Informers[0].State != status.StateDegraded || !e.At.Equal(time.Now()) || e.Discovery != nil {
			t.Fatalf("explanation: %+v", e)
		}
		requests, next := e.Chain[2], e.Chain[3]
		if requests.About != status.StepRequests || !strings.HasPrefix(requests.Text, "Cannot list: not you") || !strings.Contains(requests.Text, "(for 60s, ") {
			t.Errorf("requests: %+v", requests)
		}
		if next.About != status.StepNext || !strings.HasPrefix(next.Text, "The next attempt is in ") || !strings.HasSuffix(next.Text, ` To do: grant this rule to the user in a ClusterRole: - {apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"]}`) {
			t.Errorf("next: %+v", next)
		}
		if e.Chain[1].Text != "The factory has no discovery: only requests show whether the type is served." {
			t.Errorf("served: %+v", e.Chain[1])
		}
		shutdown(t, f)
	})
}

// An explanation has the server's text of a forbidden request once, with the rule that allows it.
func TestExplain_HasTheForbiddenRequestOnceWithTheRule(t *testing.T) {
	for namespace, role := range map[string]string{"": "ClusterRole", "ns": `Role of namespace "ns"`} {
		synctest.Test(t, func(t *testing.T) {
			cluster := fakecluster.New(widgetType)
			const says = `User "bob" cannot list resource "widgets" in API group "example.com"`
			cluster.Intercept(func(context.Context, fakecluster.Request) error {
				return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New(says))
			})
			f := newFactory(t, cluster, dynamicinformer.WithNamespace(namespace))
			f.ForResource(widgets)
			f.Start(t.Context())
			time.Sleep(time.Minute)
			rule := role + `: - {apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"]}`
			texts := map[string]string{
				"explanation": f.Explain(widgets).String(),
				"error":       waitFor(t.Context(), f, time.Second).Error(),
				"page":        look(t, f.Handler(), "").Body.String(),
				"detail":      look(t, f.Handler(), "resource=widgets.v1.example.com").Body.String(),
			}
			for name, text := range texts {
				if strings.Contains(text, " is forbidden") || strings.Count(text, says) != 1 || strings.Count(text, rule) != 1 {
					t.Errorf("%s: %s", name, text)
				}
			}
			shutdown(t, f)
		})
	}
}

func TestExplain_CountsGenerationsFromOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := f.Explain(widgets).String(); strings.Contains(text, "generation") {
			t.Errorf("first generation: %s", text)
		}
		cluster.Withdraw(widgets)
		clusterScoped := widgetType
		clusterScoped.Namespaced = false
		cluster.Serve(clusterScoped)
		time.Sleep(5 * time.Minute)
		text := f.Explain(widgets).String()
		if !strings.Contains(text, "kind Widget, cluster-scoped. This is generation 2 of this type.") || strings.Contains(text, "namespaces") {
			t.Errorf("second generation: %s", text)
		}
		shutdown(t, f)
	})
}

// Before Start the scope is unknown, and errors do not contain it.
func TestWaitForSync_NotStartedHasNoScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFactory(t, fakecluster.New(widgetType))
		err := f.WaitForSync(briefly(t), dynamicinformer.WithFailFast(), dynamicinformer.WithResources(widgets))
		const want = "widgets.v1.example.com: not synced: no informer on it has been started (NotStarted); call Start, and before it ForResource or Acquire if there is no informer"
		if err == nil || err.Error() != want {
			t.Errorf("error: %v\nwant:  %s", err, want)
		}
	})
}

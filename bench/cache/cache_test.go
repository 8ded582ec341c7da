package cache

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measure measures a contestant on a server that has more objects than it expects.
func measure(t *testing.T, l load, contestant harness.Contestant, more int) (harness.Figures, error) {
	t.Helper()
	handler, err := stub.New(t.Context(), stub.Config{Kind: l.kind.Name, Objects: l.objects + more})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	connection, err := json.Marshal(stub.Client{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // longer than the test takes
	defer cancel()
	return contestant.Measure(ctx, harness.Job{Connection: connection})
}

func TestMeasure_EachContestantCachesAllObjects(t *testing.T) {
	for _, kind := range objects.All() {
		l := load{kind, 20, 50}
		c := l.newCase("", 1, append(l.contestants(), l.forms()[1:]...))
		for _, contestant := range c.Contestants {
			t.Run(contestant.Name+"/"+kind.Name, func(t *testing.T) {
				figures, err := measure(t, l, contestant, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range c.Metrics {
					if v, ok := figures[m.Name]; !ok || v <= 0 && m.Name != retainedHeap && m.Name != eventCPU {
						t.Errorf("%s: %v, %v", m.Name, v, ok)
					}
				}
			})
		}
	}
}

func TestMeasure_FailsIfTheServerHasOtherObjects(t *testing.T) {
	l := load{objects.All()[1], 20, 50}
	_, err := measure(t, l, l.contestants()[0], 1)
	if err == nil || !strings.Contains(err.Error(), "the server has 21, want 20") {
		t.Errorf("error: %v", err)
	}
}

func TestCompare_NamesTheObjectAndShowsTheDifference(t *testing.T) {
	kind := objects.All()[1]
	object := func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: kind.Object(1)} }
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := compare(store, nil, object()); err == nil || !strings.Contains(err.Error(), object().GetName()) {
		t.Errorf("missing object: %v", err)
	}
	cached := func(change func(*unstructured.Unstructured)) {
		obj := object()
		change(obj)
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	cached(func(*unstructured.Unstructured) {})
	if err := compare(store, nil, object()); err != nil {
		t.Errorf("equal objects: %v", err)
	}
	cached(func(u *unstructured.Unstructured) { u.SetGeneration(4711) })
	if err := compare(store, nil, object()); err == nil || !strings.Contains(err.Error(), object().GetName()) || !strings.Contains(err.Error(), "4711") {
		t.Errorf("different object: %v", err)
	}
	cached(func(u *unstructured.Unstructured) { u.SetManagedFields(nil) })
	if err := compare(store, nil, object()); err == nil {
		t.Error("no error for missing managedFields")
	}
	if err := compare(store, strip, object()); err != nil {
		t.Errorf("missing managedFields are allowed: %v", err)
	}
}

func TestCompare_OtherForms(t *testing.T) {
	for i, forms := range [][]cache.TransformFunc{{decoded[objects.IPAMBlock], metadataOf}, {decoded[objects.Widget], metadataOf}} {
		kind := objects.All()[i]
		for _, form := range forms {
			object := func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: kind.Object(1)} }
			cached, err := form(object())
			if err != nil {
				t.Fatal(err)
			}
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			if err := store.Add(cached); err != nil {
				t.Fatal(err)
			}
			if err := compare(store, form, object()); err != nil {
				t.Errorf("equal objects: %v", err)
			}
			cached.(metav1.Object).SetGeneration(4711)
			if err := compare(store, form, object()); err == nil || !strings.Contains(err.Error(), "4711") {
				t.Errorf("different %T: %v", cached, err)
			}
			if err := compare(store, nil, object()); err == nil {
				t.Errorf("no error for %T instead of an unstructured object", cached)
			}
		}
	}
}

func TestForms_HaveTargetsBesideTheFirstAndClientGosMetadata(t *testing.T) {
	for _, kind := range objects.All() {
		c := load{kind, 20, 50}.newCase("-forms", 1, load{kind, 20, 50}.forms())
		names := map[string]bool{}
		for _, contestant := range c.Contestants {
			names[contestant.Name] = true
		}
		targets := 0
		for _, contestant := range c.Contestants {
			for _, target := range contestant.Targets {
				if targets++; target.AtMost <= 0 || !names[target.To] || target.To == contestant.Name {
					t.Errorf("%s: %+v", contestant.Name, target)
				}
			}
			if contestant.Beside != "" && !names[contestant.Beside] {
				t.Errorf("%s beside %s", contestant.Name, contestant.Beside)
			}
		}
		if c.Reference() != "client-go" || targets != 6 {
			t.Errorf("%s: %d targets, ratios to %s", c.Name, targets, c.Reference())
		}
	}
}

package cache

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do measures a contestant on a server that has one more object than it says.
func do(t *testing.T, contestant string, kind objects.Kind, more int) (harness.Figures, string, error) {
	t.Helper()
	params := Params{Kind: kind.Name, Objects: 20, Events: 50}
	handler, err := stub.New(t.Context(), stub.Config{Kind: kind.Name, Objects: params.Objects + more})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	params.Host = server.URL
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // it only ends a test that hangs
	defer cancel()
	changed := make(chan error, 1)
	job := harness.Job{Contestant: contestant, Params: text, Profile: t.TempDir() + "/p", Ready: func() error {
		go func() { changed <- stub.Client{Host: server.URL}.Change(ctx, params.Events) }()
		return nil
	}}
	figures, err := measure(ctx, job)
	if err == nil {
		err = <-changed
	}
	return figures, job.Profile, err
}

func TestMeasure_EverySystemCachesWhatTheServerHas(t *testing.T) {
	for _, system := range systems() {
		for _, kind := range objects.All() {
			t.Run(system.Name+"/"+kind.Name, func(t *testing.T) {
				figures, profiles, err := do(t, system.Name, kind, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range metrics() {
					if v, ok := figures[m.Name]; !ok || v <= 0 && m.Name != retainedHeap && m.Name != eventCPU {
						t.Errorf("%s: %v, %v", m.Name, v, ok)
					}
				}
				for _, name := range []string{"-sync.cpu.pprof", "-events.cpu.pprof", "-sync.mem.pprof", "-events.mem.pprof"} {
					if info, err := os.Stat(profiles + name); err != nil || info.Size() == 0 {
						t.Errorf("profile %s: %v", name, err)
					}
				}
			})
		}
	}
}

func TestMeasure_FailsIfTheServerHasOtherObjects(t *testing.T) {
	_, _, err := do(t, "client-go", objects.All()[1], 1)
	if err == nil || !strings.Contains(err.Error(), "the server has 21, want 20") {
		t.Errorf("error: %v", err)
	}
}

func TestCompare_NamesTheObjectAndShowsTheDifference(t *testing.T) {
	kind, err := objects.Named("mix")
	if err != nil {
		t.Fatal(err)
	}
	object := func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: kind.Object(1)} }
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := compare(store, false, object()); err == nil || !strings.Contains(err.Error(), object().GetName()) {
		t.Errorf("an object that is missing: %v", err)
	}
	cached := func(change func(*unstructured.Unstructured)) {
		obj := object()
		change(obj)
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	cached(func(*unstructured.Unstructured) {})
	if err := compare(store, false, object()); err != nil {
		t.Errorf("equal objects: %v", err)
	}
	cached(func(u *unstructured.Unstructured) { u.SetGeneration(4711) })
	if err := compare(store, false, object()); err == nil || !strings.Contains(err.Error(), object().GetName()) || !strings.Contains(err.Error(), "4711") {
		t.Errorf("an object that differs: %v", err)
	}
	cached(func(u *unstructured.Unstructured) { u.SetManagedFields(nil) })
	if err := compare(store, false, object()); err == nil {
		t.Error("managedFields may be missing")
	}
	if err := compare(store, true, object()); err != nil {
		t.Errorf("managedFields may not be missing: %v", err)
	}
}

func TestCounter_SaysWhatIsMissing(t *testing.T) {
	var c counter
	g := c.expect(3)
	c.OnAdd(nil, true)
	c.OnUpdate(nil, nil)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := c.wait(ctx, g); !errors.Is(err, over) || !strings.Contains(err.Error(), "1 events are missing") {
		t.Errorf("wait: %v", err)
	}
	c.OnDelete(nil)
	if at, err := c.wait(t.Context(), g); err != nil || at.IsZero() {
		t.Errorf("wait: %v, %v", at, err)
	}
}

package measure

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/systems"
)

// testPatience only ends a test that hangs: under load, what has to come takes long.
const testPatience = 3 * time.Minute

func serve(t *testing.T, kindName string, n int) *httptest.Server {
	t.Helper()
	kind, err := objects.Named(kindName)
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := objects.NewCorpus(t.Context(), kind, n)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(stub.NewHandler(corpus))
	t.Cleanup(server.Close)
	return server
}

func TestRun_EverySystemCachesWhatTheServerHas(t *testing.T) {
	for _, system := range systems.All() {
		for _, kind := range objects.Names() {
			t.Run(system.Name+"/"+kind, func(t *testing.T) {
				server := serve(t, kind, 20)
				ctx, cancel := context.WithTimeout(t.Context(), testPatience)
				defer cancel()
				profiles := t.TempDir() + "/p"
				job := Job{
					System: system.Name, Kind: kind, Objects: 20, Events: 50, Server: Server{Host: server.URL},
					CPUProfile: profiles, MemProfile: profiles,
				}
				changed := make(chan error, 1)
				f, err := Run(ctx, job, func() error {
					go func() { changed <- stub.Change(ctx, server.URL, job.Events) }()
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := <-changed; err != nil {
					t.Error(err)
				}
				if f.SyncCPU <= 0 || f.SyncWall <= 0 || f.SyncAllocs == 0 || f.SyncBytes == 0 || f.PeakRSS <= 0 || f.GCCPU <= 0 || f.EventWall <= 0 {
					t.Errorf("figures: %+v", f)
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

func TestRun_FailsIfTheServerHasNotWhatItShould(t *testing.T) {
	server := serve(t, "mix", 21)
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	_, err := Run(ctx, Job{System: systems.Reference, Kind: "mix", Objects: 20, Server: Server{Host: server.URL}}, func() error { return nil })
	if err == nil || !strings.Contains(err.Error(), "the server has 21, of 20") {
		t.Errorf("Run: %v", err)
	}
}

// fixed is a cache of one object.
type fixed struct {
	systems.Cache
	object *unstructured.Unstructured
}

func (f fixed) Object(context.Context, string, string) (*unstructured.Unstructured, error) {
	return f.object, nil
}

func TestCompare_NamesTheObjectAndShowsTheDifference(t *testing.T) {
	kind, err := objects.Named("mix")
	if err != nil {
		t.Fatal(err)
	}
	object := func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: kind.Object(1)} }
	system := systems.System{Name: "s"}
	if err := compare(t.Context(), system, fixed{object: object()}, object()); err != nil {
		t.Errorf("equal objects: %v", err)
	}
	wrong := object()
	wrong.SetGeneration(4711)
	err = compare(t.Context(), system, fixed{object: wrong}, object())
	if err == nil || !strings.Contains(err.Error(), object().GetName()) || !strings.Contains(err.Error(), "4711") {
		t.Errorf("an object that differs: %v", err)
	}
	stripped := object()
	stripped.SetManagedFields(nil)
	if err := compare(t.Context(), system, fixed{object: stripped}, object()); err == nil {
		t.Error("managedFields may be missing")
	}
	system.Drops = true
	if err := compare(t.Context(), system, fixed{object: stripped}, object()); err != nil {
		t.Errorf("managedFields may not be missing: %v", err)
	}
}

func TestCounter_SaysWhatIsMissing(t *testing.T) {
	var c counter
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetResourceVersion("42")
	g := c.expect(3)
	c.OnAdd(u, true)
	c.OnUpdate(u, u)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := c.wait(ctx, g); !errors.Is(err, over) || !strings.Contains(err.Error(), "1 events are missing; the last version is 42") {
		t.Errorf("wait: %v", err)
	}
	c.OnDelete(u)
	if at, err := c.wait(t.Context(), g); err != nil || at.IsZero() {
		t.Errorf("wait: %v, %v", at, err)
	}
}

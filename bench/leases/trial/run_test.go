package trial

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/leases/informers"
	"github.com/gvrkit/gvrkit/bench/measure"
)

// serve serves a cluster until the test ends.
func serve(t *testing.T) measure.Server {
	t.Helper()
	c, err := cluster.New(cluster.Size{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return measure.Server{Host: server.URL, Discovery: true}
}

func TestRun_ALeaseThatOthersHaveCostsNoRequest(t *testing.T) {
	f, err := Run(t.Context(), Job{Part: PartCost, System: informers.GVRKit, Server: serve(t), Size: Size{Pairs: 300, Settle: calm}})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Cost) != len(Goroutines()) || f.Armed != nil {
		t.Fatalf("%+v", f)
	}
	for i, c := range f.Cost {
		if c.Goroutines != Goroutines()[i] || c.Nanos <= 0 || c.Allocs < 1 || c.Requests != 0 {
			t.Errorf("%+v", c)
		}
	}
}

func TestRun_ArmedInformersOfBothAreCounted(t *testing.T) {
	asked := map[string]int64{}
	for _, system := range PartArmed.Systems() {
		f, err := Run(t.Context(), Job{
			Part: PartArmed, System: system, Server: serve(t), Size: Size{Armed: 50, Settle: 100 * time.Millisecond, Count: 2 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		a := f.Armed
		if a.Informers != 50 || a.Time < 2*time.Second || a.Bare.Heap <= 0 || a.Handlers.Heap <= 0 || f.Cost != nil {
			t.Errorf("%s: %+v", system, a)
		}
		asked[system] = a.Requests
	}
	if theirs, ours := asked[informers.ClientGo], asked[informers.GVRKit]; theirs < 20 || ours > 5 {
		t.Errorf("client-go has made %d requests, gvrkit %d", theirs, ours)
	}
}

func TestRun_FailsIfThePartOrTheSystemIsUnknown(t *testing.T) {
	for _, job := range []Job{{Part: "everything"}, {Part: PartArmed, System: "kubectl"}} {
		if _, err := Run(t.Context(), job); err == nil {
			t.Errorf("%+v: no error", job)
		}
	}
}

func TestArmed_FailsIfATypeIsTakenForOneThatIsThere(t *testing.T) {
	tr := &trial{job: Job{Server: serve(t), Size: Size{Armed: 2, Count: time.Millisecond}}}
	tr.set = &informers.Set{Arm: func(context.Context, schema.GroupVersionResource) (*informers.Informer, error) {
		return &informers.Informer{
			Handle: func(cache.ResourceEventHandler) error { return nil },
			Synced: func(context.Context) error { return nil },
		}, nil
	}}
	if err := tr.armed(t.Context()); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("error: %v", err)
	}
}

func TestOpen_StopsTheSystemIfItFails(t *testing.T) {
	broken := errors.New("broken")
	tr := &trial{job: Job{System: informers.ClientGo, Server: serve(t)}}
	tr.cfg = tr.job.Server.Config()
	err := tr.open(func(ctx context.Context) error {
		if _, err := tr.arm(ctx, 0, 1); err != nil {
			return err
		}
		return broken
	})(t.Context())
	if !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
}

func TestFigures_WithKeepsWhatWasMeasuredBefore(t *testing.T) {
	f := Figures{Cost: []Cost{{Goroutines: 1}}}.With(Figures{Armed: &Armed{}}).With(Figures{Parked: &Parked{}}).With(Figures{Back: []Cycle{{}}})
	if f.Cost == nil || f.Armed == nil || f.Parked == nil || f.Back == nil {
		t.Errorf("%+v", f)
	}
}

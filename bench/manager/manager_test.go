package manager

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// measure measures the contestant of l with this index.
func measure(t *testing.T, l load, index int) (harness.Figures, error) {
	t.Helper()
	handler, err := stub.New(t.Context(), stub.Config{Kind: l.kind.Name, Objects: l.objects, Kinds: l.kinds})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	connection, err := json.Marshal(stub.Client{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // longer than the test takes
	defer cancel()
	return l.newCase().Contestants[index].Measure(ctx, harness.Job{Connection: connection})
}

func TestMeasure_EachContestantReconcilesAllObjects(t *testing.T) {
	for _, kind := range objects.All() {
		l := load{kind: kind, kinds: 3, objects: 40}
		c := l.newCase()
		for index := range c.Contestants {
			t.Run(kind.Name+"/"+c.Contestants[index].Name, func(t *testing.T) {
				figures, err := measure(t, l, index)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range c.Metrics {
					if v, ok := figures[m.Name]; !ok || v <= 0 && m.Name != retainedHeap {
						t.Errorf("%s: %v, %v", m.Name, v, ok)
					}
				}
			})
		}
	}
}

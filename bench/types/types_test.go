package types

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do measures a contestant on a server whose CRDs have two objects each.
func do(t *testing.T, contestant string, types, objects int) (harness.Figures, error) {
	t.Helper()
	s, err := stub.New(t.Context(), stub.Config{CRDs: 6, SchemaBytes: 2000, Objects: 2})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	params, err := json.Marshal(Params{Server: cluster.Connection{Host: server.URL}, Types: types, Objects: objects, Rest: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return measure(t.Context(), harness.Job{Contestant: contestant, Params: params})
}

func TestMeasure_EverySystem(t *testing.T) {
	for _, types := range []int{1, 6} {
		for _, s := range systems() {
			f, err := do(t, s.Name, types, 2)
			if err != nil {
				t.Fatalf("%s, %d types: %v", s.Name, types, err)
			}
			if len(f) != len(metrics(types)) || f[returned] <= 0 || f[synced] <= 0 || f[returnedCPU] <= 0 || f[restCPU] < f[returnedCPU] || f[lists] < float64(types) {
				t.Errorf("%s, %d types: %v", s.Name, types, f)
			}
			// Those with a target have discovery.
			if f[documents] > 0 != s.Target || f[definitions] > 0 != s.Target || f[bytesRead] > 0 != s.Target || f[beforeList] > 0 && !s.Target {
				t.Errorf("%s, %d types: discovery: %v", s.Name, types, f)
			}
		}
	}
}

func TestMeasure_FailsIfAnObjectIsMissing(t *testing.T) {
	if _, err := do(t, "client-go", 1, 3); err == nil || !strings.Contains(err.Error(), "has 2 objects, want 3") {
		t.Errorf("error: %v", err)
	}
}

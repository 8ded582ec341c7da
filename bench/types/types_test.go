package types

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMeasure_OnARealServer(t *testing.T) {
	size := cluster.Size{CRDs: 6, SchemaBytes: 2000, Objects: 2}
	servers, err := cluster.Start(t.Context(), cluster.Embedded, io.Discard, size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	}()
	reached, err := json.Marshal(servers.Reached)
	if err != nil {
		t.Fatal(err)
	}
	for _, types := range []int{1, size.CRDs} {
		for _, c := range contestants(size, 100*time.Millisecond) {
			f, err := c.Measure(t.Context(), harness.Job{Part: partOf(types), Servers: reached})
			if err != nil {
				t.Fatalf("%s, %d types: %v", c.Name, types, err)
			}
			if len(f) != len(metrics(types)) || f[returned] <= 0 || f[synced] <= 0 || f[returnedCPU] <= 0 || f[restCPU] < f[returnedCPU] || f[lists] < float64(types) {
				t.Errorf("%s, %d types: %v", c.Name, types, f)
			}
			// Those with a target have discovery.
			if f[documents] > 0 != c.Target || f[definitions] > 0 != c.Target || f[bytesRead] > 0 != c.Target || f[beforeList] > 0 && !c.Target {
				t.Errorf("%s, %d types: discovery: %v", c.Name, types, f)
			}
		}
	}
	size.Objects = 3
	_, err = contestants(size, 0)[0].Measure(t.Context(), harness.Job{Part: partOf(1), Servers: reached})
	if err == nil || !strings.Contains(err.Error(), "has 2 objects, want 3") {
		t.Errorf("an object is missing: %v", err)
	}
}

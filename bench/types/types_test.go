package types

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/cluster/clustertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMeasure_OnARealServer(t *testing.T) {
	size := cluster.Size{CRDs: 6, SchemaBytes: 2000, Objects: 2}
	job := clustertest.Job(t, clustertest.Start(t, cluster.Server{Size: size}))
	for _, types := range []int{1, size.CRDs} {
		for _, c := range contestants(system{Size: size, watched: types, idle: 100 * time.Millisecond}) {
			f, err := c.Measure(t.Context(), job)
			if err != nil {
				t.Fatalf("%s, %d types: %v", c.Name, types, err)
			}
			if len(f) != 9 || f[returned] <= 0 || f[synced] <= 0 || f[returnedCPU] <= 0 || f[restCPU] < f[returnedCPU] || f[lists] < float64(types) {
				t.Errorf("%s, %d types: %v", c.Name, types, f)
			}
			discovers := len(c.Targets) > 0 // only these contestants have targets
			if f[documents] > 0 != discovers || f[definitions] > 0 != discovers || f[bytesRead] > 0 != discovers || f[beforeList] > 0 && !discovers {
				t.Errorf("%s, %d types: discovery: %v", c.Name, types, f)
			}
		}
	}
	size.Objects = 3
	_, err := contestants(system{Size: size, watched: 1})[0].Measure(t.Context(), job)
	if err == nil || !strings.Contains(err.Error(), "has 2 objects, want 3") {
		t.Errorf("missing object: %v", err)
	}
}

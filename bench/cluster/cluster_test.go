package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/cluster/clustertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDefinitions_HaveDifferentNames(t *testing.T) {
	names, kinds := map[string]int{}, map[schema.GroupKind]int{}
	for _, d := range append(cluster.Definitions(600), cluster.Additional(0), cluster.Additional(1)) {
		names[d.Name()]++
		kinds[d.Types[0].GVK.GroupKind()]++
	}
	if len(names) != 602 || len(kinds) != 602 {
		t.Errorf("%d names, %d kinds", len(names), len(kinds))
	}
}

func TestDefinitions_HaveTheRequestedSizeAndDiffer(t *testing.T) {
	const n, size = 20, 30_000
	var all []byte
	for _, d := range cluster.Definitions(n) {
		text, err := d.CRD(size).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
		if len(text) < size*8/10 || len(text) > size*13/10 {
			t.Errorf("%s has %d bytes, want %d", d.Name(), len(text), size)
		}
		again, err := cluster.NewDefinition(d.Number).CRD(size).MarshalJSON()
		if err != nil || string(again) != string(text) {
			t.Errorf("%s differs the second time: %v", d.Name(), err)
		}
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if compressed := len(w.EncodeAll(all, nil)) / n; compressed < size/4 {
		t.Errorf("%d bytes a CRD when compressed", compressed)
	}
}

func TestConnection_RoundTripsThroughJSON(t *testing.T) {
	want := cluster.Connection{Host: "https://127.0.0.1:1", Token: "t"}
	want.TLS.CAData, want.TLS.ServerName = []byte("ca"), "kube"
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got cluster.Connection
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if cfg := got.Config(); cfg.Host != want.Host || cfg.BearerToken != "t" || string(cfg.CAData) != "ca" || cfg.ServerName != "kube" || cfg.QPS != -1 {
		t.Errorf("%+v", cfg)
	}
}

func TestStart_FailsIfTheServerIsNotFilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (cluster.Server{Name: cluster.Embedded, Size: cluster.Size{CRDs: 1}}).Start(ctx, io.Discard); err == nil {
		t.Error("no error")
	}
}

func TestStart_APlainServerServesCRDsOverHTTP(t *testing.T) {
	c := clustertest.Start(t, cluster.Server{Plain: true, Size: cluster.Size{CRDs: 3, SchemaBytes: 500}})
	if cfg := c.Config(); cfg.Host[:7] != "http://" {
		t.Errorf("host: %s", cfg.Host)
	}
	client, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cluster.Definitions(3) {
		for _, of := range d.Types {
			list, err := client.ServerResourcesForGroupVersion(of.GVR.GroupVersion().String())
			if err != nil || list.APIResources[0].Kind == "" {
				t.Errorf("%v: %v, %v", of.GVR, list, err)
			}
		}
	}
	createAndDelete(t, c)
}

// createAndDelete creates and deletes a CRD twice.
func createAndDelete(t *testing.T, c cluster.Connection) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // longer than the test takes
	defer cancel()
	crd, err := c.TemporaryCRD(ctx, cluster.Additional(0), 500)
	if err != nil {
		t.Fatal(err)
	}
	defer crd.Stop()
	for range 2 {
		before := time.Now()
		created, err := crd.Create(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := crd.Create(ctx); err == nil {
			t.Error("no error for a CRD that exists")
		}
		deleted, err := crd.Delete(ctx)
		if err != nil || created.Before(before) || deleted.Before(created) || deleted.After(time.Now()) {
			t.Errorf("created at %v and deleted at %v: %v", created, deleted, err)
		}
	}
	over := errors.New("over")
	ended, end := context.WithCancelCause(ctx)
	end(over)
	if _, err := crd.Create(ended); !errors.Is(err, context.Canceled) && !errors.Is(err, over) {
		t.Errorf("error after the end of the context: %v", err)
	}
}

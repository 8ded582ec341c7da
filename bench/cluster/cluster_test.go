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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDefinitions_HaveNamesOfTheirOwn(t *testing.T) {
	names, kinds := map[string]int{}, map[schema.GroupKind]int{}
	for _, d := range append(cluster.Definitions(600), cluster.Newcomer(0), cluster.Newcomer(1)) {
		names[d.Name()]++
		kinds[d.Types[0].GVK.GroupKind()]++
	}
	if len(names) != 602 || len(kinds) != 602 {
		t.Errorf("%d names, %d kinds", len(names), len(kinds))
	}
}

func TestDefinitions_AreAsLargeAsAskedForAndNoCopies(t *testing.T) {
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
			t.Errorf("%s is another one the second time: %v", d.Name(), err)
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

func TestConnection_SurvivesJSON(t *testing.T) {
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

func TestStart_FailsIfTheServerDoesNotBecomeFull(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cluster.Start(ctx, cluster.Embedded, io.Discard, cluster.Size{CRDs: 1}); err == nil {
		t.Error("no error")
	}
}

func TestStartPlain_IsReachedByHTTP1AndHasWhatWasAskedFor(t *testing.T) {
	servers, err := cluster.StartPlain(t.Context(), cluster.Embedded, io.Discard, cluster.Size{CRDs: 3, SchemaBytes: 500})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c := servers.Reached.(cluster.Connection)
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
	visits(t, c)
}

// visits lets a type come and go twice.
func visits(t *testing.T, c cluster.Connection) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // it only ends a test that hangs
	defer cancel()
	v, err := c.Visitor(ctx, cluster.Newcomer(0), 500)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	for range 2 {
		before := time.Now()
		came, err := v.Come(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Come(ctx); err == nil {
			t.Error("it comes while it is there")
		}
		went, err := v.Go(ctx)
		if err != nil || came.Before(before) || went.Before(came) || went.After(time.Now()) {
			t.Errorf("it came at %v and went at %v: %v", came, went, err)
		}
	}
	over := errors.New("over")
	ended, end := context.WithCancelCause(ctx)
	end(over)
	if _, err := v.Come(ended); !errors.Is(err, context.Canceled) && !errors.Is(err, over) {
		t.Errorf("it comes after the end: %v", err)
	}
}

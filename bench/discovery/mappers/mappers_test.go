package mappers_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
)

// patience only ends a test that hangs: under load, what has to come takes long.
const patience = 3 * time.Minute

// open opens a system on a cluster of its own, until the test ends.
func open(t *testing.T, system mappers.System) (*mappers.Mapper, cluster.Admin) {
	t.Helper()
	c, err := cluster.New(cluster.Size{CRDs: 5, SchemaBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	m, err := system.Open(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	if m.Run != nil {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := m.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			cancel()
			running.Wait()
		})
	}
	return m, cluster.Admin{Host: server.URL}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !ok(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not in %v", what, patience)
		}
	}
}

func TestSystems_FindWhatIsServedAndWhatComes(t *testing.T) {
	for _, system := range mappers.All() {
		t.Run(system.Name, func(t *testing.T) {
			m, admin := open(t, system)
			known, newcomer := cluster.Definitions(5)[4].Types[0], cluster.Newcomer(0).Types[0]
			mapping, err := m.RESTMapping(known.GVK.GroupKind(), known.GVK.Version)
			if err != nil || mapping.Resource != known.GVR {
				t.Errorf("%v is mapped to %v: %v", known.GVK, mapping, err)
			}
			if _, err := m.RESTMapping(newcomer.GVK.GroupKind(), newcomer.GVK.Version); !meta.IsNoMatchError(err) {
				t.Errorf("what is not there: %v", err)
			}
			if _, err := admin.Create(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the newcomer", func() bool {
				if m.Forget != nil {
					m.Forget()
				}
				mapping, err := m.RESTMapping(newcomer.GVK.GroupKind(), newcomer.GVK.Version)
				return err == nil && mapping.Resource == newcomer.GVR
			})
		})
	}
}

func TestClientGo_FindsNothingNewUnlessItForgets(t *testing.T) {
	system, err := mappers.Named(mappers.ClientGo)
	if err != nil {
		t.Fatal(err)
	}
	m, admin := open(t, system)
	newcomer := cluster.Newcomer(0).Types[0]
	if _, err := m.RESTMapping(newcomer.GVK.GroupKind()); err == nil {
		t.Fatal("it is there already")
	}
	if _, err := admin.Create(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	before, err := admin.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.RESTMapping(newcomer.GVK.GroupKind()); !meta.IsNoMatchError(err) {
		t.Errorf("before it forgets: %v", err)
	}
	if after, err := admin.Counts(t.Context()); err != nil || after != before {
		t.Errorf("it asks: %+v, %v", after.Since(before), err)
	}
}

func TestGVRKit_SettlesAndAwaits(t *testing.T) {
	system, err := mappers.Named(mappers.GVRKit)
	if err != nil {
		t.Fatal(err)
	}
	m, admin := open(t, system)
	eventually(t, "settled", m.Settled)
	newcomer := cluster.Newcomer(0).Types[0]
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { done <- m.Await(ctx, newcomer.GVR) }()
	if _, err := admin.Create(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := m.Resolve(ctx, newcomer.Ref()); err != nil || got != newcomer.GVR {
		t.Errorf("%s is %v: %v", newcomer.Ref(), got, err)
	}
	if got, err := m.ResolveGVK(ctx, newcomer.GVK); err != nil || got != newcomer.GVR {
		t.Errorf("%v is %v: %v", newcomer.GVK, got, err)
	}
}

func TestNamed_TellsWhatThereIs(t *testing.T) {
	for _, want := range mappers.All() {
		if got, err := mappers.Named(want.Name); err != nil || got.Name != want.Name || got.About == "" {
			t.Errorf("%s: %+v, %v", want.Name, got, err)
		}
	}
	if _, err := mappers.Named("kubectl"); err == nil {
		t.Error("there is a system that is not there")
	}
}

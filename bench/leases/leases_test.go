package leases

import (
	"context"
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/cluster/clustertest"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // these tests cause errors; the zero logger is silent
	fakecluster.LogErrorsAtOnce()
	if err := flag.Set("test.benchtime", "20ms"); err != nil { // of testing.Benchmark
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestMeasure_EveryCaseOnARealServer(t *testing.T) {
	job := clustertest.Job(t, clustertest.Start(t, cluster.Server{Plain: true}))
	job.Round = 1
	rates := map[string]float64{}
	for _, c := range casesOf(size{absent: 50, settle: time.Second, count: 2 * time.Second, cycles: 2}, 1) {
		for _, contestant := range c.Contestants {
			f, err := contestant.Measure(t.Context(), job)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.Name, contestant.Name, err)
			}
			for _, m := range c.Metrics {
				shrinks := strings.HasPrefix(m.Name, "memory") // on a busy machine, requests in flight need more than 50 informers
				if v, ok := f[m.Name]; !ok || v <= 0 && !shrinks && !strings.HasPrefix(m.Name, "requests") && !strings.HasSuffix(m.Name, harness.Requests) {
					t.Errorf("%s, %s: %s is %v", c.Name, contestant.Name, m.Name, v)
				}
				if strings.HasSuffix(m.Name, harness.Requests) && f[m.Name] != 0 {
					t.Errorf("a lease on a type that has a lease sends %v requests", f[m.Name])
				}
			}
			if c.Name == "absent" {
				rates[contestant.Name] = f[requestRate]
			}
		}
	}
	if rates["client-go"] < 1 || rates["gvrkit"] > min(2.5, rates["client-go"]) {
		t.Errorf("requests per second: %v", rates)
	}
}

// Wait could otherwise return for the type of the last cycle, and the time would be too short.
func TestCycle_FailsIfTheSetIsSyncedWithoutTheType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := &informers.Set{Wait: func(context.Context) error { return nil }}
		if _, err := cycle(t.Context(), set, &cluster.TemporaryCRD{}); err == nil || !strings.Contains(err.Error(), "synced without the type: timeout") {
			t.Errorf("error: %v", err)
		}
	})
}

// synced is an informer that has synced.
type synced struct{ cache.SharedIndexInformer }

func (synced) HasSynced() bool { return true }

func (synced) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}

func TestAbsent_FailsIfAnInformerSyncs(t *testing.T) {
	set := &informers.Set{
		Add: func(context.Context, schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return synced{}, nil
		},
		Start: func() {},
	}
	_, err := size{absent: 2, count: time.Millisecond}.onAbsent(t.Context(), set, usage.Count(&rest.Config{}))
	if err == nil || !strings.Contains(err.Error(), "not served") {
		t.Errorf("error: %v", err)
	}
}

func TestAcquire_FailsIfALeaseDoes(t *testing.T) {
	factory, err := dynamicinformer.New(fakecluster.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t.Context(), factory, 3, 10); err == nil {
		t.Error("no error")
	}
}

func TestSize_TheWarmupIsNotLonger(t *testing.T) {
	for _, full := range []size{{settle: time.Minute, count: time.Minute, cycles: 7, absent: 3}, {settle: time.Second, count: time.Millisecond, cycles: 1, absent: 3}} {
		if s := full.forRound(0); s.settle > full.settle || s.count > full.count || s.cycles > full.cycles || s.absent != full.absent {
			t.Errorf("%+v of %+v", s, full)
		}
		if full.forRound(1) != full {
			t.Errorf("a round that counts: %+v of %+v", full.forRound(1), full)
		}
	}
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// fixture is a cluster, and a restarted informer on its widgets.
type fixture struct {
	*fakecluster.Cluster
	*informers.Set
}

// newFixture returns a cluster that serves CRDs. The informer runs until the end of the test.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	fake := fakecluster.New(fakecluster.Type{GVR: cluster.CRDs, Kind: "CustomResourceDefinition"})
	ctx, cancel := context.WithCancel(t.Context())
	f := &fixture{fake, newRestarted(ctx, fake)}
	t.Cleanup(func() {
		cancel()
		if err := f.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	if _, err := f.Add(ctx, widgets); err != nil {
		t.Fatal(err)
	}
	f.Start()
	return f
}

// define creates a CRD and serves widgets.
func (f *fixture) define(t *testing.T, name, established string) {
	t.Helper()
	f.Serve(fakecluster.Type{GVR: widgets, Kind: "Widget"})
	f.create(t, cluster.CRDs, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}},
	}})
}

func (f *fixture) create(t *testing.T, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) {
	t.Helper()
	if _, err := f.Resource(gvr).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// undefine deletes the CRD. There are no events for its objects.
func (f *fixture) undefine(t *testing.T) {
	t.Helper()
	if err := f.Resource(cluster.CRDs).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Withdraw(widgets)
	synctest.Wait()
}

// returns reports whether f returns nil now.
func returns(t *testing.T, f func(context.Context) error) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f(ctx) }()
	synctest.Wait()
	cancel()
	return <-done == nil
}

// sendsLists reports whether the informer sends LISTs of widgets in the next minute.
func (f *fixture) sendsLists() bool {
	before := len(f.Requests("list", widgets))
	<-time.After(time.Minute)
	synctest.Wait()
	return len(f.Requests("list", widgets)) > before
}

func TestRestarted_SyncsAgainWhenItsCRDIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for range 2 {
			if returns(t, f.Wait) {
				t.Error("the informer has synced without the type")
			}
			f.define(t, "widgets.example.com", "True")
			if !returns(t, f.Wait) || f.OpenWatches(widgets) != 1 {
				t.Error("the informer has not synced after the CRD was created")
			}
			f.undefine(t)
			if f.sendsLists() {
				t.Error("the informer sends LISTs after the CRD was deleted")
			}
		}
	})
}

func TestRestarted_SendsNoRequestBeforeItsCRDIsEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.define(t, "gadgets.example.com", "True")
		f.define(t, "widgets.example.com", "False")
		if lists, watches := f.Requests("list", widgets), f.Requests("watch", widgets); len(lists)+len(watches) > 0 {
			t.Errorf("requests: %v, %v", lists, watches)
		}
	})
}

// Package manager compares a controller-runtime manager with its own cache with one that has gvrkit's: the CPU time and memory for the
// caches of many kinds, and for the first call of a controller for each object.
package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/controllerruntime"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{Name: "manager", About: "a controller-runtime manager with controllers of many kinds", Cases: cases}
}

// The names of metrics.
const (
	syncCPU      = "sync CPU"
	retainedHeap = "retained heap"
	peakRSS      = "peak RSS"
	fullGC       = "one full GC"
	reconcileCPU = "CPU of the first reconciliation"
)

func cases(quick bool) []harness.Case {
	var all []harness.Case
	for _, kind := range objects.All() {
		l := load{kind: kind, kinds: 20, objects: 5000}
		if quick {
			l.kinds, l.objects = 5, 500
		}
		all = append(all, l.newCase())
	}
	return all
}

// load is the kinds of a server, and the number of objects of each.
type load struct {
	kind           objects.Kind
	kinds, objects int
}

func (l load) newCase() harness.Case {
	contestant := func(name, about string, newCache cache.NewCacheFunc) harness.Contestant {
		return harness.Contestant{Name: name, About: about, Measure: harness.On(system{l, newCache}.measure)}
	}
	withoutDiscovery := controllerruntime.WithFactoryOptions(dynamicinformer.WithDiscovery(nil)) // the server has none
	return harness.Case{
		Name:  fmt.Sprintf("%s-%dx%d", l.kind.Name, l.kinds, l.objects),
		Title: fmt.Sprintf("a manager with controllers of %d kinds, %d objects each, as %s", l.kinds, l.objects, l.kind.Name),
		Contestants: []harness.Contestant{
			contestant("controller-runtime", "its own cache", cache.New),
			contestant("gvrkit", "gvrkit's NewCache", controllerruntime.WithOptions(withoutDiscovery)),
			contestant("gvrkit-packed", "gvrkit's NewCache with WithPackedCaches", controllerruntime.WithOptions(withoutDiscovery, controllerruntime.WithPackedCaches())),
		},
		Rounds: 1,
		Metrics: []harness.Metric{
			{Name: syncCPU, Format: "%.0f µs/object"},
			{Name: retainedHeap, Format: "%.0f B/object"},
			{Name: peakRSS, Format: "%.0f MiB"},
			{Name: fullGC, Format: "%.1f ms"},
			{Name: reconcileCPU, Format: "%.0f µs/object"},
		},
		Start: func(ctx context.Context, _ io.Writer) (any, func() error, error) {
			return stub.Start(ctx, stub.Config{Kind: l.kind.Name, Objects: l.objects, Kinds: l.kinds})
		},
	}
}

// system is a manager with one kind of cache.
type system struct {
	load

	newCache cache.NewCacheFunc
}

// run is one job.
type run struct {
	system

	manager ctrl.Manager
	figures harness.Figures
}

func (s system) measure(ctx context.Context, _ harness.Job, server stub.Client) (harness.Figures, error) {
	ctrl.SetLogger(logr.Discard())
	r := &run{system: s, figures: harness.Figures{}}
	empty, _ := usage.LiveMemory()
	cpu := usage.CPU()
	if err := r.open(server.Config()); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	for _, o := range r.all() {
		if _, err := r.manager.GetCache().GetInformer(running, o, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("informer of %s: %w", o.GetKind(), err)
		}
	}
	go func() {
		defer stop() // an error ends the steps
		ended <- r.manager.Start(running)
	}()
	err := errors.Join(r.sync(running, empty, cpu), r.reconcile(running))
	stop()
	return r.figures, errors.Join(err, <-ended)
}

// all returns an empty object of each kind.
func (l load) all() []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, l.kinds)
	for number := range all {
		all[number] = &unstructured.Unstructured{}
		all[number].SetGroupVersionKind(stub.KindNumber(l.kind, number).GVK)
	}
	return all
}

// open makes the manager.
func (r *run) open(cfg *rest.Config) (err error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for number := range r.kinds {
		as := stub.KindNumber(r.kind, number)
		mapper.AddSpecific(as.GVK, as.GVR, as.GVR, meta.RESTScopeNamespace)
	}
	r.manager, err = ctrl.NewManager(cfg, ctrl.Options{
		Scheme: runtime.NewScheme(), NewCache: r.newCache, Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller:     config.Controller{SkipNameValidation: new(true)}, // a test has several managers
	})
	return err
}

// sync measures until all caches are filled, and their memory then.
func (r *run) sync(ctx context.Context, empty int64, cpu time.Duration) error {
	if !r.manager.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("the caches have not synced: %w", context.Cause(ctx))
	}
	number := r.kinds * r.objects
	r.figures[syncCPU] = harness.Micros(usage.CPU()-cpu, number)
	peak, err := usage.PeakRSS()
	if err != nil {
		return err
	}
	r.figures[peakRSS] = float64(peak) / (1 << 20)
	full, _ := usage.LiveMemory()
	r.figures[retainedHeap] = float64(full-empty) / float64(number)
	r.figures[fullGC] = harness.Millis(usage.Collection())
	return nil
}

// reconcile adds a controller of each kind, and measures until each object has been reconciled once. The controllers read the object from
// the cache.
func (r *run) reconcile(ctx context.Context) error {
	cpu := usage.CPU()
	var left atomic.Int64
	left.Store(int64(r.kinds * r.objects))
	done := make(chan error, 1)
	end := func(err error) {
		select {
		case done <- err:
		default: // the first end counts
		}
	}
	for _, o := range r.all() {
		gvk := o.GroupVersionKind()
		err := ctrl.NewControllerManagedBy(r.manager).Named(gvk.Kind).For(o).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			read := &unstructured.Unstructured{}
			read.SetGroupVersionKind(gvk)
			if err := r.manager.GetClient().Get(ctx, req.NamespacedName, read); err != nil || read.GetName() != req.Name {
				end(errors.Join(fmt.Errorf("%s %s was read as %q", gvk.Kind, req, read.GetName()), err))
			}
			if left.Add(-1) == 0 {
				end(nil)
			}
			return reconcile.Result{}, nil
		}))
		if err != nil {
			return err
		}
	}
	select {
	case err := <-done:
		r.figures[reconcileCPU] = harness.Micros(usage.CPU()-cpu, r.kinds*r.objects)
		return err
	case <-ctx.Done():
		return fmt.Errorf("%d objects have not been reconciled: %w", left.Load(), context.Cause(ctx))
	}
}

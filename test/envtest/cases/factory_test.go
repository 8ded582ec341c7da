package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

func newGvrkitFactory(config *rest.Config, client *http.Client, tweak dynamicinformer.TweakListOptionsFunc) (upstream.DynamicSharedInformerFactory, error) {
	f, err := dynamicinformer.NewForConfigAndClient(config, client, dynamicinformer.WithTweakListOptions(tweak))
	if err != nil {
		return nil, err
	}
	return f.DropIn(), nil
}

func newClientGoFactory(config *rest.Config, httpClient *http.Client, tweak dynamicinformer.TweakListOptionsFunc) (upstream.DynamicSharedInformerFactory, error) {
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return upstream.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, tweak), nil
}

func newGvrkitMapper(s *scenario) meta.RESTMapper {
	f, err := dynamicinformer.NewForConfigAndClient(s.config, s.http)
	s.check(err)
	f.Start(s.ctx)
	s.Cleanup(func() { s.check(f.Shutdown(context.WithoutCancel(s.ctx))) })
	return f.Resolver().RESTMapper()
}

func newClientGoMapper(s *scenario) meta.RESTMapper {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(s.config, s.http)
	s.check(err)
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
}

// program is a factory that runs until stop.
type program struct {
	upstream.DynamicSharedInformerFactory
	stopCh chan struct{}
	once   sync.Once
}

// program returns a factory that has not been started.
func (s *scenario) program(tweak dynamicinformer.TweakListOptionsFunc) *program {
	s.Helper()
	f, err := s.factory(s.config, s.http, tweak)
	s.check(err)
	p := &program{DynamicSharedInformerFactory: f, stopCh: make(chan struct{})}
	s.Cleanup(func() {
		ended := make(chan struct{})
		go func() { defer close(ended); p.stop() }()
		select {
		case <-ended:
		case <-time.After(limit):
			s.Errorf("the shutdown does not return within %v", limit)
		}
	})
	return p
}

// limitedProgram is program, with at most so many first lists at a time, if the implementation has such a limit.
func (s *scenario) limitedProgram(lists int) *program {
	s.Helper()
	if s.name != "gvrkit" {
		return s.program(nil)
	}
	s.factory = func(config *rest.Config, client *http.Client, _ dynamicinformer.TweakListOptionsFunc) (upstream.DynamicSharedInformerFactory, error) {
		f, err := dynamicinformer.NewForConfigAndClient(config, client, dynamicinformer.WithListConcurrency(lists))
		if err != nil {
			return nil, err
		}
		return f.DropIn(), nil
	}
	return s.program(nil)
}

// start starts the factory, and waits for its informers.
func (s *scenario) start(p *program) {
	s.Helper()
	p.Start(p.stopCh)
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	for gvr, synced := range p.WaitForCacheSync(ctx.Done()) {
		if !synced {
			s.Fatalf("%v: not synced within %v", gvr, limit)
		}
	}
}

// stop ends the informers, and waits for their end.
func (p *program) stop() {
	p.once.Do(func() { close(p.stopCh) })
	p.Shutdown()
}

// returns waits until f returns.
func (s *scenario) returns(what string, f func()) {
	s.Helper()
	returned := make(chan struct{})
	go func() { defer close(returned); f() }()
	s.must(what, func() bool {
		select {
		case <-returned:
			return true
		default:
			return false
		}
	})
}

// boats creates another type of the scenario's group.
func (s *scenario) boats() schema.GroupVersionResource {
	s.Helper()
	s.install(fixture.NewCRD(s.gvr.Group, "Boat", "v1"))
	return s.gvr.GroupVersion().WithResource("boats")
}

func kindAppears(s *scenario) string {
	s.install(s.crd)
	mapper := s.mapper(s)
	s.must("a known kind", func() bool {
		_, err := mapper.RESTMapping(schema.GroupKind{Group: s.gvr.Group, Kind: "Ship"})
		return err == nil
	})
	boat := schema.GroupKind{Group: s.gvr.Group, Kind: "Boat"}
	if _, err := mapper.RESTMapping(boat); !meta.IsNoMatchError(err) {
		s.Fatalf("a kind that is not served: %v", err)
	}
	s.boats()
	found := eventually(s.ctx, 10*time.Second, func() bool { _, err := mapper.RESTMapping(boat); return err == nil })
	if !found {
		return "10 s later, the RESTMapper still returns NoMatch"
	}
	return "the RESTMapper returns it within 10 s"
}

func retryAfter(s *scenario) string {
	// The restart loop gives up once before it looks, and would do so again after it. The margins are for busy machines.
	const pause, look = 25 * time.Second, 17 * time.Second
	other := fixture.NewCRD("other-"+s.gvr.Group, "Boat", "v1")
	s.install(s.crd, other)
	s.proxy.Inject(s.ofType(), faultproxy.For(pause, faultproxy.RetryAfter(http.StatusTooManyRequests, pause)))
	w := s.watch(s.gvr)
	s.must("a request", func() bool { return s.proxy.Requests(s.ofType()) > 0 })
	early := make(chan int, 1)
	timer := time.AfterFunc(look, func() { early <- s.proxy.Requests(s.ofType()) }) // also while the waits below take longer
	defer timer.Stop()
	boats := s.watch(schema.GroupVersionResource{Group: "other-" + s.gvr.Group, Version: "v1", Resource: "boats"}).wait(s.ctx, pause)
	return fmt.Sprintf("%s in 17 of 25 s; another type is %s; %s after the time", count(<-early, "request"), boats, w.wait(s.ctx, limit))
}

// removable is a handler that is removed.
type removable struct {
	called  func() // in each call
	removed atomic.Bool
	late    atomic.Int64 // calls that began after the removal
}

func (h *removable) call() {
	if h.removed.Load() {
		h.late.Add(1)
	}
	if h.called != nil {
		h.called()
	}
}

func (h *removable) OnAdd(any, bool)   { h.call() }
func (h *removable) OnUpdate(_, _ any) { h.call() }
func (h *removable) OnDelete(any)      { h.call() }

func removedHandlers(s *scenario) string {
	informer := s.ready(20).informer()
	late, err := false, error(nil)
	s.returns("the removal in the handler's call", func() {
		for i := 0; i < 1_000 && !late && err == nil; i++ { // one handler may not show a late call
			late, err = removeInItsCall(informer)
		}
	})
	s.check(err)
	text := "in its call: the removal returns, and no call follows"
	if late {
		text = "in its call: the removal returns, and a call may follow"
	}
	handlers := make([]removable, 500)
	for i := range handlers {
		registration, err := informer.AddEventHandler(&handlers[i])
		s.check(err)
		s.returns("the removal of a handler that is called", func() { err = cache.ShutDownEventHandler(informer, registration) })
		s.check(err)
		handlers[i].removed.Store(true)
	}
	s.settle()
	var calls int64
	for i := range handlers {
		calls += handlers[i].late.Load()
	}
	return text + "; while it gets the first objects: cache.ShutDownEventHandler returns, and " + count(int(calls), "call") + " follows"
}

// removeInItsCall adds a handler, which removes itself in its first call. It waits for the last call, and reports whether a call has
// begun after the removal.
func removeInItsCall(informer cache.SharedIndexInformer) (late bool, err error) {
	h, registered, removed := &removable{}, make(chan cache.ResourceEventHandlerRegistration, 1), make(chan error, 1)
	h.called = func() {
		if h.removed.Load() {
			return
		}
		err := informer.RemoveEventHandler(<-registered)
		h.removed.Store(true)
		removed <- err
	}
	registration, err := informer.AddEventHandler(h)
	if err != nil {
		return false, err
	}
	registered <- registration
	err = errors.Join(<-removed, cache.ShutDownEventHandler(informer, registration))
	return h.late.Load() > 0, err
}

func blockedHandler(s *scenario) string {
	w := s.ready(3)
	block := make(chan struct{})
	defer sync.OnceFunc(func() { close(block) })()
	registration, err := w.informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-block }})
	s.check(err)
	const updates = 20
	for i := range updates {
		s.resize(0, 100+i)
	}
	s.must("the updates of the other handler", func() bool { return s.log.counts().updates >= updates })
	other := s.watch(s.boats()).wait(s.ctx, limit)
	backlog := "has no such figure"
	if ours, is := w.(*gvrkit); is {
		for _, h := range ours.lease.Status().Handlers {
			if !h.RunningSince.IsZero() {
				backlog = "has " + count(h.Backlog, "waiting event")
			}
		}
	}
	s.returns("the removal", func() { err = w.informer().RemoveEventHandler(registration) })
	s.check(err)
	return fmt.Sprintf("another handler gets %s; another type is %s; the status %s; its removal returns", s.log, other, backlog)
}

func handlerCallsFactory(s *scenario) string {
	s.install(s.crd)
	s.create(0, 1)
	boats := s.boats()
	p := s.program(nil)
	informer := p.ForResource(s.gvr).Informer()
	returned := make(chan string, 6) // the calls that have returned
	did := func(what string, err error) {
		if err != nil {
			what += ": " + err.Error()
		}
		returned <- what
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		defer close(returned)
		registration, err := informer.AddEventHandler(s.log)
		did("adds a handler", err)
		did("removes it", informer.RemoveEventHandler(registration))
		did("reads "+count(len(informer.GetStore().List()), "object"), nil)
		other := p.ForResource(boats).Informer()
		p.Start(p.stopCh)
		did("starts another type", nil)
		if cache.WaitForCacheSync(s.ctx.Done(), other.HasSynced) {
			did("waits for its list", nil)
		}
	}})
	s.check(err)
	s.start(p)
	var calls []string
	s.returns("the handler", func() {
		for what := range returned {
			calls = append(calls, what)
		}
	})
	return "it " + strings.Join(calls, ", ") + ": the calls return"
}

func startsAndStops(s *scenario) string {
	s.install(s.crd)
	s.create(0, 1)
	boats := s.boats()
	early := s.program(nil)
	early.ForResource(boats)
	early.Shutdown()
	early.Start(early.stopCh)

	ending := s.program(nil)
	ending.ForResource(s.gvr)
	go ending.stop()
	ending.Start(ending.stopCh)
	s.returns("a shutdown during the start", ending.stop)
	s.must("the end of its watch", func() bool { return s.proxy.OpenWatches(s.ofType()) == 0 })

	twice := s.program(nil)
	_, err := twice.ForResource(s.gvr).Informer().AddEventHandler(s.log)
	s.check(err)
	twice.Start(twice.stopCh)
	s.start(twice)
	s.create(1, 1)
	s.must("the objects", func() bool { return s.log.counts().adds == 2 })
	s.observe() // a second watch may be late
	open := s.proxy.OpenWatches(s.ofType())
	s.returns("two shutdowns", func() { twice.stop(); twice.Shutdown() })
	s.must("the end of the watch", func() bool { return s.proxy.OpenWatches(s.ofType()) == 0 })
	return fmt.Sprintf("after two starts: %s; after a start that follows the shutdown: %s; a shutdown during the start and a second one return; no watch is left",
		count(open, "open request"), count(s.proxy.Requests(faultproxy.Resource(boats.Group, boats.Resource)), "request"))
}

// transforms records the calls of a transform.
type transforms struct {
	mu     sync.Mutex
	again  int // calls for an object that it has returned
	others []string
}

func (t *transforms) call(obj any) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, is := obj.(*unstructured.Unstructured)
	if !is {
		t.others = append(t.others, fmt.Sprintf("%T", obj))
		return obj, nil
	}
	const mark = "transformed"
	if u.Object[mark] != nil {
		t.again++
	}
	u.Object[mark] = true
	return u, nil
}

func transformCalls(s *scenario) string {
	s.install(s.crd)
	s.create(0, 4)
	p, t := s.program(nil), &transforms{}
	informer := p.ForResource(s.gvr).Informer()
	s.check(informer.SetTransform(t.call))
	_, err := informer.AddEventHandler(s.log)
	s.check(err)
	s.start(p)
	s.resize(0, 77)
	s.delete(2)
	s.settle()
	s.offline(func() { s.delete(3) })
	s.must("the deletion", func() bool { return s.log.counts().deletes == 2 })
	s.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	text := "no call gets an object that it has returned"
	if t.again > 0 {
		text = "calls get objects that it has returned"
	}
	if len(t.others) > 0 {
		text += "; it also gets " + strings.Join(t.others, ", ")
	}
	return text + "; " + s.log.changes() // the number of lists, and so of calls and of updates without a change, may differ
}

func hungWatch(s *scenario) string {
	s.install(s.crd)
	s.create(0, 2)
	p := s.program(func(opts *metav1.ListOptions) {
		if opts.TimeoutSeconds != nil { // of a watch
			opts.TimeoutSeconds = new(int64(2))
		}
	})
	informer := p.ForResource(s.gvr).Informer()
	_, err := informer.AddEventHandler(s.log)
	s.check(err)
	s.start(p)
	hung := make(chan struct{})
	s.proxy.Inject(faultproxy.All(s.ofType(), faultproxy.Verb("watch")), faultproxy.Times(1, func(next http.Handler) http.Handler {
		hang := faultproxy.HangAt(0)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(hung)
			hang.ServeHTTP(w, r)
		})
	}))
	s.must("a watch that hangs", func() bool {
		select {
		case <-hung:
			return true
		default:
			return false
		}
	})
	s.resize(0, 77)
	if !eventually(s.ctx, 50*time.Second, func() bool { return s.log.counts().updates > 0 }) {
		return "with a watch timeout of 2 s, a change has not arrived after 50 s"
	}
	return "with a watch timeout of 2 s, a change arrives within 50 s"
}

// writerEnv has the name of the implementation, the address of the proxy and the group, in the process of writeToAnObject.
const writerEnv = "GVRKIT_CASE_65"

// writeToAnObject is a program whose handler writes to an object of the cache.
func writeToAnObject(args string) error {
	var with, host, group string
	if _, err := fmt.Sscan(args, &with, &host, &group); err != nil {
		return err
	}
	f, err := implementations[with].factory(&rest.Config{Host: host}, &http.Client{}, nil)
	if err != nil {
		return err
	}
	ships := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
	_, err = f.ForResource(ships).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if u := obj.(*unstructured.Unstructured); u.GetName() == name(3) {
			u.Object["spec"].(map[string]any)["shape"].(map[string]any)["masts"] = int64(77)
		}
	}})
	if err != nil {
		return err
	}
	f.Start(nil)
	<-time.After(limit)
	return nil
}

func mutatedObject(s *scenario) string {
	s.install(s.crd)
	s.create(0, 6, func(obj *unstructured.Unstructured) { // equal parts may share memory
		obj.Object["spec"] = map[string]any{"shape": map[string]any{"masts": int64(2)}}
	})
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	program := exec.CommandContext(ctx, os.Args[0])
	program.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true", fmt.Sprintf("%s=%s %s %s", writerEnv, s.name, s.proxy.URL(), s.gvr.Group))
	report, err := program.CombinedOutput()
	var named []string
	for i := range 6 {
		if bytes.Contains(report, []byte(name(i))) {
			named = append(named, name(i))
		}
	}
	if _, is := errors.AsType[*exec.ExitError](err); !is || !bytes.Contains(report, []byte("ALTERED")) || ctx.Err() != nil {
		return fmt.Sprintf("with KUBE_CACHE_MUTATION_DETECTOR, the program goes on: %v\n%s", err, report)
	}
	if len(named) != 1 || named[0] != name(3) {
		return fmt.Sprintf("with KUBE_CACHE_MUTATION_DETECTOR, the program ends with a report that names %v", named)
	}
	return "with KUBE_CACHE_MUTATION_DETECTOR, the program ends with a report that names the object, and no other"
}

// fleet is the number of types of a large factory, and the group of each.
const fleet, fleetGroup = 100, "fleet.example.com"

var installFleet = sync.OnceValue(func() error {
	var crds []*unstructured.Unstructured
	for i := range fleet {
		crds = append(crds, fixture.NewCRD(fleetGroup, fmt.Sprintf("Ship%d", i), "v1"))
	}
	return server.InstallCRDs(context.Background(), crds...) //nolint:forbidigo // several tests share it
})

func shutdownUnderLoad(s *scenario) string {
	s.check(installFleet())
	s.label()
	namespace, _, _ := strings.Cut(s.gvr.Group, ".")
	gvr := func(i int) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: fleetGroup, Version: "v1", Resource: fmt.Sprintf("ship%ds", i)}
	}
	for i := range fleet {
		obj := fixture.NewObject(gvr(i).GroupVersion().WithKind(fmt.Sprintf("Ship%d", i)), "a", i, nil)
		s.check(fixture.RetryUntilServed(s.ctx, func() error {
			_, err := s.admin.Resource(gvr(i)).Namespace(namespace).Create(s.ctx, obj, metav1.CreateOptions{})
			return err
		}))
	}
	var ended atomic.Bool
	var calls, late atomic.Int64
	call := func() {
		<-time.After(time.Millisecond)
		calls.Add(1)
		if ended.Load() {
			late.Add(1)
		}
	}
	p := s.program(nil)
	for i := range fleet {
		_, err := p.ForResource(gvr(i)).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { call() }, UpdateFunc: func(_, _ any) { call() },
		})
		s.check(err)
	}
	s.start(p)
	ctx, cancel := context.WithCancel(s.ctx)
	var writers sync.WaitGroup
	for worker := range 4 {
		writers.Go(func() {
			for n := worker; ctx.Err() == nil; n += 4 {
				patch := fmt.Appendf(nil, `{"spec":{"size":%d}}`, n)
				_, _ = s.admin.Resource(gvr(n%fleet)).Namespace(namespace).Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}) // the context ends
			}
		})
	}
	s.must("load", func() bool { return calls.Load() > 4*fleet })
	if s.goroutines() == 0 {
		s.Fatal("no goroutine of an informer is found")
	}
	begun, within := time.Now(), "within 5 s"
	s.returns("the shutdown", p.stop)
	if took := time.Since(begun); took > 5*time.Second {
		within = "after " + took.String()
	}
	ended.Store(true)
	left := s.goroutines()
	before := s.proxy.Requests(nil)
	s.must("the end of the watches", func() bool { return s.proxy.OpenWatches(nil) == 0 })
	<-time.After(time.Second) // the load goes on
	cancel()
	writers.Wait()
	return fmt.Sprintf("the shutdown returns %s; then %s of informers, %s and %s; no watch is left",
		within, count(left, "goroutine"), count(int(late.Load()), "call"), count(s.proxy.Requests(nil)-before, "request"))
}

// label labels the goroutine of the scenario, and so all that are started in it.
func (s *scenario) label() {
	pprof.SetGoroutineLabels(pprof.WithLabels(s.ctx, pprof.Labels("scenario", s.gvr.Group)))
}

// goroutines returns the number of labelled goroutines that run code of informers.
func (s *scenario) goroutines() int {
	s.Helper()
	n, err := fixture.InformerGoroutines(s.gvr.Group)
	s.check(err)
	return n
}

package docs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/gvrkit/gvrkit/controllerruntime"
	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/metrics"
	"github.com/gvrkit/gvrkit/sharding"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
	"github.com/gvrkit/gvrkit/test/churn/mirror"
	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// The functions below are not called, except for follow and runMine. Each has the code of one snippet, which names its
// parameters.

// README.md

func _(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource, handler cache.ResourceEventHandler,
	groups []string, started func(*dynamicinformer.Lease), stopped func(discovery.Resource, discovery.Evidence),
) (err error) {
	defer func() { fmt.Println(err) }()

	lease, err := factory.Acquire(ctx, gvr)                      // validates gvr; WithAllowAbsent() accepts a type that is installed later
	_, err = lease.AddEventHandler(handler)                      // removed with the lease
	err = lease.WaitForSync(ctx, dynamicinformer.WithFailFast()) // returns early for Forbidden, NotFound and the like
	for now := range lease.Watch(ctx) {                          // the status, and each change
		fmt.Println(now) // ipamblocks.v1.crd.projectcalico.org: Synced
		if now.State == status.StateSynced {
			break
		}
	}
	lease.Release() // never blocks; the last release stops the informer; see Done
	err = factory.Follow(ctx, discovery.Selector{Groups: groups}, dynamicinformer.FollowFuncs{Started: started, Stopped: stopped})

	return err
}

func _(mux *http.ServeMux, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) {
	mux.Handle("/informers/", factory.Handler())           // the status page, or text for curl; /informers/pods.v1 shows one resource
	fmt.Println(factory.Explain(gvr))                      // the status in sentences: owners, the server of the resource, what to do
	mux.Handle("/readyz", factory.Readyz())                // also a check for controller-runtime and apiserver; Healthz(WithHandlerTimeout(d)) is for stuck handlers
	prometheus.MustRegister(metrics.NewCollector(factory)) // states, reasons, requests, bytes, lag, backlogs, discovery
}

// docs/controller-runtime.md

func _(cfg *rest.Config) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		NewCache: controllerruntime.NewCache,
	})
	return mgr, err
}

//nolint:errcheck,ineffassign,staticcheck // the docs leave errors to the reader
func _(ctx context.Context, cfg *rest.Config, gvr schema.GroupVersionResource, own *dynamicinformer.Factory, controller controller.Controller) (err error) {
	resolver, err := discovery.NewForConfig(cfg)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		MapperProvider: controllerruntime.MapperProvider(resolver),
		NewCache: controllerruntime.WithOptions(
			controllerruntime.WithAllowAbsent(),
			controllerruntime.WithFactoryOptions(dynamicinformer.WithDiscovery(resolver)),
		),
	})

	factory := mgr.GetCache().(*controllerruntime.Cache).Factory()
	mgr.AddMetricsServerExtraHandler("/informers/", factory.Handler())
	mgr.AddReadyzCheck("informers", factory.Readyz().Check)
	ctrlmetrics.Registry.MustRegister(metrics.NewCollector(factory))

	lease, err := factory.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent())
	err = controller.Watch(controllerruntime.Source(lease, &handler.TypedEnqueueRequestForObject[*unstructured.Unstructured]{}))

	err = mgr.Add(controllerruntime.Runnable(own))
	return err
}

// docs/discovery.md

//nolint:errcheck // the docs leave errors to the reader
func _(ctx context.Context, cfg *rest.Config) (err error) {
	defer func() { fmt.Println(err) }()

	resolver, err := discovery.NewForConfig(cfg)
	go resolver.Run(ctx)                                                 // watches CRDs and APIServices; polls if it may not watch them
	res, err := resolver.Resolve(ctx, "ipamblock.crd.projectcalico.org") // or IPAMBlock, a short name, plural.version.group
	mapper := resolver.RESTMapper()                                      // for controller-runtime; it needs no reset
	for event := range resolver.Subscribe(ctx) {
		fmt.Println(event) // Added, Changed [Versions], Removed (CRDDeleted), in order for each type
	}

	fmt.Println(res, mapper)
	return err
}

// docs/leases.md

func _(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) (err error) {
	defer func() { fmt.Println(err) }()

	lease, err := factory.Acquire(ctx, gvr, dynamicinformer.WithNamespaces("a", "b"))
	err = lease.SetNamespaces("b", "c") // lists c, and removes the objects of a from the cache; b continues

	return err
}

func _(ctx context.Context, factory *dynamicinformer.Factory) error {
	byName, err := factory.AcquireRef(ctx, "ipamblocks") // or a short name, ipamblocks.crd.projectcalico.org, …
	if err != nil {
		return err // it means nothing, or several resources
	}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	byKind, err := factory.AcquireGVK(ctx, kind, dynamicinformer.WithAllowAbsent()) // its CRD may come later
	fmt.Println(byName.Resource().GVR, byKind.Status())

	return err
}

// Widget is the type of the snippet.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	return &Widget{TypeMeta: w.TypeMeta, ObjectMeta: *w.DeepCopy()}
}

func _(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) (err error) {
	defer func() { fmt.Println(err) }()

	widgets, err := dynamicinformer.AcquireTyped[*Widget](ctx, factory, gvr) // a struct with TypeMeta and ObjectMeta, and DeepCopyObject
	_, err = widgets.Informer().AddTypedEventHandler(cache.TypedResourceEventHandlerFuncs[*Widget]{
		AddFunc: func(w *Widget) { fmt.Println(w.Name) }, // read-only
	})
	all, err := widgets.Lister().List(labels.Everything()) // []*Widget

	fmt.Println(all)
	return err
}

func _(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource, handler cache.ResourceEventHandler) error {
	lease, err := factory.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent(), dynamicinformer.WithLeaseName("quota controller"))
	if err != nil {
		return err // the type does not exist, can't be watched, or other leases have other options
	}
	defer lease.Release()
	_, err = lease.AddEventHandler(handler)

	return err
}

func _(lease *dynamicinformer.Lease) {
	result, err := lease.Unstructured().Query(lister.Query{
		Where:  "status.phase=Ready, spec.tier in (gold, silver)",
		SortBy: "metadata.creationTimestamp",
		Limit:  20,
	})

	fmt.Println(result, err)
}

func _(ctx context.Context, lease *dynamicinformer.Lease) {
	for now := range lease.Watch(ctx) {
		fmt.Println(now) // the resource, the state, the reason and what to do
		if now.State == status.StateSynced || now.State == status.StateDegraded && now.Listed {
			break
		}
	}
}

func _(ctx context.Context, factory *dynamicinformer.Factory, handler cache.ResourceEventHandler) {
	err := factory.Follow(ctx, discovery.Selector{Groups: []string{"crd.projectcalico.org"}}, dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) { _, _ = l.AddEventHandler(handler) },
		Stopped: func(res discovery.Resource, why discovery.Evidence) { fmt.Println(res.GVR, why.Kind) },
	}, dynamicinformer.WithStartLimit(4))

	fmt.Println(err)
}

// docs/migration.md

func _(cfg *rest.Config) (err error) {
	defer func() { fmt.Println(err) }()

	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithNamespace("team-a"), dynamicinformer.WithResync(time.Hour))
	legacy := upstream.DynamicSharedInformerFactory(factory.DropIn()) // client-go's interface

	fmt.Println(legacy)
	return err
}

func _(informer cache.SharedIndexInformer, gvr schema.GroupVersionResource) {
	theirs := dynamiclister.New(informer.GetIndexer(), gvr)

	fmt.Println(theirs)
}

func _(ours func() dynamicinformer.DynamicSharedInformerFactory) {
	newFactory := func() upstream.DynamicSharedInformerFactory { return ours() }

	fmt.Println(newFactory())
}

// docs/scale.md

// run shares the widgets with the other members of the group until ctx ends, and then returns nil.
func run(ctx context.Context, cfg *rest.Config, widgets schema.GroupVersionResource, handler dynamicinformer.MovedHandler) (err error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	member, err := sharding.Join(context.WithoutCancel(ctx), client, sharding.Config{ // the end of ctx must not end it before the informers
		Namespace: "default", Name: "widget-controller", Identity: os.Getenv("POD_NAME"),
	})
	if err != nil {
		return err // the configuration is invalid; requests are sent later, and repeated
	}
	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithShard(member)) // or a shard of sharding.Static
	if err != nil {
		return errors.Join(err, member.Leave(ctx))
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		err = errors.Join(err, factory.Shutdown(ending), member.Leave(ending)) // in this order: the member waits for handlers
	}()
	factory.Start(ctx)
	lease, err := factory.Acquire(ctx, widgets)
	if err == nil {
		_, err = lease.AddEventHandler(handler) // OnMoved: another process has the object now, or will have it
	}
	if err != nil && ctx.Err() == nil { // the end of ctx is no error
		return err
	}
	select {
	case <-ctx.Done():
	case <-member.Done(): // it can't go on, such as if another process has its identity; Leave returns why
	}
	return nil
}

func _(ctx context.Context, shard sharding.Shard, write func(context.Context, *unstructured.Unstructured) error) {
	reconcile := func(ctx context.Context, obj *unstructured.Unstructured) error {
		if !shard.Owns(obj.GetUID()) {
			return nil // another process has the object now, or will have it
		}
		return write(ctx, obj)
	}
	fmt.Println(reconcile(ctx, nil))
}

func _(ctx context.Context, client kubernetes.Interface) error {
	member, err := sharding.Join(ctx, client, sharding.Config{Namespace: "default", Name: "widget-controller", Identity: os.Getenv("POD_NAME")})
	if err != nil {
		return err // the configuration is invalid; requests are sent later, and repeated
	}

	return member.Leave(ctx)
}

// follow works on the objects of the member's slots until ctx ends.
func follow(ctx context.Context, member *sharding.Member, end, begin func(sharding.Slots)) {
	follower := member.Follow("timer")
	defer follower.Stop()
	last := sharding.View{}
	for {
		changed, view := member.Changed(), member.View()
		end(last.Slots.Intersect(member.LostSince(last.Generation))) // and wait for work in progress
		follower.LetGo(view.Generation)                              // other members may work on these objects from now on
		begin(view.Slots)
		follower.Loaded(view.Generation)
		last = view
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// docs/status.md

func _(mux *http.ServeMux, factory *dynamicinformer.Factory) {
	mux.Handle("/informers/", factory.Handler())
}

// checks is the part of controller-runtime's manager.Manager that the docs use.
type checks interface {
	AddReadyzCheck(name string, check healthz.Checker) error
}

//nolint:errcheck // the docs leave errors to the reader
func _(mux *http.ServeMux, mgr checks, factory *dynamicinformer.Factory) {
	mux.Handle("/readyz", factory.Readyz())
	mux.Handle("/healthz", factory.Healthz(dynamicinformer.WithHandlerTimeout(time.Minute)))
	mgr.AddReadyzCheck("informers", factory.Readyz().Check) // controller-runtime
}

func _(factory *dynamicinformer.Factory) {
	prometheus.MustRegister(metrics.NewCollector(factory))
}

// docs/testing.md

func _(client *dynamicfake.FakeDynamicClient) (err error) {
	defer func() { fmt.Println(err) }()

	resolver, err := discovery.NewFromDiscovery(&fakediscovery.FakeDiscovery{Fake: &client.Fake})
	factory, err := dynamicinformer.New(client, dynamicinformer.WithDiscovery(resolver))

	fmt.Println(factory)
	return err
}

//nolint:errcheck // the docs leave errors to the reader
func _(ctx context.Context) (err error) {
	defer func() { fmt.Println(err) }()

	server, err := embedded.Start(ctx)                 // BeforeSuite
	defer server.Stop()                                // takes less than a second, with any number of open watches
	err = server.InstallCRDFiles(ctx, "../config/crd") // files and directories, YAML and JSON, several documents in a file
	client, err := dynamic.NewForConfig(server.Config())
	kubeconfig, err := server.Kubeconfig() // or WriteKubeconfig(path), for a program with --kubeconfig

	fmt.Println(client, len(kubeconfig))
	return err
}

//nolint:errcheck // the docs leave errors to the reader
func _(ctx context.Context) (err error) {
	defer func() { fmt.Println(err) }()

	environment, err := controlplane.Start(ctx, os.Stderr) // the programs of KUBEBUILDER_ASSETS or setup-envtest, or built
	defer environment.Stop()
	err = embedded.InstallCRDFiles(ctx, environment.Config, "../config/crd")

	return err
}

//nolint:errcheck,forbidigo,staticcheck,contextcheck // the docs leave errors to the reader, and Close ends the proxy
func _(server *embedded.Server) (err error) {
	defer func() { fmt.Println(err) }()

	transport, err := rest.TransportFor(server.Config()) // has the credentials
	proxy, err := faultproxy.Start(server.Config().Host, transport)
	defer proxy.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: proxy.URL()}) // the informer's; the test writes past the proxy

	blocks := faultproxy.Resource("crd.projectcalico.org", "ipamblocks")
	watches := faultproxy.All(blocks, faultproxy.Verb("watch"))
	for proxy.OpenWatches(blocks) == 0 { // CutWatches ends the watches that are open
		time.Sleep(10 * time.Millisecond)
	}
	proxy.Inject(watches, faultproxy.Times(1, faultproxy.GoneEvent())) // the next watch fails with 410, so that a list follows
	proxy.CutWatches(blocks)

	proxy.Inject(faultproxy.All(blocks, faultproxy.Namespace("team-a")), faultproxy.Fail(http.StatusForbidden)) // one namespace is forbidden
	proxy.Inject(nil, faultproxy.DeadGroup("crd.projectcalico.org"))                                            // no discovery, no objects
	proxy.Heal()

	fmt.Println(client)
	return err
}

// mine runs the controller under test. The code of the controller is left out: its result is the index of its informer.
type mine struct {
	factory *dynamicinformer.Factory
	world   *churn.World
	index   cache.Store
	events  *churn.Recorder // of all calls of handlers
}

func start(ctx context.Context, env churn.Environment) (churn.Subject, error) {
	client, err := dynamic.NewForConfigAndClient(env.Config, env.HTTP) // through the proxy
	if err != nil {
		return nil, err
	}
	factory, err := dynamicinformer.New(client)
	if err != nil {
		return nil, err
	}
	informer := factory.ForResource(env.World.Resource("t1", "v1")).Informer() // the CRD does not exist yet
	events := &churn.Recorder{View: churn.View{Name: "my handler", Type: "t1"}}
	if _, err := informer.AddEventHandler(events); err != nil { // and those of the controller
		return nil, err
	}
	factory.Start(context.WithoutCancel(ctx)) // until Stop
	return &mine{factory, env.World, informer.GetStore(), events}, nil
}

func (m *mine) AtRest(context.Context) []churn.Violation {
	has := map[string]churn.Observation{}
	for _, obj := range m.index.List() {
		seen := churn.Observe(obj, churn.Whole)
		has[seen.Key()] = seen
	}
	return churn.Compare("my index", m.world.Want(m.events.View), has)
}

func (m *mine) Stop(ctx context.Context) []churn.Violation {
	if err := m.factory.Shutdown(ctx); err != nil {
		return []churn.Violation{{Invariant: churn.Released, Text: err.Error()}}
	}
	m.events.Removed(0) // Shutdown has waited for all calls
	return m.events.Check(m.world)
}

func (*mine) Do(context.Context, churn.Op) error { return nil } // operations on leases and handlers
func (*mine) Settle()                            {}

func runMine(ctx context.Context, t *testing.T, server *embedded.Server, seeds uint64) {
	t.Helper()
	for seed := range seeds { // such as uint64(5)
		cfg := churn.Config{Servers: []*rest.Config{server.Config()}, Subject: start, Patience: 2 * time.Minute}
		result, err := churn.Run(ctx, cfg, churn.Generate(seed, mirror.Profile()))
		if err != nil || result.Failed() {
			t.Fatalf("seed %d: %v\n%v\n%v", seed, err, result, result.Script)
		}
	}
}

//nolint:thelper // the docs leave errors to the reader
func _(ctx context.Context, t *testing.T, cfg churn.Config, failed churn.Result, text string) (err error) {
	defer func() { fmt.Println(err) }()

	cfg.Patience = 10 * time.Second // of each script that fails
	search, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	shortest := churn.Shortest(search, cfg, failed) // failed is a Result
	t.Errorf("%v\n%v", shortest, shortest.Script)

	script, err := churn.Parse(text) // what a test has printed
	again, err := churn.Run(ctx, cfg, script)

	fmt.Println(again)
	return err
}

// The subject of docs/testing.md passes on the embedded server.
func TestDocs_SubjectPasses(t *testing.T) {
	server := fixture.StartEmbedded(t)
	runMine(t.Context(), t, server, 1)
}

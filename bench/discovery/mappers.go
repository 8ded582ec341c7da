package discovery

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/discovery"
)

// system is one way to learn what a server serves.
type system struct {
	harness.Contestant

	brief bool // only the first answer is measured
	// open makes a mapper for the server of cfg. It does not wait.
	open func(cfg *rest.Config) (*mapper, error)
}

// mapper is a system at work. Fields that it lacks are nil.
type mapper struct {
	meta.RESTMapper

	// run runs beside the mapper until ctx ends.
	run func(ctx context.Context) error
	// settled reports whether the mapper has completed its start.
	settled func() bool
	// forget makes the next question one to the server. Without it a type that was not served
	// is never found.
	forget func()
	// await waits until a type is served.
	await func(ctx context.Context, gvr schema.GroupVersionResource) error
	// resolve answers plural.group, and resolveGVK a kind. A system without them is asked by
	// ResourceFor and RESTMapping.
	resolve    func(ctx context.Context, ref string) (schema.GroupVersionResource, error)
	resolveGVK func(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error)
}

func systems() []system {
	return []system{
		{Contestant: harness.Contestant{Name: "client-go", About: "NewDeferredDiscoveryRESTMapper on NewMemCacheClient"}, open: openClientGo},
		{Contestant: harness.Contestant{Name: "controller-runtime", About: "NewDynamicRESTMapper"}, open: openControllerRuntime},
		{Contestant: harness.Contestant{Name: "gvrkit", About: "discovery.Resolver with Run", Target: true}, open: func(cfg *rest.Config) (*mapper, error) { return openGVRKit(cfg, true) }},
		{Contestant: harness.Contestant{Name: "gvrkit-no-run", About: "discovery.Resolver without Run"}, open: func(cfg *rest.Config) (*mapper, error) { return openGVRKit(cfg, false) }, brief: true},
	}
}

// openClientGo opens client-go's mapper on its cache. Once the cache has been filled the mapper
// no longer resets itself: forget is left to the user.
func openClientGo(cfg *rest.Config) (*mapper, error) {
	client, err := upstream.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	return &mapper{RESTMapper: deferred, forget: deferred.Reset}, nil
}

// openControllerRuntime opens controller-runtime's mapper. It asks the server for what it does
// not know.
func openControllerRuntime(cfg *rest.Config) (*mapper, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	m, err := apiutil.NewDynamicRESTMapper(cfg, client)
	return &mapper{RESTMapper: m}, err
}

func openGVRKit(cfg *rest.Config, run bool) (*mapper, error) {
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	m := &mapper{
		RESTMapper: resolver.RESTMapper(),
		resolve: func(ctx context.Context, ref string) (schema.GroupVersionResource, error) {
			res, err := resolver.Resolve(ctx, ref)
			return res.GVR, err
		},
		resolveGVK: func(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
			res, err := resolver.ResolveGVK(ctx, gvk)
			return res.GVR, err
		},
	}
	if !run {
		return m, nil
	}
	m.run = resolver.Run
	m.settled = func() bool {
		s := resolver.Status()
		return s.CRDs.State == discovery.SourceCurrent && s.APIServices.State == discovery.SourceCurrent &&
			s.Documents.State == discovery.SourceCurrent && s.Types > 0
	}
	m.await = func(ctx context.Context, gvr schema.GroupVersionResource) error {
		_, err := resolver.Await(ctx, gvr)
		return err
	}
	return m, nil
}

package discovery

import (
	"context"
	"fmt"

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
	size

	comes int // the number of the newcomer that comes, of its own: servers list those that go for a while
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
	// kind and name ask for a type by its kind, and by plural and group, in the system's own way.
	kind, name func(ctx context.Context, of *served) error
}

// newMapper returns a mapper that is asked by RESTMapping and ResourceFor.
func newMapper(m meta.RESTMapper) *mapper {
	asked := &mapper{RESTMapper: m}
	asked.kind = func(_ context.Context, of *served) error { return asked.mapping(of) }
	asked.name = func(_ context.Context, of *served) error { return asked.resource(of) }
	return asked
}

// mapping asks for a type by RESTMapping and checks the answer.
func (m *mapper) mapping(of *served) error {
	mapping, err := m.RESTMapping(of.kind, of.versions...)
	if err != nil {
		return err
	}
	if mapping.Resource != of.GVR || (mapping.Scope.Name() == meta.RESTScopeNameNamespace) != of.Namespaced {
		return fmt.Errorf("%v is mapped to %v with scope %q", of.GVK, mapping.Resource, mapping.Scope.Name())
	}
	return nil
}

// resource asks for a type by ResourceFor.
func (m *mapper) resource(of *served) error {
	got, err := m.ResourceFor(of.resource)
	return of.check(got, err)
}

// check checks an answer of any version.
func (s *served) check(got schema.GroupVersionResource, err error) error {
	if err == nil && got.GroupResource() != s.GVR.GroupResource() {
		err = fmt.Errorf("%v is resolved to %v", s.GVR, got)
	}
	return err
}

func (s size) contestants() []harness.Contestant {
	return []harness.Contestant{
		{Name: "client-go", About: "NewDeferredDiscoveryRESTMapper on NewMemCacheClient", Measure: system{s, 0, openClientGo}.measure},
		{Name: "controller-runtime", About: "NewDynamicRESTMapper", Measure: system{s, 1, openControllerRuntime}.measure},
		{Name: "gvrkit", About: "discovery.Resolver with Run", Target: true, Measure: system{s, 2, openGVRKit}.measure},
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
	m := newMapper(deferred)
	m.forget = deferred.Reset
	return m, nil
}

// openControllerRuntime opens controller-runtime's mapper. It asks the server for what it does
// not know.
func openControllerRuntime(cfg *rest.Config) (*mapper, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	m, err := apiutil.NewDynamicRESTMapper(cfg, client)
	return newMapper(m), err
}

// openGVRKit opens a resolver that runs.
func openGVRKit(cfg *rest.Config) (*mapper, error) {
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	m := newMapper(resolver.RESTMapper())
	m.run = resolver.Run
	m.settled = func() bool {
		told := func(s discovery.SourceStatus) bool {
			return s.State == discovery.SourceCurrent || s.State == discovery.SourceAbsent
		}
		s := resolver.Status()
		return told(s.CRDs) && told(s.APIServices) && told(s.Documents) && s.Types > 0
	}
	m.await = func(ctx context.Context, gvr schema.GroupVersionResource) error {
		_, err := resolver.Await(ctx, gvr)
		return err
	}
	m.kind = func(ctx context.Context, of *served) error {
		got, err := resolver.ResolveGVK(ctx, of.GVK)
		return of.check(got.GVR, err)
	}
	m.name = func(ctx context.Context, of *served) error {
		got, err := resolver.Resolve(ctx, of.ref)
		return of.check(got.GVR, err)
	}
	return m, nil
}

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

// system is an implementation of discovery.
type system struct {
	size

	additional int // number of the new type: each system has its own, as servers list deleted types for a while
	// open makes a mapper for the server of cfg. It does not wait.
	open func(cfg *rest.Config) (*mapper, error)
}

// mapper is a running system. A field is nil if the system has no such function.
type mapper struct {
	meta.RESTMapper

	// run runs in the background until ctx ends.
	run func(ctx context.Context) error
	// settled reports whether the mapper has completed its start.
	settled func() bool
	// reset makes the next question go to the server. Without it, this mapper does not find new
	// types.
	reset func()
	// await waits until a type is served.
	await func(ctx context.Context, gvr schema.GroupVersionResource) error
	// kind and name ask about a type by its kind, and by plural and group, with the system's own
	// methods.
	kind, name func(ctx context.Context, of *served) error
}

// newMapper returns a mapper whose methods are RESTMapping and ResourceFor.
func newMapper(m meta.RESTMapper) *mapper {
	asked := &mapper{RESTMapper: m}
	asked.kind = func(_ context.Context, of *served) error { return asked.mapping(of) }
	asked.name = func(_ context.Context, of *served) error { return asked.resource(of) }
	return asked
}

// mapping asks about a type by RESTMapping and checks the answer.
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

// resource asks about a type by ResourceFor and checks the answer.
func (m *mapper) resource(of *served) error {
	got, err := m.ResourceFor(of.resource)
	return of.check(got, err)
}

// check checks an answer, with any version.
func (s *served) check(got schema.GroupVersionResource, err error) error {
	if err == nil && got.GroupResource() != s.GVR.GroupResource() {
		err = fmt.Errorf("%v is resolved to %v", s.GVR, got)
	}
	return err
}

func (s size) contestants() []harness.Contestant {
	var targets []harness.Target
	for _, name := range known {
		targets = append(targets, harness.Target{Metric: name, AtMost: 1}, harness.Target{Metric: name + harness.Allocations, AtMost: 1}, harness.Target{Metric: name + harness.Requests})
	}
	if s.CRDs == 0 {
		targets = nil
	}
	return []harness.Contestant{
		{Name: "client-go", About: "NewDeferredDiscoveryRESTMapper on NewMemCacheClient", Measure: harness.On(system{s, 0, openClientGo}.measure)},
		{Name: "controller-runtime", About: "NewDynamicRESTMapper", Measure: harness.On(system{s, 1, openControllerRuntime}.measure)},
		{Name: "gvrkit", About: "discovery.Resolver with Run", Targets: targets, Measure: harness.On(system{s, 2, openGVRKit}.measure)},
	}
}

// openClientGo opens client-go's mapper on its cache. The mapper does not reset itself after the
// cache has been filled; its user must call Reset.
func openClientGo(cfg *rest.Config) (*mapper, error) {
	client, err := upstream.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	m := newMapper(deferred)
	m.reset = deferred.Reset
	return m, nil
}

// openControllerRuntime opens controller-runtime's mapper, which asks the server about unknown
// types.
func openControllerRuntime(cfg *rest.Config) (*mapper, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	m, err := apiutil.NewDynamicRESTMapper(cfg, client)
	return newMapper(m), err
}

// openGVRKit opens a resolver, which runs.
func openGVRKit(cfg *rest.Config) (*mapper, error) {
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	m := newMapper(resolver.RESTMapper())
	m.run = resolver.Run
	m.settled = func() bool {
		complete := func(s discovery.SourceStatus) bool {
			return s.State == discovery.SourceCurrent || s.State == discovery.SourceAbsent
		}
		s := resolver.Status()
		return complete(s.CRDs) && complete(s.APIServices) && complete(s.Documents) && s.Types > 0
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

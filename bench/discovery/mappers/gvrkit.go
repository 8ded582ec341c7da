package mappers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
)

// openGVRKitAsking opens a resolver that does not run.
func openGVRKitAsking(cfg *rest.Config) (*Mapper, error) {
	m, _, err := openResolver(cfg)
	return m, err
}

// openGVRKit opens a resolver that runs.
func openGVRKit(cfg *rest.Config) (*Mapper, error) {
	m, resolver, err := openResolver(cfg)
	if err != nil {
		return nil, err
	}
	m.Run = resolver.Run
	m.Settled = func() bool {
		s := resolver.Status()
		return s.CRDs.State == discovery.SourceCurrent && s.APIServices.State == discovery.SourceCurrent &&
			s.Documents.State == discovery.SourceCurrent && s.Types > 0
	}
	m.Await = func(ctx context.Context, gvr schema.GroupVersionResource) error {
		_, err := resolver.Await(ctx, gvr)
		return err
	}
	return m, nil
}

func openResolver(cfg *rest.Config) (*Mapper, *discovery.Resolver, error) {
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return nil, nil, err
	}
	return &Mapper{
		RESTMapper: resolver.RESTMapper(),
		Resolve: func(ctx context.Context, ref string) (schema.GroupVersionResource, error) {
			res, err := resolver.Resolve(ctx, ref)
			return res.GVR, err
		},
		ResolveGVK: func(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
			res, err := resolver.ResolveGVK(ctx, gvk)
			return res.GVR, err
		},
	}, resolver, nil
}

package controllerruntime

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Runnable returns factory as a runnable of a manager, which starts it and shuts it down. The manager runs it before it is the leader. It is for
// a factory of the program; a [Cache] runs its own.
func Runnable(factory *dynamicinformer.Factory) manager.Runnable { return runnable{factory} }

type runnable struct{ factory *dynamicinformer.Factory }

var _ manager.LeaderElectionRunnable = runnable{}

// Start implements manager.Runnable. It waits until all handlers have returned; the manager limits that time.
func (r runnable) Start(ctx context.Context) error {
	r.factory.Start(ctx)
	<-ctx.Done()
	return r.factory.Shutdown(context.WithoutCancel(ctx))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r runnable) NeedLeaderElection() bool { return false }

var errNoResolver = errors.New("the resolver is nil")

// MapperProvider returns the function for the field MapperProvider of ctrl.Options, with [discovery.Resolver.RESTMapper]. The cache should have
// the same resolver, by [WithFactoryOptions] and [dynamicinformer.WithDiscovery]: the cache runs the resolver, and the mapper then answers from
// memory.
func MapperProvider(resolver *discovery.Resolver) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		if resolver == nil {
			return nil, errNoResolver
		}
		return resolver.RESTMapper(), nil
	}
}

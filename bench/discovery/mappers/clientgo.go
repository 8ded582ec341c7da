package mappers

import (
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// openClientGo opens client-go's mapper on its cache. The cache calls itself fresh once
// it has been filled, so that the mapper resets itself only before that: Forget is left
// to the user.
func openClientGo(cfg *rest.Config) (*Mapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	return &Mapper{RESTMapper: deferred, Forget: deferred.Reset}, nil
}

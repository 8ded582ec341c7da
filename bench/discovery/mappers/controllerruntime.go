package mappers

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// openControllerRuntime opens controller-runtime's mapper. It asks by itself for what it
// does not know.
func openControllerRuntime(cfg *rest.Config) (*Mapper, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, client)
	if err != nil {
		return nil, err
	}
	return &Mapper{RESTMapper: mapper}, nil
}

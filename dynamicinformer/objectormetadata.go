package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"

	"github.com/gvrkit/gvrkit/discovery"
)

// InformerFactory returns informers on any resource. It has the methods of the interface of this name in
// k8s.io/controller-manager/pkg/informerfactory, which the garbage collector and the quota controller use.
// Values of the two interfaces can be assigned to each other.
type InformerFactory interface {
	// ForResource returns the informer for gvr, creating it on first use.
	ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error)
	// Start runs the requested informers that have not been started, each until stopCh closes.
	Start(stopCh <-chan struct{})
}

// ObjectOrMetadata returns a view of two factories: ForResource returns shared's informer if shared knows
// the type, and otherwise f's informer with metadata only. Start starts both factories.
//
// If f has discovery, ForResource returns the error of [discovery.Resolver.Validate] for a type that f
// would watch and that is not served, or that can't be listed and watched. It waits for discovery for up
// to ten seconds. If discovery is inconclusive, there is no error, and the informer waits for the type. If f
// has no metadata client, the error is an [*OptionError].
func ObjectOrMetadata(shared informers.SharedInformerFactory, f *Factory) InformerFactory {
	return &objectOrMetadata{shared, f}
}

type objectOrMetadata struct {
	shared  informers.SharedInformerFactory
	factory *Factory
}

// validateAfter is the maximum time that ForResource waits for discovery.
const validateAfter = 10 * time.Second

func (o *objectOrMetadata) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	if informer, err := o.shared.ForResource(gvr); err == nil {
		return informer, nil
	}
	if err := discovery.CheckGVR(gvr); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	if err := (asMetadata{}).check(&o.factory.clients); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(gvr), err)
	}
	if resolver := o.factory.Resolver(); resolver != nil {
		ctx, cancel := context.WithTimeout(wait.ContextForChannel(nil), validateAfter)
		defer cancel()
		if _, err := resolver.Validate(ctx, gvr); err != nil && !errors.Is(err, discovery.ErrInconclusive) && ctx.Err() == nil {
			return nil, fmt.Errorf("dynamicinformer: %w", err)
		}
	}
	return o.factory.forResource(gvr, asMetadata{}).informer, nil
}

func (o *objectOrMetadata) Start(stopCh <-chan struct{}) {
	o.shared.Start(stopCh)
	o.factory.DropIn().Start(stopCh)
}

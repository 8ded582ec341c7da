package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/internal/informer"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typestate"
)

// This file has the names of k8s.io/client-go/dynamic/dynamicinformer v0.37.2 with the same signatures, so that a program uses this package
// after the change of an import line, and those of its siblings for metadata. Everything is a view of Factory.

// DynamicSharedInformerFactory has the same methods as client-go's interface of this name. Values of the two interfaces can be assigned to each other.
type DynamicSharedInformerFactory interface {
	// Start runs the requested informers that have not been started, each until stopCh closes. It does not wait, and has no effect after Shutdown.
	Start(stopCh <-chan struct{})

	// ForResource returns the shared informer for gvr, creating it on first use; see [Factory.ForResource]. It does not start the informer: Start does.
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer

	// WaitForCacheSync waits until each started informer has synced or has been stopped, or until stopCh closes. It returns true for each informer
	// that has synced. It does not poll. After the list, it waits at most 100 ms for the first watch. It does not wait for informers of leases.
	WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool

	// Shutdown makes Start a no-op and waits until all started informers have ended. The caller must close their stop channels, before this call
	// or during it. Shutdown may be called several times and concurrently.
	Shutdown()
}

// TweakListOptionsFunc changes the options of list and watch requests. It is called for each request with the options of that request.
type TweakListOptionsFunc = func(*metav1.ListOptions)

// NewDynamicSharedInformerFactory returns a factory of informers on all namespaces. It has no discovery; for a factory with discovery, see [NewForConfig].
func NewDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns a factory of informers on one namespace. If tweakListOptions is not nil, it is applied to each request.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return newFactory(form.Clients{Own: client}, newOptions(
		asClientGo(defaultResync), WithNamespace(namespace), WithTweakListOptions(tweakListOptions),
	)).DropIn()
}

// NewFilteredDynamicInformer returns an informer without a factory; the caller runs it. If indexers is nil, it has no index, not even by namespace.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	o := newOptions(asClientGo(resyncPeriod), WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
	return standalone(source.Unstructured(client), o, gvr, indexers)
}

// standalone returns an informer without a factory.
func standalone(client source.Client, o options, gvr schema.GroupVersionResource, indexers cache.Indexers) informers.GenericInformer {
	state := typestate.New(gvr, typestate.Config{Namespace: o.namespace, Changed: &broadcast.Broadcaster{}})
	cfg := o.config(client, nil, gvr)
	cfg.Observer = state
	i := informer.New(informer.Config{
		Source: cfg, LogError: state.LogError, Begin: state.Begin, Resync: o.resync, Indexers: indexers, Lister: o.form.Lister, Packer: form.Packer(o.form, o.packed),
	})
	state.SetSource(i.Source(), i.HasSynced)
	return i
}

// NewFilteredMetadataSharedInformerFactory is NewFilteredDynamicSharedInformerFactory with a metadata client: the objects are
// *metav1.PartialObjectMetadata. Package metadatainformer has client-go's names for it.
func NewFilteredMetadataSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc, transform cache.TransformFunc) DynamicSharedInformerFactory {
	o := newOptions(asClientGo(defaultResync), WithNamespace(namespace), WithTweakListOptions(tweakListOptions), WithTransform(transform))
	o.form = form.Metadata{}
	return newFactory(form.Clients{Metadata: client}, o).DropIn()
}

// NewFilteredMetadataInformer is NewFilteredDynamicInformer with a metadata client: the objects are
// *metav1.PartialObjectMetadata. Package metadatainformer has client-go's name for it.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	o := newOptions(asClientGo(resyncPeriod), WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
	o.form = form.Metadata{}
	return standalone(source.Metadata(client), o, gvr, indexers)
}

// DropIn returns a view of the factory with client-go's interface, for code that takes a factory of client-go. The view shares the factory's
// informers, and neither of the two starts an informer that the other has started. ForResource of the view starts no informer. Start of the view runs
// the informers that ForResource has returned, also if leases share them, until its stop channel closes or the factory is shut down.
func (f *Factory) DropIn() DynamicSharedInformerFactory {
	return &dynamicSharedInformerFactory{factory: f}
}

type dynamicSharedInformerFactory struct{ factory *Factory }

func (v *dynamicSharedInformerFactory) Start(stopCh <-chan struct{}) {
	// Informers of leases run when the factory runs: client-go has no leases.
	v.factory.startAll(wait.ContextForChannel(stopCh), func(e *entry) bool { return e.pinned })
}

func (v *dynamicSharedInformerFactory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	return v.factory.forResource(gvr, v.factory.options.form).informer
}

func (v *dynamicSharedInformerFactory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	return v.factory.waitForStarted(wait.ContextForChannel(stopCh))
}

func (v *dynamicSharedInformerFactory) Shutdown() {
	v.factory.close()
	_ = v.factory.drain(context.Background()) // can't fail: this context never ends
}

// InformerFactory returns informers on any resource. It has the methods of the interface of this name in k8s.io/controller-manager/pkg/informerfactory,
// which the garbage collector and the quota controller use. Values of the two interfaces can be assigned to each other.
type InformerFactory interface {
	// ForResource returns the informer for gvr, creating it on first use.
	ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error)
	// Start runs the requested informers that have not been started, each until stopCh closes.
	Start(stopCh <-chan struct{})
}

// ObjectOrMetadata returns a view of two factories: ForResource returns shared's informer if shared knows
// the type, and otherwise f's informer with metadata only. Start starts both factories.
//
// If f has discovery, ForResource returns the error of [discovery.Resolver.Validate] for a type that shared does not know, if the type is not served
// or can't be listed and watched. ForResource waits for discovery for up to ten seconds. If discovery is inconclusive, there is no error, and the
// informer waits for the type. If f has no metadata client, the error is an [*OptionError].
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
	if o.shared == nil || o.factory == nil {
		return nil, errors.New("dynamicinformer: a factory of ObjectOrMetadata is nil")
	}
	if informer, err := o.shared.ForResource(gvr); err == nil {
		return informer, nil
	}
	if err := discovery.CheckGVR(gvr); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	if err := optionError((form.Metadata{}).Check(&o.factory.clients)); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(gvr), err)
	}
	if o.factory.Resolver() != nil {
		ctx, cancel := context.WithTimeout(wait.ContextForChannel(nil), validateAfter)
		defer cancel()
		if _, err := o.factory.resolve(ctx, &key{gvr: gvr}, o.factory.options.verbs()...); err != nil && !errors.Is(err, discovery.ErrInconclusive) && ctx.Err() == nil {
			return nil, fmt.Errorf("dynamicinformer: %w", err)
		}
	}
	return o.factory.forResource(gvr, form.Metadata{}).informer, nil
}

func (o *objectOrMetadata) Start(stopCh <-chan struct{}) {
	if o.shared == nil || o.factory == nil {
		return // ForResource has returned the error
	}
	o.shared.Start(stopCh)
	o.factory.DropIn().Start(stopCh)
}

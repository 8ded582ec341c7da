package dynamicinformer

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/typestate"
)

// This file has the names of k8s.io/client-go/dynamic/dynamicinformer v0.37.2,
// with the same signatures, so that a program changes to this package by changing
// an import line. There is no logic here: everything is a view of Factory.

// DynamicSharedInformerFactory is client-go's interface of the same name, method
// for method: values of either are values of the other.
type DynamicSharedInformerFactory interface {
	// Start runs the informers asked for so far that have not been started, each
	// until stopCh closes. It does not wait, and does nothing after Shutdown.
	Start(stopCh <-chan struct{})

	// ForResource returns the shared informer for gvr, creating it on first use;
	// see [Factory.ForResource]. It never starts it: Start does.
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer

	// WaitForCacheSync waits until each started informer has synced or has been
	// stopped, or until stopCh closes, and returns which have synced. It waits on
	// channels and does not poll; for the watch that follows a list it waits a tenth of a
	// second at most. It does not wait for informers of leases.
	WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool

	// Shutdown makes Start a no-op and waits until all started informers have
	// ended, for which their stop channels must be closed, before or meanwhile.
	// It may be called several times and concurrently.
	Shutdown()
}

// TweakListOptionsFunc changes the options of list and watch requests. It is
// called for each request, with options of the request's own.
type TweakListOptionsFunc = func(*metav1.ListOptions)

// NewDynamicSharedInformerFactory returns a factory of informers on all
// namespaces. It has no discovery: for that, see [NewForConfig].
func NewDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns a factory of informers on one
// namespace, whose requests pass through tweakListOptions if it is not nil.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return newFactory(clients{own: client}, newOptions(
		withExactResync(defaultResync), WithNamespace(namespace), WithTweakListOptions(tweakListOptions),
	)).DropIn()
}

// NewFilteredDynamicInformer returns an informer that no factory shares; the
// caller runs it. The default of nil indexers is none, not even by namespace.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	o := newOptions(withExactResync(resyncPeriod), WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
	return newInformer(o.config(client, gvr), typestate.New(typestate.Config{GVR: gvr, Namespace: namespace, Changed: &broadcast.Broadcaster{}}).LogError, o.resync, indexers, nil)
}

// DropIn returns the factory in the form of client-go's, for code that takes one.
// It shares the factory's informers, and an informer that either has started is
// not started again. ForResource of the view starts nothing; Start of the view
// runs informers until its own channel closes or the factory is shut down.
func (f *Factory) DropIn() DynamicSharedInformerFactory {
	return &dynamicSharedInformerFactory{factory: f}
}

type dynamicSharedInformerFactory struct{ factory *Factory }

func (v *dynamicSharedInformerFactory) Start(stopCh <-chan struct{}) {
	// Leases are none of client-go's: their informers run when the factory does.
	v.factory.startAll(wait.ContextForChannel(stopCh), func(e *entry) bool { return e.pinned })
}

func (v *dynamicSharedInformerFactory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	return v.factory.forResource(gvr).informer
}

func (v *dynamicSharedInformerFactory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	return v.factory.waitForStarted(wait.ContextForChannel(stopCh))
}

func (v *dynamicSharedInformerFactory) Shutdown() {
	v.factory.close()
	_ = v.factory.drain(context.Background()) // can't fail without an end of its context
}

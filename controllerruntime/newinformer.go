package controllerruntime

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typed"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/status"
)

// lease is what a cache needs of a [dynamicinformer.Lease].
type lease interface {
	Informer() toolscache.SharedIndexInformer
	AddPackedHandler(handler toolscache.TypedResourceEventHandler[*packed.Object], opts toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error)
	Watch(ctx context.Context) iter.Seq[status.Informer]
	Status() status.Informer
	WaitForSync(ctx context.Context, opts ...dynamicinformer.WaitOption) error
	Resource() discovery.Resource
	Release()
	Done() <-chan struct{}
}

// maker creates the informers of a cache with cache.Options.NewInformer. They are not those of the factory.
type maker struct {
	new     func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
	onError toolscache.WatchErrorHandlerWithContext
	clients form.Clients
}

// newMaker returns nil if opts have no NewInformer.
func newMaker(cfg *rest.Config, opts *cache.Options) (*maker, error) {
	if opts.NewInformer == nil {
		return nil, nil
	}
	clients, err := form.NewClients(cfg, opts.HTTPClient, nil)
	return &maker{opts.NewInformer, opts.DefaultWatchErrorHandler, clients}, err
}

// newLease returns the lease on a new informer.
func (m *maker) newLease(k key, object runtime.Object, w *watch, mapping *meta.RESTMapping) (*madeLease, error) {
	period := periodOf(&w.config)
	made := m.new(m.listerWatcher(k, object, w, mapping), object, wait.Jitter(period-period/10, 0.2),
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if m.onError != nil {
		if err := made.SetWatchErrorHandlerWithContext(m.onError); err != nil {
			return nil, err
		}
	}
	if err := made.SetTransform(w.config.Transform); err != nil {
		return nil, err
	}
	l := &madeLease{SharedIndexInformer: made, released: make(chan struct{}), resource: discovery.Resource{
		GVR: mapping.Resource, GVK: k.gvk, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}}
	return l, nil
}

// listerWatcher returns the ListerWatcher of a new informer.
func (m *maker) listerWatcher(k key, object runtime.Object, w *watch, mapping *meta.RESTMapping) *toolscache.ListWatch {
	of := selectedBy(w.namespace, &w.config)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		of.namespace = ""
	}
	requests, convert := m.requests(k, object)
	choose := func(opts *metav1.ListOptions) { // NewInformer may have set the selectors that the cache does not
		if w.config.LabelSelector != nil {
			opts.LabelSelector = of.labels
		}
		if w.config.FieldSelector != nil {
			opts.FieldSelector = of.fields
		}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			choose(&opts)
			list, err := requests.List(ctx, mapping.Resource, of.namespace, opts)
			if err != nil || convert == nil {
				return list, err
			}
			return converted(list, convert)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
			choose(&opts)
			opts.Watch, opts.AllowWatchBookmarks = true, of.bookmarks
			events, err := requests.Watch(ctx, mapping.Resource, of.namespace, opts)
			if err != nil || convert == nil {
				return events, err
			}
			return newConvertedWatch(events, convert), nil
		},
	}
}

// requests returns the client of an informer, and the function that gives its objects their form; nil: they have it.
func (m *maker) requests(k key, object runtime.Object) (source.Client, func(runtime.Object) (runtime.Object, error)) {
	switch k.form {
	case asUnstructured:
		return source.Unstructured(m.clients.Own), nil
	case asMetadata:
		return source.Metadata(m.clients.Metadata), func(object runtime.Object) (runtime.Object, error) {
			object.GetObjectKind().SetGroupVersionKind(k.gvk)
			return object, nil
		}
	}
	requests := typed.Convert(m.clients.Own, gotype.Of[source.Object]{Type: reflect.TypeOf(object)})
	convert := requests.Convert()
	return requests, func(object runtime.Object) (runtime.Object, error) {
		converted, err := convert(object)
		if err == nil {
			converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as withKind does
		}
		return converted, err
	}
}

// converted returns a list of the items of list in another form.
func converted(list runtime.Object, convert func(runtime.Object) (runtime.Object, error)) (runtime.Object, error) {
	items, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return nil, err
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	result := &internalversion.List{Items: items}
	result.ResourceVersion, result.Continue, result.RemainingItemCount = of.GetResourceVersion(), of.GetContinue(), of.GetRemainingItemCount()
	for n, item := range items {
		if items[n], err = convert(item); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// convertedWatch is a watch whose objects have another form. Its goroutine ends with Stop, also while an event waits for its reader, unlike that
// of apimachinery's Filter.
type convertedWatch struct {
	apiwatch.Interface
	events  chan apiwatch.Event
	stopped chan struct{}
	stop    func()
}

func newConvertedWatch(from apiwatch.Interface, convert func(runtime.Object) (runtime.Object, error)) *convertedWatch {
	w := &convertedWatch{Interface: from, events: make(chan apiwatch.Event), stopped: make(chan struct{})}
	w.stop = sync.OnceFunc(func() { close(w.stopped) })
	go func() {
		defer close(w.events)
		for event := range from.ResultChan() {
			select {
			case w.events <- convertedEvent(event, convert):
			case <-w.stopped:
				return
			}
		}
	}()
	return w
}

// ResultChan implements watch.Interface.
func (w *convertedWatch) ResultChan() <-chan apiwatch.Event { return w.events }

// Stop implements watch.Interface.
func (w *convertedWatch) Stop() {
	w.stop()
	w.Interface.Stop()
}

// convertedEvent returns event with its object in another form. An object that can't be converted ends the watch.
func convertedEvent(event apiwatch.Event, convert func(runtime.Object) (runtime.Object, error)) apiwatch.Event {
	if event.Type == apiwatch.Error {
		return event
	}
	object, err := convert(event.Object)
	if err != nil {
		return apiwatch.Event{Type: apiwatch.Error, Object: &apierrors.NewInternalError(err).ErrStatus}
	}
	event.Object = object
	return event
}

// madeLease is the lease on an informer of NewInformer.
type madeLease struct {
	toolscache.SharedIndexInformer
	resource discovery.Resource
	released chan struct{}
}

var _ lease = (*madeLease)(nil)

// run runs the informer until stop closes, or the lease is released.
func (l *madeLease) run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(wait.ContextForChannel(stop))
	defer cancel()
	defer context.AfterFunc(wait.ContextForChannel(l.released), cancel)()
	l.RunWithContext(ctx)
}

// Informer implements lease.
func (l *madeLease) Informer() toolscache.SharedIndexInformer { return l.SharedIndexInformer }

// AddPackedHandler implements lease.
func (l *madeLease) AddPackedHandler(toolscache.TypedResourceEventHandler[*packed.Object], toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return nil, errors.New("the cache of the informer is not packed")
}

// Status implements lease.
func (l *madeLease) Status() status.Informer {
	now := status.Informer{GVR: l.resource.GVR, Resource: l.resource, Listed: l.HasSynced()}
	if !now.Listed {
		now.Reason = status.ReasonSyncing
	}
	return now
}

// Watch implements lease.
func (l *madeLease) Watch(ctx context.Context) iter.Seq[status.Informer] {
	return func(yield func(status.Informer) bool) {
		if !yield(l.Status()) {
			return
		}
		select {
		case <-l.HasSyncedChecker().Done():
			yield(l.Status())
		case <-l.released:
		case <-ctx.Done():
		}
	}
}

// WaitForSync implements lease.
func (l *madeLease) WaitForSync(ctx context.Context, _ ...dynamicinformer.WaitOption) error {
	for now := range l.Watch(ctx) {
		if now.Listed {
			return nil
		}
	}
	return &status.NotSyncedError{GVR: l.resource.GVR, Reason: status.ReasonSyncing, At: time.Now()}
}

// Resource implements lease.
func (l *madeLease) Resource() discovery.Resource { return l.resource }

// Release implements lease. It is called once.
func (l *madeLease) Release() { close(l.released) }

// Done implements lease.
func (l *madeLease) Done() <-chan struct{} { return l.released }

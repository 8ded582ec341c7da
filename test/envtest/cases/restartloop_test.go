package cases

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	loopPeriod  = 500 * time.Millisecond
	syncTimeout = 10 * time.Second
)

// restartLoop is the code that programs write around client-go's dynamicinformer for types that come and go.
type restartLoop struct {
	gvr       schema.GroupVersionResource
	namespace string // empty: all
	client    dynamic.Interface
	discovery discovery.DiscoveryInterface
	handler   cache.ResourceEventHandler
	cancel    context.CancelFunc
	ended     chan struct{}

	mu      sync.Mutex
	current cache.SharedIndexInformer // nil while the type is not served
	end     func()                    // of the informer
}

// watchByRestartLoops starts a loop for each namespace, or one for all.
func watchByRestartLoops(s *scenario, gvr schema.GroupVersionResource, handler cache.ResourceEventHandler, namespaces ...string) watcher {
	if namespaces == nil {
		return watchByRestartLoop(s, gvr, metav1.NamespaceAll, handler)
	}
	var all restartLoops
	for _, namespace := range namespaces {
		all = append(all, watchByRestartLoop(s, gvr, namespace, handler))
	}
	return all
}

func watchByRestartLoop(s *scenario, gvr schema.GroupVersionResource, namespace string, handler cache.ResourceEventHandler) *restartLoop {
	client, err := dynamic.NewForConfigAndClient(s.config, s.http)
	s.check(err)
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(s.config, s.http)
	s.check(err)
	ctx, cancel := context.WithCancel(s.ctx)
	l := &restartLoop{gvr: gvr, namespace: namespace, client: client, discovery: disco, handler: handler, cancel: cancel, ended: make(chan struct{})}
	go l.run(ctx)
	return l
}

func (l *restartLoop) run(ctx context.Context) {
	defer close(l.ended)
	defer l.endInformer()
	for {
		switch served, err := l.serves(l.gvr); {
		case err != nil: // it may be served
		case served && l.informer() == nil:
			l.startInformer(ctx)
		case !served:
			l.endInformer()
		}
		select {
		case <-time.After(loopPeriod):
		case <-ctx.Done():
			return
		}
	}
}

func (l *restartLoop) serves(gvr schema.GroupVersionResource) (bool, error) {
	list, err := l.discovery.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource }), nil
}

// startInformer starts an informer. It returns when the informer has synced, or ends the informer after syncTimeout, unless the list has just come:
// WaitForCacheSync looks each 0.1 s.
func (l *restartLoop) startInformer(ctx context.Context) {
	factory := upstream.NewFilteredDynamicSharedInformerFactory(l.client, 0, l.namespace, nil)
	informer := factory.ForResource(l.gvr).Informer()
	if _, err := informer.AddEventHandler(l.handler); err != nil {
		return
	}
	stop := make(chan struct{})
	l.mu.Lock()
	l.current, l.end = informer, func() { close(stop); factory.Shutdown() }
	l.mu.Unlock()
	factory.Start(stop)
	wait, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !factory.WaitForCacheSync(wait.Done())[l.gvr] && len(informer.GetStore().ListKeys()) == 0 {
		l.endInformer()
	}
}

// endInformer ends the informer, and then drops its cache: no event of it follows.
func (l *restartLoop) endInformer() {
	l.mu.Lock()
	end := l.end
	l.mu.Unlock()
	if end != nil {
		end()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.end = nil, nil
}

func (l *restartLoop) informer() cache.SharedIndexInformer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

func (l *restartLoop) wait(ctx context.Context, limit time.Duration) string {
	if !eventually(ctx, limit, func() bool { informer := l.informer(); return informer != nil && informer.HasSynced() }) {
		return noReason
	}
	return synced
}

func (l *restartLoop) state() string { return nothing }

func (l *restartLoop) objects() ([]*unstructured.Unstructured, bool) {
	informer := l.informer()
	if informer == nil || !informer.HasSynced() {
		return nil, false
	}
	return unstructuredOf(informer.GetStore()), true
}

func (l *restartLoop) retry() {}

func (l *restartLoop) leave() { l.stop() }

func (l *restartLoop) stop() {
	l.cancel()
	<-l.ended
}

// restartLoops are the loops of several namespaces.
type restartLoops []*restartLoop

func (all restartLoops) wait(ctx context.Context, limit time.Duration) string {
	for _, l := range all {
		if got := l.wait(ctx, limit); got != synced {
			return got
		}
	}
	return synced
}

func (restartLoops) state() string { return nothing }

func (all restartLoops) objects() (objects []*unstructured.Unstructured, readable bool) {
	for _, l := range all {
		of, is := l.objects()
		objects, readable = append(objects, of...), readable || is
	}
	return objects, readable
}

// informer returns nil: a set of namespaces has several.
func (restartLoops) informer() cache.SharedIndexInformer { return nil }

func (restartLoops) retry() {}

func (all restartLoops) leave() { all.stop() }

func (all restartLoops) stop() {
	for _, l := range all {
		l.stop()
	}
}

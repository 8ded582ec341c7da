package fakecluster

import (
	"context"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func (r *resource) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	req := r.request("watch", "")
	req.Options = opts
	s, err := r.cluster.arrive(ctx, req)
	if err != nil {
		return nil, err
	}
	sel, err := newSelection(r.namespace, opts, r.cluster.isSharded())
	if err != nil {
		return nil, err
	}
	cancel := context.CancelFunc(nil)
	if seconds := opts.TimeoutSeconds; seconds != nil && *seconds > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*seconds)*time.Second)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	w := &watcher{cluster: r.cluster, store: s, sel: sel, events: make(chan watch.Event), cancel: cancel}
	if err := w.begin(opts); err != nil {
		cancel()
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

// watcher is an open watch. Its goroutine ends after Stop, after the end of the request's
// context, after its timeout, or when the cluster closes the watch.
type watcher struct {
	cluster *Cluster
	store   *store
	sel     selection
	events  chan watch.Event
	cancel  context.CancelFunc
	ended   sync.Once

	pending []watch.Event // owned by run after its start
	version int64         // of the last change in pending
	epoch   int

	wantsBookmarks bool
	bookmarks      int   // the number of bookmarks that were due
	from           int64 // the version with which the watch began
}

func (w *watcher) Stop()                          { w.cancel() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// begin sets pending to the initial events for opts.
func (w *watcher) begin(opts metav1.ListOptions) error {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	w.epoch, w.bookmarks, w.wantsBookmarks = w.store.epoch, w.store.bookmarks, opts.AllowWatchBookmarks
	w.version = w.cluster.version
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	switch from := opts.ResourceVersion; {
	case initial || from == "" || from == "0":
		for _, obj := range w.store.matching(w.sel) {
			w.pending = append(w.pending, watch.Event{Type: watch.Added, Object: obj})
		}
	default:
		version, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
		if version < w.store.floor {
			return apierrors.NewResourceExpired("too old resource version: " + from)
		}
		w.version = version
	}
	w.from = w.version
	if initial && !w.cluster.muteInitial {
		w.pending = append(w.pending, w.initialEventsEnd())
	}
	w.cluster.open[w.store.GVR]++
	return nil
}

func (w *watcher) initialEventsEnd() watch.Event {
	mark := &unstructured.Unstructured{}
	mark.SetGroupVersionKind(w.store.GVR.GroupVersion().WithKind(w.store.Kind))
	mark.SetResourceVersion(formatVersion(w.version))
	mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return watch.Event{Type: watch.Bookmark, Object: mark}
}

func (w *watcher) run(ctx context.Context) {
	defer close(w.events)
	defer w.end()
	defer w.cancel()
	for {
		for _, event := range w.pending {
			select {
			case w.events <- event:
			case <-ctx.Done():
				return
			}
		}
		changed, open := w.collect()
		if !open {
			return
		}
		if len(w.pending) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// collect adds later changes to pending. It returns a channel that closes at the next change,
// and whether the watch is open.
func (w *watcher) collect() (<-chan struct{}, bool) {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	w.pending = w.pending[:0]
	if w.store.epoch != w.epoch {
		return nil, false
	}
	if w.version < w.store.floor {
		status := apierrors.NewResourceExpired("the next events of the watch have expired").Status()
		w.pending = append(w.pending, watch.Event{Type: watch.Error, Object: &status})
		w.epoch-- // the next call closes the watch
		return w.store.changed, true
	}
	for _, ch := range w.store.since(w.version) {
		w.version = ch.version
		if event, seen := ch.event(w.sel); seen {
			w.pending = append(w.pending, event)
		}
	}
	if mark, due := w.bookmark(); due {
		w.pending = append(w.pending, mark)
	}
	return w.store.changed, true
}

func (w *watcher) end() {
	w.ended.Do(func() {
		w.cluster.mu.Lock()
		defer w.cluster.mu.Unlock()
		w.cluster.open[w.store.GVR]--
	})
}

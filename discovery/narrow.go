package discovery

import (
	"context"
	"maps"
	"net/http/httptrace"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// narrow is the first phase of a run for informers. It requests only the types of the informers: the
// document of each type's group version, and the metadata of its CRD and its APIService, which it
// watches by name. When anything is not as expected, it does not find out why: the run widens. It
// then requests everything, and compares the result with the types that are known here. The run widens when
//
//   - an informer is on a fifth type, also if others are released, or on another version or with another
//     [VersionPolicy] than [Exact];
//   - the program asks the resolver a question, or subscribes;
//   - a type is not served, or its CRD was written less than ten seconds ago;
//   - a request fails, or the server does not respond within a second at the start;
//   - the document, the generation of the CRD or the server behind the APIService has changed, or
//     one of these objects is deleted.
//
// The lock of the run guards the fields.
type narrow struct {
	live    *live
	server  *restServer
	types   []*narrowType
	news    chan struct{} // has one if there is a new type
	widened chan struct{} // closed when the run widens
}

// narrowType is what a narrow run knows of one type.
type narrowType struct {
	gvr       schema.GroupVersionResource
	res       *Resource     // from the document; nil: not read yet. Never written after concluded is closed
	connected chan struct{} // closed when the request for the document has a connection, or has ended
	crd, api  narrowObject
	concluded chan struct{} // closed when it is known what serves the type
}

func (t *narrowType) isConcluded() bool {
	select {
	case <-t.concluded:
		return true
	default:
		return false
	}
}

// narrowObject is what a narrow run knows of a CRD or an APIService.
type narrowObject struct {
	name   string
	listed bool      // it has been listed, or the server has no such resource
	none   bool      // the server has no such resource
	meta   *slimMeta // nil: it does not exist
	gone   bool      // meta has been deleted since
}

func newNarrow(l *live, s *restServer) *narrow {
	return &narrow{live: l, server: s, news: make(chan struct{}, 1), widened: make(chan struct{})}
}

// run requests the types of the informers until the run widens or ctx ends. It reports whether the
// run has widened.
func (n *narrow) run(ctx context.Context) (widened bool) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer n.live.widen() // ends the waits of informers
	for begun := 0; ; {
		if begun > 0 { // the list of the type before goes first
			sleep(ctx, n.live.pace.next, n.widened)
		}
		n.live.mu.Lock()
		added := slices.Clone(n.types[begun:])
		n.live.mu.Unlock()
		begun += len(added)
		for _, t := range added {
			wg.Go(func() { n.ask(ctx, t) })
			wg.Go(func() { n.limit(ctx, t) })
			if t.gvr.Group != "" { // the core group is built in
				wg.Go(func() { n.watch(ctx, t, &t.crd, n.live.crdSource()) })
				wg.Go(func() { n.watch(ctx, t, &t.api, n.live.apiSource()) })
			}
		}
		select {
		case <-n.news:
		case <-n.widened:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// ask reads the document of t's group version, once a minute: an API server may be behind another.
func (n *narrow) ask(ctx context.Context, t *narrowType) {
	l := n.live
	connected := sync.OnceFunc(func() { close(t.connected) })
	defer connected()
	for first := true; first || sleep(ctx, l.jittered(l.pace.settled), nil); first = false {
		version, _, err := l.resolver.groupVersion(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { connected() },
		}), t.gvr.GroupVersion())
		connected()
		if ctx.Err() != nil {
			return
		}
		res, listed := listedAs(version, t.gvr)
		n.store(t, func(now time.Time) (expected bool) {
			if err != nil || !listed || missingVerbs(res, informerVerbs) != nil {
				return false
			}
			l.resolver.mu.Lock()
			l.docs.become(SourceCurrent, "", nil, now)
			l.resolver.mu.Unlock()
			if t.res == nil {
				t.res = &res
			}
			res.Backing, res.CRDUID = t.res.Backing, t.res.CRDUID
			return reflect.DeepEqual(*t.res, res)
		})
	}
}

// limit widens the run if t is not known in time.
func (n *narrow) limit(ctx context.Context, t *narrowType) {
	if sleep(ctx, n.live.pace.first, t.concluded) && !t.isConcluded() {
		n.live.widen()
	}
}

// watch lists and watches the metadata of one object of t.
func (n *narrow) watch(ctx context.Context, t *narrowType, object *narrowObject, src source) {
	l := n.live
	select { // to use the same connection: another one costs more than the request
	case <-t.connected:
	case <-ctx.Done():
		return
	}
	w := &metadataWatch{
		getter: n.server.metadata.Resource(src.resource), endpoint: n.server.endpoint, path: src.path, name: object.name,
		pace: l.resolver.options.watchPace, jitter: l.resolver.options.jitter,
		before: func(ctx context.Context) { // requests of the informer go first
			sleep(ctx, l.pace.first, t.concluded)
			sleep(ctx, l.pace.batch, nil)
		},
		list: func(list metaList) {
			n.store(t, func(time.Time) (expected bool) { return object.list(list.items) })
		},
		event: func(kind watch.EventType, item *slimMeta) {
			n.store(t, func(time.Time) (expected bool) { return object.observe(kind, item) })
		},
		state: func(state SourceState, verb string, err error) {
			n.store(t, func(now time.Time) (expected bool) {
				l.resolver.mu.Lock()
				src.status.become(state, verb, err, now)
				l.resolver.mu.Unlock()
				if state == SourceAbsent {
					expected = !object.listed || object.none
					object.listed, object.none = true, true
					return expected
				}
				return state == SourceCurrent
			})
		},
	}
	w.run(ctx)
}

// list takes the result of a list by name, and reports whether it is as expected.
func (o *narrowObject) list(items []*slimMeta) (expected bool) {
	first := !o.listed
	o.listed = true
	switch {
	case len(items) == 0:
		o.gone = o.meta != nil
		return o.meta == nil && !o.none
	case len(items) > 1 || items[0].Name != o.name: // the server ignores the selector
		return false
	case first:
		o.meta = items[0]
		return o.meta.DeletionTimestamp == nil
	}
	return o.observe(watch.Modified, items[0])
}

// observe takes an event, and reports whether it changes nothing about what is served.
func (o *narrowObject) observe(kind watch.EventType, item *slimMeta) (expected bool) {
	if o.meta == nil || item.Name != o.name || item.UID != o.meta.UID {
		return false
	}
	o.gone = kind == watch.Deleted
	if o.gone || item.DeletionTimestamp != nil || item.Generation != o.meta.Generation || item.Labels[automanaged] != o.meta.Labels[automanaged] {
		return false
	}
	o.meta = item
	return true
}

// store calls what, which stores a part of what is known of t and reports whether that part is as
// expected. If it is not, the run widens.
func (n *narrow) store(t *narrowType, what func(now time.Time) (expected bool)) {
	l := n.live
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.narrow != n {
		return // the sources of a wide run find it, too
	}
	now := time.Now()
	if !what(now) || !n.conclude(t, now) {
		n.widenLocked()
	}
}

// conclude closes concluded once all its parts are there. It reports whether they fit together.
func (n *narrow) conclude(t *narrowType, now time.Time) (expected bool) {
	if t.isConcluded() || t.res == nil || !t.crd.listed || !t.api.listed {
		return true
	}
	crd, backing := t.crd.meta, BackingUnknown
	if t.api.meta != nil {
		backing = apiServiceOf(t.api.meta).backing()
	}
	switch {
	case t.gvr.Group == "", crd == nil && backing == BackingBuiltIn:
		t.res.Backing = BackingBuiltIn
	case crd != nil && (backing == BackingCRD || t.api.none) && now.Sub(crd.touched) > recently:
		t.res.Backing, t.res.CRDUID = BackingCRD, crd.UID
	case t.crd.none && t.api.none: // such a response may be wrong: it does not tell that the type is built in
	default: // also if the document may be older than the CRD
		return false
	}
	close(t.concluded)
	n.live.resolver.rememberNarrow(n.snapshot())
	return true
}

// snapshot returns the known types, without their other versions.
func (n *narrow) snapshot() *snapshot {
	groups := map[string]*groupDoc{}
	states := map[schema.GroupVersionResource]typeState{}
	for _, t := range n.types {
		if !t.isConcluded() {
			continue
		}
		group := groups[t.gvr.Group]
		if group == nil {
			group = &groupDoc{name: t.gvr.Group}
			groups[t.gvr.Group] = group
		}
		group.version(t.gvr.Version).add(*t.res)
		state := typeState{resource: *t.res, backing: t.res.Backing, uid: t.res.CRDUID}
		if crd := t.crd.meta; crd != nil {
			state.defined, state.labels, state.written = true, crd.Labels, crd.created
		}
		states[t.gvr] = state
	}
	var views []*groupView
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		view := newGroupView(*groups[name])
		for i := range view.resources {
			view.resources[i].Versions = nil
			view.types = append(view.types, states[view.resources[i].GVR])
		}
		views = append(views, view)
	}
	return newSnapshot(views, nil, nil)
}

// crdOf returns the metadata of the CRD of gr; nil if it is not known. The caller holds the lock of the run.
func (n *narrow) crdOf(gr schema.GroupResource) *slimMeta {
	i := slices.IndexFunc(n.types, func(t *narrowType) bool { return t.gvr.GroupResource() == gr })
	if i < 0 {
		return nil
	}
	return n.types[i].crd.meta
}

// wantLocked returns what is known of gvr, and requests it from now on. It returns nil if the run
// widens. The caller holds the lock of the run.
func (n *narrow) wantLocked(gvr schema.GroupVersionResource) *narrowType {
	another := func(t *narrowType) bool { return t.gvr != gvr && t.gvr.GroupResource() == gvr.GroupResource() }
	if i := slices.IndexFunc(n.types, func(t *narrowType) bool { return t.gvr == gvr }); i >= 0 {
		return n.types[i]
	}
	if len(n.types) == typefacts.Few || slices.ContainsFunc(n.types, another) {
		n.widenLocked()
		return nil
	}
	t := &narrowType{gvr: gvr, connected: make(chan struct{}), concluded: make(chan struct{})}
	t.crd.name, t.api.name = gvr.GroupResource().String(), gvr.Version+"."+gvr.Group
	t.crd.listed, t.api.listed = gvr.Group == "", gvr.Group == ""
	n.types = append(n.types, t)
	signal(n.news)
	return t
}

// widenLocked ends the narrow phase. The caller holds the lock of the run.
func (n *narrow) widenLocked() {
	l := n.live
	if l.narrow != n {
		return
	}
	for _, t := range n.types {
		if t.isConcluded() && t.crd.meta != nil {
			l.knowledge.before = append(l.knowledge.before, t.crd)
		}
	}
	l.resolver.mu.Lock()
	l.narrow = nil
	l.connectLocked() // no source of the wide run has answered yet
	l.resolver.mu.Unlock()
	close(n.widened)
}

// recall stores a CRD of the narrow phase as if it had been listed before the first document. If the
// narrow phase has observed its deletion, that follows.
func (k *knowledge) recall(object narrowObject, number uint64, now time.Time) {
	changed := k.changed
	k.putCRD(object.meta, 0, now)
	k.changed = changed // the first document has it
	if object.gone {
		k.forgetCRD(object.meta, number, now)
	}
}

// widen ends the narrow phase of the current run, if it is in that phase.
func (r *Resolver) widen() {
	if l := r.liveRun(); l != nil {
		l.widen()
	}
}

func (l *live) widen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.narrow != nil {
		l.narrow.widenLocked()
	}
}

// narrowly answers the question of an informer about gvr from a narrow run. It reports false if
// another source must answer: the run is not narrow, or it widens.
func (r *Resolver) narrowly(ctx context.Context, gvr schema.GroupVersionResource) (res Resource, known bool) {
	l := r.liveRun()
	if l == nil || ctx == nil || !typefacts.ForInformers(ctx) || CheckGVR(gvr) != nil {
		return Resource{}, false
	}
	var t *narrowType
	l.mu.Lock()
	n := l.narrow
	if n != nil {
		t = n.wantLocked(gvr)
	}
	l.mu.Unlock()
	if t == nil {
		return Resource{}, false
	}
	select {
	case <-t.concluded:
		r.answers.served.Add(1)
		return *t.res, true
	case <-n.widened:
	case <-ctx.Done():
	}
	return Resource{}, false
}

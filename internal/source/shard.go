package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/sharding"
)

// This file limits a source to the slots of a shard. Lists and watches carry the selector of the slots (KEP-5866). A server
// without the feature ignores it, so the source also leaves out what is in other slots.
//
// When the view of the shard changes, the objects of lost slots leave the reflector as moved, and gained slots are listed beside
// the open watch. A watch of all slots then replaces the open one, from the version of the reflector or, if that is smaller, of
// the list: the open watch goes on during the list. It repeats events that the reflector has; these are left out.

// Shard is the part of a type's objects that a source has. A [sharding.Shard] implements it.
type Shard interface {
	// View returns the present slots.
	View() sharding.View
	// Changed returns a channel that closes when the view changes. It is got before View.
	Changed() <-chan struct{}
	// LostSince returns the slots that the shard has lost since the view with that generation, also if it has them again.
	LostSince(generation uint64) sharding.Slots
}

// slotsWithin is the maximum time for which the first list waits for slots.
const slotsWithin = 20 * time.Second

// ShardState is what the reflector has of a shard.
type ShardState struct {
	// View are the slots of the shard, as far as the source has read them.
	View sharding.Slots
	// Slots are those of which the reflector has all objects, in all namespaces. Generation is that of the last view of which it
	// had all slots; zero: there was none.
	Slots      sharding.Slots
	Generation uint64
	// Moved is the number of objects that have left because the shard has lost their slots.
	Moved uint64
	// ByClient says that the server has sent objects of other slots since the last whole list: it does not select.
	ByClient bool
	// Group is Config.Group.
	Group func() sharding.Status
}

// holding is what the reflector has of a shard, in one namespace of a set or, without a set, at all.
type holding struct {
	slots  sharding.Slots // it has all objects in them
	floors []floor        // up to which it has the events of slots, although the next watch begins before
	// followed is the generation of the last view whose lost slots have left the reflector.
	followed uint64
}

// floor is the version up to which the reflector has the events of slots, by a list or an earlier watch. A watch from an earlier version
// repeats them.
type floor struct {
	slots   sharding.Slots
	version string
}

// view returns the view whose slots a list requests; nil: there is no shard. The caller holds no lock.
func (g *gate) view() *sharding.View {
	if g.cfg.Shard == nil {
		return nil
	}
	view := g.cfg.Shard.View()
	g.known.saw(view)
	return &view
}

// viewChanged returns a channel that closes when the view of the shard changes; nil: there is no shard.
func (g *gate) viewChanged() <-chan struct{} {
	if g.cfg.Shard == nil {
		return nil
	}
	return g.cfg.Shard.Changed()
}

// awaitSlots waits until the shard has slots, the first time and for a limited time. A member of a group has none when it joins: the first
// list would be of nothing, and the limits of first lists would not apply to its objects, which are gained later.
func (g *gate) awaitSlots(ctx context.Context, changed <-chan struct{}) {
	if g.cfg.Shard == nil || g.slots.Swap(true) {
		return
	}
	timeout := time.NewTimer(slotsWithin)
	defer timeout.Stop()
	for {
		reviewed := g.cfg.Shard.Changed()
		if !g.cfg.Shard.View().Slots.Empty() {
			return
		}
		select {
		case <-reviewed:
		case <-changed:
			return
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// held returns the view whose slots a watch in namespace requests; nil: there is no shard.
func (g *gate) held(namespace string) *sharding.View {
	if g.cfg.Shard == nil {
		return nil
	}
	return &sharding.View{Slots: g.known.slotsIn(namespace)}
}

// selecting returns the stage with requests for the objects in the slots of view; nil: for all objects.
func (r *requests) selecting(view *sharding.View) *requests {
	selecting := *r
	selecting.view = view
	return &selecting
}

// has reports whether the object with this UID is requested.
func (r *requests) has(uid types.UID) bool {
	return r.view == nil || r.view.Slots.Has(sharding.SlotOf(uid))
}

// shardError is the error of a list with the objects of another selector than the one requested.
type shardError struct{ Want, Have string }

func (e *shardError) Error() string {
	return fmt.Sprintf("the server has listed the shard %q, not %q", e.Have, e.Want)
}

// own leaves out the objects of list that are not requested, and those that can't be decoded.
func (r *requests) own(list runtime.Object, bad []*undecodable.Object) ([]*undecodable.Object, error) {
	if r.view == nil {
		return bad, nil
	}
	if have := shardOf(list); have != "" {
		if slots, ok := sharding.ParseSelector(have); !ok || slots != r.view.Slots {
			return nil, &shardError{Want: r.view.Slots.Selector(), Have: have}
		}
	}
	objects := len(bad)
	bad = slices.DeleteFunc(bad, func(object *undecodable.Object) bool { return !r.has(object.GetUID()) })
	strays := objects - len(bad)
	var kept []runtime.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		obj, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		if r.has(obj.GetUID()) {
			kept = append(kept, item)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if all := meta.LenList(list); len(kept) < all {
		strays += all - len(kept)
		if err := meta.SetList(list, kept); err != nil {
			return nil, err
		}
		if content, err := meta.ListAccessor(list); err == nil && content.GetRemainingItemCount() != nil {
			remaining := int64(float64(*content.GetRemainingItemCount()) * float64(len(kept)) / float64(all)) // those of other slots are not kept either
			content.SetRemainingItemCount(&remaining)
		}
	}
	if strays > 0 {
		r.stray()
	}
	return bad, nil
}

// shardOf returns the selector that list says it has been selected by; empty if it says nothing.
func shardOf(list runtime.Object) string {
	switch list := list.(type) {
	case *unstructured.UnstructuredList:
		selector, _, _ := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector")
		return selector
	case metav1.ListMetaAccessor:
		if content, is := list.GetListMeta().(metav1.ShardedListInterface); is && content.GetShardInfo() != nil {
			return content.GetShardInfo().Selector
		}
	}
	return ""
}

// stray records that the server has sent an object that was not requested.
func (r *requests) stray() {
	if !r.gate.strays.Swap(true) {
		r.observer.Completed()
	}
}

// own returns event or, if its object is not requested or was in a list already, a bookmark in its place, so that the version of the
// reflector goes on.
func (s *stream) own(event watch.Event) watch.Event {
	if s.requests.view == nil || event.Type == watch.Error || event.Type == watch.Bookmark {
		return event
	}
	obj, err := meta.Accessor(event.Object)
	if err != nil {
		return event
	}
	has := s.requests.has(obj.GetUID())
	if !has {
		s.requests.stray()
	}
	if has && !s.splice.has(obj.GetUID(), obj.GetResourceVersion()) {
		return event
	}
	return bookmark(s.requests.gate.cfg.Client, obj.GetResourceVersion(), s.requests.of)
}

// isWhole reports whether the stream has the slots that the reflector has.
func (s *stream) isWhole(k *known) bool {
	return s.splice == nil || s.requests.view.Slots == k.slotsIn(s.splice.namespace)
}

// viewed returns a channel that closes when the view changes; nil during the initial events.
func (s *stream) viewed() <-chan struct{} {
	switch {
	case s.splice == nil:
		return nil
	case !s.splice.begun:
		return closedChannel
	}
	return s.splice.changed
}

var closedChannel = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// splice follows the view of the shard beside the watches of a source, or of one namespace of a set. A nil splice does nothing. The
// goroutine that reads the watches owns it.
type splice struct {
	*gate
	namespace string // of a set; empty: there is no set
	of        Type
	requests  *requests
	give      func(ctx context.Context, p *part) error
	rewound   func(ctx context.Context, rewound *RewoundError)

	begun   bool            // apply has been called
	view    sharding.View   // as it was then
	rewinds bool            // the last list of gained slots has shown that the server has gone back: another list replaces it
	changed <-chan struct{} // closes when the view is another one than the last time; nil: never
	gain    *gain           // nil: no list is in progress
	failing bool            // the last list could not be passed on
	pace    pace            // after lists that could not be passed on
}

// gain is the list of slots that a source has gained.
type gain struct {
	slots  sharding.Slots
	cancel context.CancelFunc
	done   chan struct{}
	failed atomic.Bool // an attempt has failed
	// The fields below are set before done closes.
	response *response // nil: ctx has ended
	had      string    // the version of the reflector when the list was sent
}

// reviewed returns a channel that closes when the view is another one than at the last step.
func (s *splice) reviewed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// listed returns a channel that closes when the list of gained slots is complete.
func (s *splice) listed() <-chan struct{} {
	if s == nil || s.gain == nil {
		return nil
	}
	return s.gain.done
}

// has reports whether the list of gained slots has an event of an object with this UID.
func (s *splice) has(uid types.UID, version string) bool {
	return s != nil && s.known.isRepeated(s.namespace, sharding.SlotOf(uid), version)
}

// follow gives the reflector what has changed of the view, or begins to list it. It returns an error only if the watch
// of the reflector ends.
func (s *splice) follow(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if err := s.apply(ctx); err != nil {
		return err
	}
	wanted := s.wanted()
	switch {
	case wanted.Empty():
		s.giveUp()
		s.loaded(s.view)
	case s.gain == nil && !s.rewinds:
		s.begin(ctx, wanted)
	}
	return nil
}

// wanted returns the slots of the view that the reflector does not have.
func (s *splice) wanted() sharding.Slots { return s.view.Slots.Minus(s.known.slotsIn(s.namespace)) }

// apply gives the reflector what has changed of the view: it deletes the objects of lost slots, and passes on the list of gained ones if it is
// complete. It sends no request, and returns an error only if the watch of the reflector ends.
func (s *splice) apply(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.begun, s.changed, s.rewinds = true, s.cfg.Shard.Changed(), false
	s.view = *s.gate.view()
	if lost := s.lost(s.namespace, s.view); !lost.Empty() {
		if err := s.give(ctx, &part{namespace: s.namespace, slots: &lost, removed: true}); err != nil {
			return err
		}
	}
	s.known.followed(s.namespace, s.view)
	switch err := s.take(ctx); {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case errors.Is(err, errRewound): // a list of all slots follows
		s.rewinds = true
	default:
		s.failing = true
		s.requests.failed(ctx, VerbList, err) // the slots are listed again
		s.reportList(ctx, err)
		s.pace.failed(time.Now(), err)
	}
	return nil
}

// lost returns the slots of namespace that the shard does not have in view, or did not have for a time since the last view that was followed:
// another process may have acted on their objects then.
func (g *gate) lost(namespace string, view sharding.View) sharding.Slots {
	held, followed := g.known.holdingIn(namespace)
	return held.Minus(view.Slots.Minus(g.cfg.Shard.LostSince(followed)))
}

var errRewound = errors.New("the list of gained slots is of earlier versions")

// take gives the reflector the list of gained slots, if it is complete. If some of them are not in the view any more, the list is given up.
// If the list shows that the server has gone back, that is reported, and the error is errRewound.
func (s *splice) take(ctx context.Context) error {
	if s.gain == nil {
		return nil
	}
	gain := s.gain
	switch complete := isClosed(gain.done); {
	case !gain.slots.Minus(s.view.Slots).Empty(), complete && gain.response == nil:
		s.giveUp()
		return nil
	case !complete:
		return nil
	}
	s.gain = nil
	content, err := meta.ListAccessor(gain.response.list)
	if err != nil {
		return err
	}
	// The version of the reflector now proves nothing: the watch has gone on.
	if has := content.GetResourceVersion(); before(has, gain.had) {
		s.rewound(ctx, &RewoundError{Had: gain.had, Has: has})
		return errRewound
	}
	if err := s.give(ctx, &part{namespace: s.namespace, slots: &gain.slots, list: gain.response}); err != nil {
		return err
	}
	s.pace.reset()
	s.failing = false
	s.account.Update()
	s.requests.observer.Succeeded(VerbList)
	s.requests.observer.Completed()
	return nil
}

// begin begins to list slots.
func (s *splice) begin(ctx context.Context, slots sharding.Slots) {
	if !s.calls.Begin() {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	gain := &gain{slots: slots, cancel: cancel, done: make(chan struct{})}
	s.gain = gain
	from, pace := s.requests.selecting(&sharding.View{Slots: slots}), s.pace
	go func() {
		defer s.calls.End()
		defer close(gain.done)
		defer cancel()
		gain.response, gain.had = s.list(ctx, from, pace, &gain.failed)
	}()
}

// awaitServed waits until a list can succeed.
func (s *splice) awaitServed(ctx context.Context) error {
	for {
		now, changed := s.available.Current()
		if now.Serving == Served && s.of.sameObjects(now) {
			return nil
		}
		if err := s.awaitChange(ctx, changed, nil); err != nil {
			return err
		}
	}
}

// list lists until a list succeeds, while the type is served, and also returns the version of the reflector before it. It returns nil if ctx ends.
func (s *splice) list(ctx context.Context, from *requests, pace pace, failed *atomic.Bool) (*response, string) {
	for ctx.Err() == nil {
		if !pace.await(ctx, news{}, s.gate) || s.awaitServed(ctx) != nil {
			continue
		}
		pace.begins(s.gate)
		had := s.known.versionOf(s.namespace)
		r, err := s.listPages(ctx, from, nil, pageSize, nil, nil)
		switch {
		case ctx.Err() != nil:
			return nil, ""
		case err == nil && (s.known.isEmpty() || s.remains(ctx, s.of)):
			return r, had
		case err != nil:
			failed.Store(true)
			s.reportList(ctx, err)
		}
		pace.failed(time.Now(), err)
	}
	return nil, "" // ctx has ended
}

// reportList reports the error of a list of gained slots.
func (s *splice) reportList(ctx context.Context, err error) {
	if s.namespace != "" {
		err = &NamespaceError{s.namespace, err}
	}
	s.report(ctx, &ListError{Err: err})
}

// stop gives up the list that is in progress, and reports whether it has failed. A list of all slots replaces it and has its own result, or no
// list follows since the type is gone: then the failure ends.
func (s *splice) stop() (failing bool) {
	if s == nil {
		return false
	}
	failing = s.failing
	if s.gain != nil {
		s.gain.cancel()
		failing = failing || s.gain.failed.Load()
	}
	s.failing, s.gain = false, nil
	if now, _ := s.available.Current(); failing && now.Serving == Gone {
		s.requests.observer.Succeeded(VerbList)
		return false
	}
	return failing
}

// giveUp is stop if no list of all slots follows. The failure ends if no list of gained slots replaces the one in progress either.
func (s *splice) giveUp() {
	s.failing = s.stop()
	if s.failing && s.wanted().Empty() {
		s.failing = false
		s.requests.observer.Succeeded(VerbList)
	}
}

// loaded records that the reflector has all objects of view, unless another namespace does not.
func (g *gate) loaded(view sharding.View) {
	if !g.known.holdsAll(view) {
		return
	}
	g.cfg.Observer.Completed()
	if g.cfg.Loaded != nil {
		g.cfg.Loaded(view.Generation)
	}
}

// IsLoaded reports whether the reflector has all objects in the present slots of the shard up to version, which may be empty. Last is the key of
// the last object that it has got for that, and may be empty. The caller holds no lock.
func (s *Source) IsLoaded(version string) (last string, loaded bool) {
	view, k := s.gate.view(), &s.gate.known
	if view == nil {
		return "", true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastGained, view.Slots.Minus(k.slotsLocked()).Empty() && !before(k.version, version)
}

// listedView is loaded after a list, which has the slots of an earlier or the present view.
func (g *gate) listedView() {
	if g.cfg.Shard != nil {
		g.loaded(*g.view())
	}
}

// spliceFor returns the splice of t; nil: it has none yet.
func (s *resumableWatch) spliceFor(t Type) *splice {
	if s.splice == nil || !s.splice.of.sameObjects(t) || s.set(t) != nil {
		return nil
	}
	return s.splice
}

// spliceOf returns what follows the view of the shard beside the watches of t; nil: there is no shard.
func (s *resumableWatch) spliceOf(t Type) *splice {
	switch {
	case s.cfg.Shard == nil || s.set(t) != nil: // each namespace of a set has its own
		return nil
	case s.spliceFor(t) != nil:
		return s.splice
	}
	s.splice.stop()
	s.splice = &splice{gate: s.gate, of: t, requests: s.requests(t), rewound: s.rewind, give: func(ctx context.Context, p *part) error {
		p.passed = make(chan error, 1)
		if !s.passPart(ctx, p) {
			return context.Cause(ctx)
		}
		return <-p.passed
	}}
	return s.splice
}

// shed deletes the objects of lost slots, and passes on the list of gained ones if it is complete, while no watch is open. It reports false
// if the watch of the reflector ends.
func (s *resumableWatch) shed(ctx context.Context, t Type) bool {
	if s.cfg.Shard == nil {
		return true
	}
	s.reviewed = s.cfg.Shard.Changed()
	if splice := s.spliceFor(t); splice != nil {
		return splice.apply(ctx) == nil
	}
	view := s.view()
	for _, namespace := range s.known.scopes() {
		lost := s.lost(namespace, *view)
		if !lost.Empty() && !s.passPart(ctx, &part{namespace: namespace, slots: &lost, removed: true, passed: make(chan error, 1)}) {
			return false
		}
		s.known.followed(namespace, *view)
	}
	return true
}

// passSlots passes on the part p, which is about slots: a list of slots that were gained, or the removal of slots that were lost.
func (s *resumableWatch) passSlots(ctx context.Context, p *part, content listed, t Type) bool {
	s.known.forgetRepeated(s.lookUp()) // before the objects of content are known, which the store gets later
	s.dropOlder(&content)
	keys := s.known.keysOf(p.namespace, *p.slots)
	left := map[string]bool{}
	if p.removed {
		for _, key := range keys {
			left[key] = true
		}
		s.moved.Add(uint64(len(keys)))
	} else {
		keys = s.missingIn(content, t, keys)
	}
	for _, key := range content.keys { // an object may have been created again, in another slot
		if s.known.hasOther(key, content.items[key].identity) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if !s.delete(ctx, keys, left) || !s.give(content, false, nil) {
		return false
	}
	if p.removed {
		s.known.lost(p.namespace, *p.slots)
	} else {
		s.known.gained(p.namespace, *p.slots, content)
	}
	return true
}

// dropOlder removes the objects of a list of gained slots from content whose names later objects have: the reflector has got these by the
// open watch.
func (s *resumableWatch) dropOlder(content *listed) {
	content.keys = slices.DeleteFunc(content.keys, func(key string) bool {
		other, there := s.known.get(key)
		older := there && !other.same(content.items[key].identity) && before(content.version, other.version)
		if older {
			delete(content.items, key)
		}
		return older
	})
}

// isSucceeded reports whether the reflector has another object under key than that of id, whose slot was listed later than the event with
// id: the object of the event is gone. Own is its original key.
func (s *resumableWatch) isSucceeded(key, own string, id identity) bool {
	other, there := s.known.get(key)
	return there && !other.same(id) && s.known.isRepeated(s.scopeOf(own), sharding.SlotOf(other.uid), id.version)
}

// isReviewed reports whether the view has changed since the last list.
func (s *resumableWatch) isReviewed() bool {
	if s.cfg.Shard == nil {
		return false
	}
	last := s.known.slots()
	if s.requested != nil { // lists of single namespaces may have failed
		last = s.requested.Slots
	}
	return s.gate.view().Slots != last
}

// scopeOf returns the namespace of a set that has the object with the original key own; empty if there is no set.
func (s *resumableWatch) scopeOf(own string) string {
	if _, _, of := s.known.place(); s.set(of) == nil {
		return metav1.NamespaceAll
	}
	return namespaceOf(own)
}

// skip passes on the version of an event, if it has one, without its object: the version of the store goes on.
func (s *resumableWatch) skip(version string) bool {
	if versionless(version) {
		return true
	}
	_, _, of := s.known.place()
	return s.send(bookmark(s.cfg.Client, version, of))
}

// hold records the slots of a whole list. With a set of namespaces, it is called after locate.
func (k *known) hold(r *response) {
	if r == nil || r.view == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	holdings := map[string]holding{}
	if r.positions == nil {
		holdings[metav1.NamespaceAll] = k.heldLocked(metav1.NamespaceAll, r.view)
	}
	for name, at := range k.positions {
		switch {
		case !at.listed: // it has no objects
		case at.kept: // maybe from a list of all namespaces
			before, is := k.holdings[name]
			if !is {
				before = k.holdings[metav1.NamespaceAll]
			}
			before.floors = nil
			holdings[name] = before
		default:
			holdings[name] = k.heldLocked(name, r.view)
		}
	}
	k.holdings = holdings
}

// heldLocked returns the holding after a whole list with view. Objects that the reflector had before the list are not added again, so slots
// that were lost since the last view that was followed must still leave. The caller holds mu.
func (k *known) heldLocked(namespace string, view *sharding.View) holding {
	held := holding{slots: view.Slots, followed: view.Generation}
	if before, is := k.holdings[namespace]; is {
		held.followed = min(before.followed, view.Generation)
	}
	return held
}

// holdIn is hold for a list of one namespace of a set.
func (k *known) holdIn(namespace string, view *sharding.View) {
	if view == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holdings == nil {
		k.holdings = map[string]holding{}
	}
	k.holdings[namespace] = k.heldLocked(namespace, view)
}

// saw records a view of the shard for the state, which must not read the shard.
func (k *known) saw(view sharding.View) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if view.Generation >= k.seen.Generation {
		k.seen = view
	}
}

// followed records that the slots have left the reflector that were lost until view.
func (k *known) followed(namespace string, view sharding.View) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if held, is := k.holdings[namespace]; is {
		held.followed = view.Generation
		k.holdings[namespace] = held
	}
}

// holdingIn returns the slots of which the reflector has all objects in namespace, and the generation of the last view that was followed.
func (k *known) holdingIn(namespace string) (slots sharding.Slots, followed uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.holdings[namespace]
	return held.slots, held.followed
}

// slotsIn returns the slots of which the reflector has all objects in namespace.
func (k *known) slotsIn(namespace string) sharding.Slots {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holdings[namespace].slots
}

// holdsAll reports whether the reflector has all objects in the slots of view, and records that.
func (k *known) holdsAll(view sharding.View) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.complete || !view.Slots.Minus(k.slotsLocked()).Empty() {
		return false
	}
	k.viewed = view.Generation
	return true
}

// slots returns the slots of which the reflector has all objects in all namespaces.
func (k *known) slots() sharding.Slots {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.slotsLocked()
}

// slotsLocked returns the slots of which the reflector has all objects in all namespaces. The caller holds mu.
func (k *known) slotsLocked() sharding.Slots {
	if k.positions == nil {
		return k.holdings[metav1.NamespaceAll].slots
	}
	all := sharding.Slots{}.Complement()
	for name, at := range k.positions {
		if k.hides == nil || !k.hides(name, at.listed) {
			all = all.Intersect(k.holdings[name].slots)
		}
	}
	return all
}

// versionOf returns the version to watch from in namespace or, without a set, at all.
func (k *known) versionOf(namespace string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.versionOfLocked(namespace)
}

func (k *known) versionOfLocked(namespace string) string {
	if k.positions == nil {
		return k.version
	}
	return k.positions[namespace].version
}

// isRepeated reports whether a list of gained slots has an event of slot with this version.
func (k *known) isRepeated(namespace string, slot int, version string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.holdings[namespace].floors {
		if f.slots.Has(slot) && (version == f.version || before(version, f.version)) {
			return true
		}
	}
	return false
}

// scopes returns the keys of holdings, sorted.
func (k *known) scopes() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.holdings))
}

// keysOf returns the keys of the objects in slots, sorted, of those in namespace if it is not empty.
func (k *known) keysOf(namespace string, slots sharding.Slots) []string {
	all := k.keys()
	if namespace != metav1.NamespaceAll {
		all = k.keysIn(namespace)
	}
	return slices.DeleteFunc(all, func(key string) bool {
		id, _ := k.get(key)
		return !slots.Has(sharding.SlotOf(id.uid))
	})
}

// gained records that the reflector has all objects in slots up to the version of content. If it has the other ones up to a later version,
// the next watch begins at that of content. This is not the server's version that goes back.
func (k *known) gained(namespace string, slots sharding.Slots, content listed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addLocked(content)
	at := k.versionOfLocked(namespace)
	if keys := content.byVersion(); len(keys) > 0 {
		k.lastGained = keys[len(keys)-1]
	}
	held := k.holdings[namespace]
	held.floors = slices.Clone(held.floors)
	if before(content.version, at) {
		held.floors = append(held.floors, floor{held.slots, at})
		at = content.version
		k.recedeLocked(namespace, at)
	}
	held.slots = held.slots.Union(slots)
	held.floors = slices.DeleteFunc(append(held.floors, floor{slots, content.version}), func(f floor) bool { return !before(at, f.version) })
	k.holdings[namespace] = held
}

// recedeLocked sets an earlier version up to which the reflector has everything of namespace or, without a set, at all. The caller holds mu.
func (k *known) recedeLocked(namespace, version string) {
	if k.positions == nil {
		if !before(k.version, k.gainedAt) {
			k.gainedAt = k.version
		}
		k.version = version
		return
	}
	position := k.positions[namespace]
	position.version = version
	k.positions[namespace] = position
	k.version = k.smallestLocked(version)
}

// lost records that the reflector has no objects in slots.
func (k *known) lost(namespace string, slots sharding.Slots) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for own, rejected := range k.rejected.objects {
		if (k.positions == nil || namespaceOf(own) == namespace) && slots.Has(sharding.SlotOf(rejected.uid)) {
			k.rejected.admit(own)
		}
	}
	for own, key := range k.renamed {
		if _, there := k.objects.get(key); !there {
			delete(k.renamed, own)
		}
	}
	held := k.holdings[namespace]
	held.slots = held.slots.Minus(slots)
	floors := held.floors
	held.floors = nil
	for _, f := range floors {
		if f.slots = f.slots.Minus(slots); !f.slots.Empty() {
			held.floors = append(held.floors, f)
		}
	}
	k.holdings[namespace] = held
}

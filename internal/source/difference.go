package source

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// This file has the deletions of a resumable watch, of single objects and of all objects of a type, and the differences between the
// reflector's objects and a list.

// settle sends the deletion of each object of a type that is gone. If another type has replaced the
// type, the next list deletes the objects: the server may have sent objects of the new type before
// the replacement was known, and these stay.
func (s *resumableWatch) settle(ctx context.Context, t Type) bool {
	replaced := s.replaced(t)
	switch {
	case !replaced && t.Serving != Gone:
		return true
	case s.cfg.KeepCache, replaced && t.Serving == Served:
		s.splice.stop() // a list of all slots follows
		s.known.outdated()
		return true
	}
	return s.flush(ctx, t)
}

// replaced reports whether the reflector has objects of another generation than t.
func (s *resumableWatch) replaced(t Type) bool {
	_, _, of := s.known.place()
	return of.Generation != t.Generation
}

// flush deletes all objects of the reflector.
func (s *resumableWatch) flush(ctx context.Context, t Type) bool {
	s.splice.stop()
	if !s.delete(ctx, s.known.keys(), nil) {
		return false
	}
	s.known.reset(t)
	s.cfg.Namespaces.use(false)
	s.dropCommon()
	s.cfg.Observer.Completed()
	return true
}

// delete sends the deletion of the objects under keys, with their last states. Those in left have left the source by
// configuration.
func (s *resumableWatch) delete(ctx context.Context, keys []string, left map[string]bool) bool {
	store := s.lookUp()
	store.await(ctx, &s.known, keys)
	for _, key := range keys {
		id, there := s.known.get(key)
		if !there {
			continue
		}
		_, _, of := s.known.place()
		event := store.deletion(s.cfg.Client, s.cfg.Packing, key, id, s.known.versionFor(key), of)
		if s.cfg.MarkMoved && left[key] {
			event.Object = newMoved(event.Object)
		}
		if !s.sendDeletion(event, key) {
			return false
		}
	}
	return ctx.Err() == nil
}

// probe tests with a list whether a type is gone that discovery no longer lists.
func (s *resumableWatch) probe(ctx context.Context, t Type, changed <-chan struct{}) {
	open, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cancelOn(news{changed: changed}, cancel)()
	_, err := s.requests(t).list(open, metav1.ListOptions{Limit: 1})
	err = causeOf(open, err)
	switch {
	case err == nil: // the list succeeds; a watch may still fail
		s.putOff(&s.pace, nil)
		s.probed(t, false)
	case apierrors.IsNotFound(err):
		s.probed(t, true)
	default:
		s.failed(ctx, t, &ListError{Err: err})
	}
}

// probed reports the result of probe.
func (s *resumableWatch) probed(t Type, gone bool) {
	s.cfg.Probed(t, gone)
	s.cfg.Observer.Completed()
}

// overlapFor is how long after the beginning of another type a failure of its first list ends no objects of the previous type. Some may be of the new
// type: an API server sends them to the watches of the previous type, until it ends these.
const overlapFor = 10 * time.Second

// partAfter is how long after the beginning of another type a first list is used that lacks namespaces. It is less than overlapFor: the objects of
// the others do not end.
const partAfter = overlapFor - time.Second

// overlaps reports whether objects of a namespace that could not be listed for content, the first list of t, may be of t: then all namespaces are
// listed again, until partAfter. A namespace that is forbidden is not awaited.
func (s *resumableWatch) overlaps(content *listed, t Type) bool {
	return content.response.unavailable != nil && s.replaced(t) && time.Now().Before(t.Since.Add(partAfter)) && len(s.known.keysNotListed(*content)) > 0
}

// listAgain sets the time of the next list after one of t that lacks the namespace of err. The others do not wait for longer than partAfter.
func (s *resumableWatch) listAgain(t Type, err error) {
	s.repeated = t.Generation
	s.pace.failed(time.Now(), err)
	s.pace.limit(t.Since.Add(partAfter))
	until := s.pace.until
	s.due.Store(&until)
}

// endPrevious is called when the first list of t must wait or has failed: it deletes the objects of the previous generation, and reports
// whether to continue. While t is unsettled, its first list may still have these objects: they stay, unless they are of another scope.
func (s *resumableWatch) endPrevious(ctx context.Context, t Type) bool {
	_, _, of := s.known.place()
	return !s.replaced(t) || t.Unsettled && t.Namespaced == of.Namespaced || s.cfg.KeepCache || s.flush(ctx, t)
}

// relist lists, and sends the differences between the reflector's objects and the list. If the first list of
// another generation must wait for lists of other sources, the objects of the previous one end before. If it is listed again, it had its turn.
func (s *resumableWatch) relist(ctx context.Context, t Type, changed <-chan struct{}) bool {
	s.splice.stop() // the list has the present view
	var turn *turn  // nil: the list does not wait
	if s.repeated == 0 || s.repeated != t.Generation {
		turn = s.joinQueue(t, false)
	}
	if turn.waits() && !s.endPrevious(ctx, t) {
		turn.leave()
		return false
	}
	t, changed, err := s.awaitTurn(ctx, turn, t, news{changed: changed, reviewed: s.reviewed})
	if err != nil {
		return ctx.Err() == nil
	}
	content, err := s.content(ctx, t, changed, turn)
	complete := false
	defer func() { content.response.end(complete) }()
	switch {
	case err != nil:
		return s.unlisted(ctx, t, err)
	case !s.confirmed(ctx, t), !s.current(t):
		s.putOff(&s.pace, nil) // the list is of another type, which is known or will be soon
		return ctx.Err() == nil
	case s.overlaps(&content, t):
		s.listAgain(t, content.response.unavailable)
		return ctx.Err() == nil
	}
	s.compareVersions(ctx, &content, t)
	_, _, of := s.known.place()
	rewritten := of.GVR != t.GVR
	if !s.delete(ctx, s.missingIn(content, t, s.known.keys()), s.leftBy(content, t)) || !s.give(content, rewritten, content.response) || !s.send(bookmark(s.cfg.Client, content.version, t)) {
		return false
	}
	kept := s.known.filledWith(t)
	s.known.completed(content.version, t)
	s.known.settled(content, kept)
	s.known.locate(content.positions, kept)
	s.known.hold(content.response)
	s.requested = content.view
	if content.positions != nil {
		forgetGone(s.cfg.Namespaces, content.positions)
	} else {
		s.cfg.Namespaces.use(false) // the type is cluster-scoped, for example
	}
	s.nameless = false
	s.repeated = 0
	s.comparison.shown()
	complete = true
	s.polled(t)
	s.accepted()
	return true
}

// unlisted is called when the list of relist has failed, and reports whether to continue.
func (s *resumableWatch) unlisted(ctx context.Context, t Type, err error) bool {
	if !s.vacate(ctx, t) {
		return false
	}
	if s.listNext {
		s.putOff(&s.pace, err)
		return ctx.Err() == nil
	}
	s.failed(ctx, t, &ListError{Err: err})
	return ctx.Err() == nil
}

// content returns the present list.
func (s *resumableWatch) content(ctx context.Context, t Type, changed <-chan struct{}, turn *turn) (listed, error) {
	from := s.requests(t)
	if s.listNext {
		from = from.unreported()
	}
	response, err := s.list(ctx, from, changed, pageSize, turn)
	if err != nil {
		return listed{}, err
	}
	content, err := newListed(response, &s.transform, &s.sizes)
	content.response = response
	if err != nil {
		s.cfg.Observer.Failed(VerbList, err)
	}
	return content, err
}

// confirmed reports whether a response is of the type whose objects the reflector has.
func (s *resumableWatch) confirmed(ctx context.Context, t Type) bool {
	_, _, of := s.known.place()
	return of.Generation != t.Generation || s.known.isEmpty() || s.remains(ctx, t)
}

// remains reports whether the server still has the type t. That the type in its place remains is not enough.
func (g *gate) remains(ctx context.Context, t Type) bool {
	return (g.cfg.Confirm == nil || g.cfg.Confirm(ctx, t)) && g.current(t)
}

// missingIn returns those of keys, which are of the reflector's objects, that are not in content, also if content has
// another object with the key. An object for which the transform fails keeps its state, and so do the
// objects of a namespace that could not be listed. If UIDs are missing, objects of another generation are different
// objects.
func (s *resumableWatch) missingIn(content listed, t Type, keys []string) []string {
	replaced := s.replaced(t)
	kept := map[string]types.UID{} // objects of the server for which the transform fails now
	for own, rejected := range content.rejected.objects {
		kept[s.known.keyOf(own)] = rejected.uid
	}
	stays := map[string]bool{}
	if !replaced {
		stays = s.known.keysNotListed(content)
	}
	var missing []string
	for _, key := range keys {
		if stays[key] {
			continue
		}
		id, _ := s.known.get(key)
		if uid, bad := kept[key]; bad && uid == id.uid && !replaced {
			continue
		}
		if item, there := content.items[key]; !there || !id.same(item.identity) || replaced && id.uid == "" {
			missing = append(missing, key)
		}
	}
	return missing
}

// keysNotListed returns the keys of the objects in namespaces that could not be listed for content.
func (k *known) keysNotListed(content listed) map[string]bool {
	unlisted, found := map[string]bool{}, map[string]bool{}
	for namespace, at := range content.positions {
		if !at.listed {
			unlisted[namespace] = true
		}
	}
	for _, keys := range k.keysEach(unlisted) {
		for _, key := range keys {
			found[key] = true
		}
	}
	return found
}

// distrust forgets the states of the objects that content leaves out. They may be in another API version, or of a server that has gone back: the
// next list that has them sends them again, also with equal versions. The next list of a namespace that content lacks is compared by content.
func (k *known) distrust(content listed) {
	var keys []string
	for own := range content.rejected.objects {
		keys = append(keys, k.keyOf(own))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if id, there := k.objects.get(key); there {
			id.version, id.hash = "", 0
			k.objects.put(key, id)
		}
	}
}

// give sends the objects that the reflector does not have, or has in another state or, if rewritten is true, in another API
// version. They move from the response, which may be nil, to the cache.
func (s *resumableWatch) give(content listed, rewritten bool, from *response) bool {
	if rewritten || content.needsContent() {
		s.known.distrust(content)
	}
	for _, key := range content.byVersion() {
		item := content.items[key]
		event := watch.Event{Type: watch.Added, Object: item.object}
		if id, there := s.known.get(key); there {
			if !rewritten && item.equals(id) && id.isKnownState() && (!content.needsContent() || s.isStored(key, item)) {
				continue
			}
			event.Type = watch.Modified
		}
		s.known.put(key, item.identity)
		from.moved(key, item)
		if !s.send(event) {
			return false
		}
	}
	return true
}

// passDeletion passes on the deletion of an object with the original key own. If the transform fails,
// the deletion has the object's state in the cache, if it is there. The reflector gets only deletions of objects that
// it has: a watch from the version of another server can begin with earlier events. If it has another object of that
// name, that one is gone too, and is deleted with its own state.
func (s *resumableWatch) passDeletion(ctx context.Context, event watch.Event, own string, id identity) bool {
	rejected := s.admitDeleted(own, id.uid)
	object, key, err := s.transform.apply(event.Object)
	if err != nil {
		if stored := s.known.keyOf(own); !s.isSucceeded(stored, own, id) && !s.delete(ctx, []string{stored}, nil) {
			return false
		}
		return s.skip(id.version) // the deletion has an earlier version, or there is none
	}
	old, there := s.known.get(key)
	switch {
	case !there && (rejected || s.transform.isSet()): // the object was left out
		return s.skip(id.version)
	case there && (old.uid == "" || id.uid == "" || old.same(id)), versionless(id.version):
	default:
		if there && !s.isSucceeded(key, own, id) && !s.delete(ctx, []string{key}, nil) {
			return false
		}
		return s.skip(id.version)
	}
	event.Object = object
	if !s.sendDeletion(event, key) {
		return false
	}
	s.known.rename(own, own)
	return true
}

// sendDeletion sends the deletion of the object under key. It removes the object from the known ones before the store gets
// the deletion: a failure of an index function for the object then ends, and the status has the change. The deletion counts
// as an event even before: otherwise a reader of the status could see no object and no waiting event although handlers have
// not got the deletion.
func (s *resumableWatch) sendDeletion(event watch.Event, key string) bool {
	return s.sendBy(event, func(event watch.Event) bool {
		id, there := s.known.get(key)
		s.known.remove(key)
		if s.out(event) {
			return true
		}
		if there {
			s.known.put(key, id)
		}
		return false
	})
}

package source

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// What a splice sends that no watch has sent it: the end of a type's objects, and what
// makes up the difference to a list.

// settle takes back what the reflector has of a type that is gone.
func (s *splice) settle(ctx context.Context, t Type) bool {
	_, _, of := s.known.place()
	replaced := of.Generation != t.Generation
	switch {
	case !replaced && t.Serving != Gone:
		return true
	case s.cfg.KeepCache:
		s.known.expired() // the next list takes it back
		return true
	}
	if !s.deleteAll(ctx) {
		return false
	}
	s.known.reset(t)
	return true
}

// deleteAll sends the deletion of every object.
func (s *splice) deleteAll(ctx context.Context) bool {
	return s.delete(ctx, s.known.keys())
}

// delete sends the deletion of the objects under keys, with their last states.
func (s *splice) delete(ctx context.Context, keys []string) bool {
	store := s.lookUp()
	store.await(ctx, &s.known, keys)
	for _, key := range keys {
		id, there := s.known.get(key)
		if !there {
			continue
		}
		version, _, of := s.known.place()
		event := store.deletion(key, id, version, of)
		if !s.send(event) {
			return false
		}
		s.known.remove(key)
	}
	return ctx.Err() == nil
}

// probe finds out whether a type is gone that the server has stopped to mention.
func (s *splice) probe(ctx context.Context, t Type, changed <-chan struct{}) {
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	defer cancelOn(changed, cancel)()
	_, err := s.requests(t).list(open, metav1.ListOptions{Limit: 1})
	now := t
	switch {
	case err == nil:
		now.Serving = Served
	case apierrors.IsNotFound(err):
		now.Serving = Gone
	case open.Err() != nil:
		return
	default:
		s.failed(ctx, t, err)
		return
	}
	s.available.replace(t, now)
}

// relist sends the difference between what the reflector has and what there is.
func (s *splice) relist(ctx context.Context, t Type, changed <-chan struct{}) bool {
	list, err := s.list(ctx, t, changed, pageSize)
	if err != nil {
		s.failed(ctx, t, err)
		return ctx.Err() == nil
	}
	content, err := newListed(list)
	if err != nil {
		s.failed(ctx, t, err)
		return ctx.Err() == nil
	}
	_, _, of := s.known.place()
	same := of.Generation == t.Generation
	if same && !s.known.empty() && s.cfg.Confirm != nil && !s.cfg.Confirm(ctx, t) {
		s.putOff(&s.pace, nil) // it is of another type, of which we are about to hear
		return ctx.Err() == nil
	}
	if !s.current(t) {
		return ctx.Err() == nil
	}
	var gone []string
	for _, key := range s.known.keys() {
		id, _ := s.known.get(key)
		if item, there := content.items[key]; !same || !there || !id.same(item.identity) {
			gone = append(gone, key)
		}
	}
	if !s.delete(ctx, gone) {
		return false
	}
	rewritten := of.GVR != t.GVR
	for _, key := range content.keys {
		item := content.items[key]
		event := watch.Event{Type: watch.Added, Object: item.object}
		if id, there := s.known.get(key); there {
			if !rewritten && item.identity == id {
				continue
			}
			event.Type = watch.Modified
		}
		if !s.send(event) {
			return false
		}
		s.known.put(key, item.identity)
	}
	if !s.send(bookmark(content.version, t)) {
		return false
	}
	s.known.completed(content.version, t)
	s.cfg.Observer.Completed()
	return true
}

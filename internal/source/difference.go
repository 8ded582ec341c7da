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
		s.known.outdated() // the next list takes it back
		return true
	}
	if !s.deleteAll(ctx) {
		return false
	}
	s.known.reset(t)
	s.cfg.Observer.Completed()
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
	open, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cancelOn(changed, cancel)()
	_, err := s.requests(t).list(open, metav1.ListOptions{Limit: 1})
	err = causeOf(open, err)
	now := t
	switch {
	case err == nil: // by a list: it may be watches that are not answered
		now.Serving = Served
		s.putOff(&s.pace, nil)
	case apierrors.IsNotFound(err):
		now.Serving = Gone
	default:
		s.failed(ctx, t, &ListError{Err: err})
		return
	}
	s.available.replace(t, now)
	s.cfg.Observer.Completed()
}

// relist sends the difference between what the reflector has and what there is.
func (s *splice) relist(ctx context.Context, t Type, changed <-chan struct{}) bool {
	content, err := s.content(ctx, t, changed)
	switch {
	case err != nil && s.behind:
		s.putOff(&s.pace, err)
		return ctx.Err() == nil
	case err != nil:
		s.failed(ctx, t, &ListError{Err: err})
		return ctx.Err() == nil
	case !s.confirmed(ctx, t):
		s.putOff(&s.pace, nil) // it is of another type, of which we are about to hear
		return ctx.Err() == nil
	case !s.current(t):
		s.putOff(&s.pace, nil)
		return ctx.Err() == nil
	}
	if !s.delete(ctx, s.missingIn(content, t)) || !s.give(content, t) || !s.send(bookmark(content.version, t)) {
		return false
	}
	s.known.completed(content.version, t)
	s.cfg.Observer.Completed()
	return true
}

// content returns what there is.
func (s *splice) content(ctx context.Context, t Type, changed <-chan struct{}) (listed, error) {
	from := s.requests(t)
	if s.behind {
		from = from.unreported()
	}
	list, err := s.list(ctx, from, changed, pageSize)
	if err != nil {
		return listed{}, err
	}
	return newListed(list)
}

// confirmed reports whether a list is of the type whose objects the reflector has.
func (s *splice) confirmed(ctx context.Context, t Type) bool {
	_, _, of := s.known.place()
	if of.Generation != t.Generation || s.known.isEmpty() || s.cfg.Confirm == nil {
		return true // there is nothing that it could be mixed up with
	}
	return s.cfg.Confirm(ctx, t)
}

// missingIn returns the keys of the objects that the reflector has and content has not:
// others may have their keys.
func (s *splice) missingIn(content listed, t Type) []string {
	_, _, of := s.known.place()
	var missing []string
	for _, key := range s.known.keys() {
		id, _ := s.known.get(key)
		if item, there := content.items[key]; of.Generation != t.Generation || !there || !id.same(item.identity) {
			missing = append(missing, key)
		}
	}
	return missing
}

// give sends what the reflector does not have, or not in this state, or not in the version
// in which it is asked for now.
func (s *splice) give(content listed, t Type) bool {
	_, _, of := s.known.place()
	rewritten := of.GVR != t.GVR
	for _, key := range content.byVersion() {
		item := content.items[key]
		event := watch.Event{Type: watch.Added, Object: item.object}
		if id, there := s.known.get(key); there {
			if !rewritten && item.identity == id && !versionless(id.version) {
				continue
			}
			event.Type = watch.Modified
		}
		if !s.send(event) {
			return false
		}
		s.known.put(key, item.identity)
	}
	return true
}

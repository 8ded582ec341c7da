package source

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/sharding"
)

const (
	// pageSize is the page size of the reflector's lists.
	pageSize = 500
	// brief is the minimum duration of a watch after which the next one is opened at once. A
	// shorter watch counts as a failure, also if it had events: the pauses increase.
	brief = time.Second
)

// resumableWatch is one watch for the reflector through all changes of a type. It consists of watches
// one after the other, lists if no watch can continue, and the deletion of all objects when the
// type is gone. A list becomes events for the differences and a bookmark at the end; the events
// are not in the order of their versions.
type resumableWatch struct {
	*gate
	opts metav1.ListOptions // the reflector's watch options
	out  func(watch.Event) bool
	pace pace
	// nextPoll is the time of the next list if lists replace watches; zero: it has not been set.
	nextPoll time.Time
	// listNext says that watches have failed for so long that a list replaces the next watch, so
	// that the reflector gets the changes. A failure of that list is not reported, since the
	// failure of the watch has been reported.
	listNext bool
	// nameless says that an event has had an object without a name. It may concern a cached object, so a list follows the watch.
	nameless bool
	// unreported says that other objects are left out than the observer knows.
	unreported bool
	comparison comparison
	// splice follows the view of the shard; nil: there is none, or it begins with the next watch.
	splice *splice
	// reviewed closes when the view of the shard is another one than at the begin of the step; nil: never.
	reviewed <-chan struct{}
	// requested is the view of the last list after the first one; nil: there was none.
	requested *sharding.View
	// repeated is the generation whose first list is sent again, because it lacked namespaces; zero: there is none.
	repeated int
}

// send sends event to the reflector. It reports false if the reflector has stopped the watch.
func (s *resumableWatch) send(event watch.Event) bool { return s.sendBy(event, s.out) }

// sendBy is send, with a function that sends event once it counts.
func (s *resumableWatch) sendBy(event watch.Event, out func(watch.Event) bool) bool {
	defer s.account.Update()
	return s.traffic.count(event, out)
}

// run continues from the reflector's list until the reflector stops the watch. It waits here and
// not in step: thousands of them may wait, and the stack of step is larger.
func (s *resumableWatch) run(ctx context.Context) {
	for {
		changed, goOn := s.step(ctx)
		if !goOn || changed != nil && s.awaitChange(ctx, changed, s.reviewed) != nil {
			return
		}
	}
}

// step executes the next step, and reports whether to continue. If it must wait for a change of
// the type, it returns a channel that closes then.
func (s *resumableWatch) step(ctx context.Context) (changed <-chan struct{}, goOn bool) {
	t, changed := s.available.Current()
	if !s.settle(ctx, t) || !s.shed(ctx, t) {
		return nil, false
	}
	if t.absent() {
		return changed, true
	}
	s.pace.forGeneration(t.Generation)
	_, current, of := s.known.place()
	current = current && of.sameObjects(t)
	s.listNext = s.listNext && current && t.Serving == Served
	if !s.ready(ctx, t, changed, current) {
		return nil, ctx.Err() == nil
	}
	switch {
	case t.Serving == Missing:
		s.probe(ctx, t, changed)
	case s.listNext || !current:
		goOn := s.relist(ctx, t, changed)
		s.listNext = false
		return nil, goOn
	case s.polls(t):
		return nil, s.poll(ctx, t, changed)
	default:
		return nil, s.next(ctx, t, changed)
	}
	return nil, ctx.Err() == nil
}

// forward passes the events of stream on, until the stream ends or the type changes. It reports
// whether to continue.
func (s *resumableWatch) forward(ctx context.Context, stream *stream, t Type) bool {
	defer stream.close()
	s.comparison.begin(stream)
	stream.comparison = &s.comparison
	defer s.comparison.stop()
	stream.splice = s.spliceOf(t)
	p := &relay{resumableWatch: s, wanted: true, requests: stream.requests}
	for ending := altered; ending.continues(); {
		now, changed := s.available.Current()
		if !t.follows(now) {
			s.endVersionless()
			return ctx.Err() == nil
		}
		if ending == unchecked && s.compare(ctx, t) {
			return true
		}
		if stream.splice.follow(ctx) != nil {
			return false
		}
		if s.needsOther(stream) {
			s.endVersionless()
			return true
		}
		take := func(event watch.Event) bool { return p.take(ctx, event) }
		if ending = stream.run(ctx, take, changed); ending == unwanted && !p.receded {
			return false
		}
	}
	lasted := time.Since(stream.opened)
	s.comparison.ended(p.broken == nil && stream.isDoubtful(lasted))
	return s.closed(ctx, p, lasted)
}

// needsOther reports whether the stream of a shard can't continue: a list follows, or a watch of other slots.
func (s *resumableWatch) needsOther(stream *stream) bool {
	return stream.splice != nil && (s.known.isSuspected() || !stream.isWhole(&s.known))
}

// closed is called when the stream of p, which lasted for that time, has ended, and reports whether to continue.
func (s *resumableWatch) closed(ctx context.Context, p *relay, lasted time.Duration) bool {
	if lasted >= resetAfter {
		s.pace.reset()
	}
	switch {
	case p.receded:
		s.known.suspect(receded)
		s.putOff(&s.pace, nil)
	case !p.wanted:
		return false
	case p.broken != nil:
		s.broke(ctx, p.broken)
	case lasted < brief:
		s.putOff(&s.pace, nil)
		p.requests.endedSoon(ctx, &s.pace, ErrShortWatches)
		s.listNext = s.pace.slow()
	}
	s.endVersionless()
	return ctx.Err() == nil
}

// endVersionless records that everything must be listed if no watch can continue.
func (s *resumableWatch) endVersionless() {
	if version, _, _ := s.known.place(); versionless(version) || s.nameless {
		s.known.expired()
	}
}

// relay passes the events of one stream to the reflector.
type relay struct {
	*resumableWatch
	broken   error     // the error with which the server ended the stream
	wanted   bool      // the reflector has not stopped the watch
	receded  bool      // an event was dropped, and a list follows
	requests *requests // of the stream
}

// take passes event on, and reports whether the stream may continue. Errors go to the resumable watch.
func (p *relay) take(ctx context.Context, event watch.Event) bool {
	if event.Type == watch.Error {
		p.broken = errorOf(event)
		return true
	}
	if p.receded = p.suspects(event, p.known.upTo(), &p.comparison); p.receded {
		return false
	}
	p.wanted = p.pass(ctx, event)
	return p.wanted
}

// pass sends event to the reflector, with the transformed object. If the object replaces another one
// with the same name, pass sends the deletion of that one first. If the transform fails, the object is
// left out. After an object has been sent, it belongs to the reflector: all its fields are read before.
func (s *resumableWatch) pass(ctx context.Context, event watch.Event) bool {
	if part, is := event.Object.(*part); is {
		return s.passPart(ctx, part)
	}
	obj, err := meta.Accessor(event.Object)
	if err != nil || event.Type == watch.Error {
		return s.send(event)
	}
	id, own, namespace := identityOf(obj), originalKey(obj, 0), obj.GetNamespace()
	switch event.Type {
	case watch.Added, watch.Modified:
		if !s.passObject(ctx, event, own, id) {
			return false
		}
	case watch.Deleted:
		if !s.passDeletion(ctx, event, own, id) {
			return false
		}
	default:
		if !s.send(event) {
			return false
		}
	}
	s.known.reached(namespace, id.version)
	s.nameless = s.nameless || event.Type != watch.Bookmark && isNameless(obj)
	s.reportRejected()
	return true
}

// passObject passes on an object with the original key own. If the transform has given it another key than before, its state under that key is
// deleted first.
func (s *resumableWatch) passObject(ctx context.Context, event watch.Event, own string, id identity) bool {
	object, key, err := s.transform.apply(event.Object)
	if err != nil {
		return s.reject(own, id, err)
	}
	event.Object, id.bytes = object, s.sizes.of(object, id.uid)
	if s.isSucceeded(key, own, id) {
		return s.skip(id.version)
	}
	if s.known.hasOther(key, id) && !s.delete(ctx, []string{key}, nil) {
		return false
	}
	if former := s.known.keyOf(own); former != key && s.known.has(former, id) && !s.delete(ctx, []string{former}, nil) {
		return false
	}
	s.known.rename(own, key)
	s.known.put(key, id) // before its indexes are computed
	if !s.send(event) {
		return false
	}
	s.admit(own)
	return true
}

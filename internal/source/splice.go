package source

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// pageSize is that of the reflector's lists.
	pageSize = 500
	// brief is how long a watch lasts at least that is worth opening again at once. One that
	// is shorter counts as a failure, whatever it has brought: the pauses grow.
	brief = time.Second
)

// splice makes one watch for the reflector out of what becomes of a type: watches one
// after the other, lists where nothing can be watched on from, and the deletion of all
// objects when the type has gone. A list becomes the events that make up the difference
// and a bookmark at its end: in between, versions are in no order.
type splice struct {
	*gate
	opts metav1.ListOptions // as the reflector watches
	send func(watch.Event) bool
	// counted is what send is once the initial events of a watch-list are complete; nil: it is.
	counted func(watch.Event) bool
	pace    pace
	// behind says that watches have not worked for so long that the next list makes up for
	// them: the reflector would have nothing that has happened since. If that fails, too,
	// there is nothing to report but what was wrong with the watch.
	behind bool
}

func newSplice(g *gate, opts metav1.ListOptions) *splice {
	return &splice{gate: g, opts: opts}
}

// open opens a watch, if that is what is next and works. It returns nil otherwise.
func (s *splice) open(ctx context.Context) (*stream, Type) {
	t, changed := s.available.Current()
	version, current, of := s.known.place()
	if t.Serving != Served || !current || !of.sameObjects(t) {
		return nil, t
	}
	stream, err := s.watch(ctx, t, changed, s.options(version))
	if err != nil {
		s.failed(ctx, t, err)
		return nil, t
	}
	return stream, t
}

// begin goes on from a watch-list that has just been opened. If that fails before its
// list is complete, the error is the last that the reflector gets.
func (s *splice) begin(ctx context.Context, first *stream, t Type) {
	s.known.reset(t)
	if s.forward(ctx, first, t) {
		s.run(ctx)
	}
}

// run goes on from what the reflector has listed, until it does not want more. It waits
// here, for there may be many that do: what step needs is not on the stack meanwhile.
func (s *splice) run(ctx context.Context) {
	for {
		changed, goOn := s.step(ctx)
		if !goOn || changed != nil && s.await(ctx, changed) != nil {
			return
		}
	}
}

// await waits until something else is known of the type.
func (s *splice) await(ctx context.Context, changed <-chan struct{}) error {
	defer s.whileWaiting(ctx)()
	return wait(ctx, changed)
}

// step does what is next, as things are, and reports whether to go on. If there is nothing
// to do before things are otherwise, it returns a channel that closes then.
func (s *splice) step(ctx context.Context) (changed <-chan struct{}, goOn bool) {
	t, changed := s.available.Current()
	if !s.settle(ctx, t) {
		return nil, false
	}
	if t.Serving == Held || t.Serving == Gone {
		return changed, true
	}
	s.pace.forGeneration(t.Generation)
	version, current, of := s.known.place()
	current = current && of.sameObjects(t)
	s.behind = s.behind && current && t.Serving == Served
	if (!s.behind || s.pace.firm) && !s.pace.wait(ctx, changed, s.retries.Next()) {
		return nil, ctx.Err() == nil
	}
	switch {
	case t.Serving == Missing:
		s.probe(ctx, t, changed)
	case s.behind || !current:
		goOn := s.relist(ctx, t, changed)
		s.behind = false
		return nil, goOn
	default:
		stream, err := s.watch(ctx, t, changed, s.options(version))
		if err == nil {
			return nil, s.forward(ctx, stream, t)
		}
		s.failed(ctx, t, err)
		s.behind = s.pace.slow() && refused(err)
	}
	return nil, ctx.Err() == nil
}

// options returns those of a watch from version on.
func (s *splice) options(version string) metav1.ListOptions {
	opts := s.opts
	opts.ResourceVersion = version
	opts.ResourceVersionMatch = ""
	opts.SendInitialEvents = nil
	if seconds := opts.TimeoutSeconds; seconds != nil { // the reflector means between once and twice as much
		again := int64(shortestWatch.Seconds()) + rand.Int64N(int64(shortestWatch.Seconds())) //nolint:gosec // not a secret
		opts.TimeoutSeconds = &again
	}
	return opts
}

// shortestWatch is the reflector's, if nobody says otherwise.
const shortestWatch = 5 * time.Minute

// forward passes on what comes in stream, until it ends or the type is not the one it was.
// It reports whether to go on. A stream that breaks within its initial events is the end.
func (s *splice) forward(ctx context.Context, stream *stream, t Type) bool {
	defer stream.close()
	p := &passage{splice: s, of: t, listing: stream.initial, wanted: true}
	opened := time.Now()
	for ending := altered; ending == altered; {
		now, changed := s.available.Current()
		if !t.follows(now) {
			if stream.initial { // the reflector has nothing yet
				s.send(errorEvent(errReplaced))
			}
			return !stream.initial && ctx.Err() == nil
		}
		take := func(event watch.Event, initial bool) bool { return p.take(ctx, event, initial) }
		if ending = stream.run(ctx, take, changed); ending == unwanted {
			return false
		}
	}
	lasted := time.Since(opened)
	if lasted >= calm {
		s.pace.worked()
	}
	switch {
	case !p.wanted:
		return false
	case p.broken != nil:
		s.broke(ctx, p.broken)
	case lasted < brief:
		s.putOff(&s.pace, nil)
		s.behind = s.pace.slow()
	}
	if version, _, _ := s.known.place(); versionless(version) {
		s.known.expired() // from nowhere, nothing can be watched on
	}
	return ctx.Err() == nil
}

// passage is one stream on its way to the reflector.
type passage struct {
	*splice
	of      Type
	listing bool  // the initial events have not ended
	broken  error // by which the server ended it
	wanted  bool  // by the reflector
	initial int   // objects among the initial events
}

// take passes event on, and reports whether more is wanted. Errors are for the splice, but
// for one that ends a watch-list.
func (p *passage) take(ctx context.Context, event watch.Event, initial bool) bool {
	if event.Type == watch.Error && !initial {
		p.broken = errorOf(event)
		return true
	}
	if event.Type == watch.Error { // the reflector keeps nothing of this, and lists as soon as it has the error
		p.known.reset(p.of)
		p.cfg.Observer.Completed()
	}
	p.wanted = p.pass(ctx, event, initial) && event.Type != watch.Error
	if initial && event.Type == watch.Added {
		p.initial++
	}
	if p.wanted && p.listing && !initial { // that was the end of the list
		p.listing = false
		p.traffic.add(p.initial)
		p.send = p.counted
		p.known.completed(p.known.upTo(), p.of)
		p.cfg.Observer.Completed()
	}
	return p.wanted
}

// pass gives event to the reflector, with what the transform has made of its object. An object
// in place of one with the same name comes after its deletion; one that the transform fails for
// is left out. An object that has been sent is the reflector's: everything about it is read
// before.
func (s *splice) pass(ctx context.Context, event watch.Event, initial bool) bool {
	obj, err := meta.Accessor(event.Object)
	if err != nil || event.Type == watch.Error {
		return s.send(event)
	}
	id := identityOf(obj)
	switch event.Type {
	case watch.Added, watch.Modified:
		if !s.passObject(ctx, event, keyOf(obj), id, initial) {
			return false
		}
	case watch.Deleted:
		if !s.passDeletion(ctx, event, keyOf(obj)) {
			return false
		}
	default:
		if !s.send(event) {
			return false
		}
	}
	if !initial { // those come in no order of their versions
		s.known.reached(id.version)
	}
	return true
}

// passObject passes on an object that is own before it is transformed.
func (s *splice) passObject(ctx context.Context, event watch.Event, own string, id identity, initial bool) bool {
	object, key, err := s.transform.apply(event.Object)
	if err != nil {
		s.known.reject(own, id.uid, err)
		s.cfg.Observer.Completed()
		return true
	}
	event.Object = object
	if old, there := s.known.get(key); !initial && there && !old.same(id) && !s.delete(ctx, []string{key}) {
		return false
	}
	s.known.rename(own, key)
	s.known.put(key, id) // before its indexes are made
	if !s.send(event) {
		return false
	}
	s.admit(own)
	return true
}

// passDeletion passes on the deletion of an object that is own before it is transformed. One
// that the transform fails for is deleted as it is in the cache, if it is there.
func (s *splice) passDeletion(ctx context.Context, event watch.Event, own string) bool {
	s.admit(own)
	object, key, err := s.transform.apply(event.Object)
	if err != nil {
		return s.delete(ctx, []string{s.known.keyOf(own)})
	}
	if _, there := s.known.get(key); !there && s.transform.isSet() {
		return true // it was left out
	}
	event.Object = object
	if !s.send(event) {
		return false
	}
	s.known.rename(own, own)
	s.known.remove(key)
	return true
}

// admit says that the object under key is not left out any more.
func (s *splice) admit(key string) {
	if s.known.admit(key) {
		s.cfg.Observer.Completed()
	}
}

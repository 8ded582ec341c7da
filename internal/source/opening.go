package source

import (
	"context"
	"errors"
)

// This file opens the watches of a resumable watch. A request for a watch may have no response for minutes: a proxy may delay it until the
// first event. It ends if there is news.

// open opens a watch, if a watch is the next step and succeeds. Otherwise it returns nil.
func (s *resumableWatch) open(ctx context.Context) (*stream, Type) {
	t, changed := s.available.Current()
	version, current, of := s.known.place()
	if t.Serving != Served || !current || !of.sameObjects(t) || s.polls(t) {
		return nil, t
	}
	reviewed := s.viewChanged()
	if s.isReviewed() {
		return nil, t
	}
	stream, err := s.watch(ctx, t, news{changed: changed, reviewed: reviewed}, optionsFrom(s.opts, version))
	if err != nil {
		s.unopened(ctx, t, changed, err)
		return nil, t
	}
	return stream, t
}

// next opens the next watch, and passes its events on. It reports whether to continue.
func (s *resumableWatch) next(ctx context.Context, t Type, changed <-chan struct{}) bool {
	splice := s.spliceOf(t)
	if splice.follow(ctx) != nil {
		return false
	}
	version, current, _ := s.known.place()
	if !current { // the list of gained slots has shown that the server has gone back
		return true
	}
	stream, err := s.watch(ctx, t, news{changed, splice.reviewed(), splice.listed()}, optionsFrom(s.opts, version))
	if err == nil {
		return s.forward(ctx, stream, t)
	}
	s.unopened(ctx, t, changed, err)
	return ctx.Err() == nil
}

// unopened is called when the request for a watch has failed.
func (s *resumableWatch) unopened(ctx context.Context, t Type, changed <-chan struct{}, err error) {
	if !errors.Is(err, errGaveWay) || isClosed(changed) { // otherwise the view of the shard has changed
		s.failed(ctx, t, err)
		s.listNext = s.pace.slow() && refused(err)
	}
}

// ready waits until the next request may be sent. Current says that it is a watch, or the list that replaces one. It reports false if there is
// news before, or if ctx ends.
func (s *resumableWatch) ready(ctx context.Context, t Type, changed <-chan struct{}, current bool) bool {
	n := news{changed, s.reviewed, s.spliceFor(t).listed()}
	switch {
	case s.listNext && !s.pace.requested:
		return true
	case current || t.Serving != Served:
		ready := s.pace.await(ctx, n, s.gate)
		s.retryRefused(t, s.pace.asked)
		if ready {
			s.pace.begins(s.gate)
		}
		return ready
	case s.isUnnamed(t) && !s.endPrevious(ctx, t): // the names may take long
		return false
	}
	return s.pauseBeforeList(ctx, t, n)
}

// pauseBeforeList is pause before a list of t. If the first list has failed, and the pause is longer than the overlap with the previous
// generation, the objects of that one end meanwhile.
func (s *resumableWatch) pauseBeforeList(ctx context.Context, t Type, n news) bool {
	if s.pace.last > 0 && s.replaced(t) && !s.isUnnamed(t) {
		overlap, cancel := context.WithDeadline(ctx, t.Since.Add(overlapFor))
		defer cancel()
		if s.pause(overlap, &s.pace, t, n) {
			return true
		}
		if overlap.Err() == nil || !s.endPrevious(ctx, t) { // there is news, or ctx has ended
			return false
		}
	}
	return s.pause(ctx, &s.pace, t, n)
}

package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	pageLimit   = 100 // objects asked for at a time: with large schemas, they are many megabytes
	maxRestarts = 3   // of a list of which the server forgets the beginning
)

// slim is what a feed decodes an object into: a pointer to what is kept of it.
type slim interface {
	comparable // with nil
	meta() *slimMeta
}

// feed keeps a collection in view, by a list and a watch that goes on from it. What T
// has no field for is dropped while it is read.
//
// All callbacks are made by run, one at a time. What they are given is theirs. A feed
// reports objects as the server sends them, and compares nothing: after a list, and
// where a watch begins again, they may be those already known.
type feed[T slim] struct {
	endpoint *endpoint
	path     string
	kind     string   // of the collection's list; if it is empty, any will do
	pace     feedPace // if none is set, the usual one

	list  func(items []T)                    // all there is: what is not among them is gone
	event func(kind watch.EventType, item T) // Added, Modified or Deleted
	state func(feedState)                    // each change of it

	// Those below belong to run.
	version string        // from which the watch goes on; empty: a list is due
	backoff time.Duration // the last one; 0: the last watch was a good one
	filled  bool          // the last list had something
	current feedState
}

// feedPhase says how a feed stands.
type feedPhase string

const (
	feedConnecting feedPhase = "Connecting" // nothing is known yet
	feedWatching   feedPhase = "Watching"   // the list was reported, events follow
	feedAbsent     feedPhase = "Absent"     // the server has no such collection
	feedForbidden  feedPhase = "Forbidden"  // it may not be listed, or not be watched
	feedFailing    feedPhase = "Failing"    // it is tried again
)

// feedState is how a feed stands, and why. What was reported before holds as of then.
type feedState struct {
	phase feedPhase
	verb  string // list or watch: what err is about
	err   error  // nil while connecting and watching
}

// errEndedAtOnce is of a watch that the server ended in order, but before it was of
// any use. Doing that again and again would be a busy loop.
var errEndedAtOnce = errors.New("the server ended the watch at once")

// run keeps the collection in view until ctx ends. No callback is made after it has
// returned. It is called once.
func (f *feed[T]) run(ctx context.Context) {
	f.pace = cmp.Or(f.pace, usualFeedPace)
	f.report(feedState{phase: feedConnecting})
	for ctx.Err() == nil {
		verb, attempt := "list", f.relist
		if f.version != "" {
			verb, attempt = "watch", f.follow
		}
		if err := attempt(ctx); err != nil && ctx.Err() == nil {
			f.settle(ctx, verb, err)
		}
	}
}

// settle reports what has come of an attempt that failed, and waits until the next.
func (f *feed[T]) settle(ctx context.Context, verb string, err error) {
	failed := feedState{phase: feedFailing, verb: verb, err: err}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		failed.phase = feedForbidden
		f.version = "" // what is missed meanwhile may be much
	case verb == "list" && apierrors.IsNotFound(err) && !f.filled:
		failed.phase = feedAbsent // one that had something has not lost it: requests go astray
	case verb == "watch" && stale(err):
		f.version = ""
		if f.backoff == 0 { // a watch that worked has grown old, which is no failure
			wait(ctx, f.delay(failed))
			return
		}
	}
	f.report(failed)
	wait(ctx, f.delay(failed))
}

func (f *feed[T]) report(s feedState) {
	if s.phase == f.current.phase && s.verb == f.current.verb && fmt.Sprint(s.err) == fmt.Sprint(f.current.err) {
		return
	}
	f.current = s
	f.state(s)
}

// get asks for the collection. The caller closes the body.
func (f *feed[T]) get(ctx context.Context, query url.Values) (*http.Response, error) {
	res, err := f.endpoint.get(ctx, f.path, query, http.Header{"Accept": {"application/json"}})
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // its own text has the query, which differs each time
	}
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close() //nolint:errcheck // read only
		return nil, fmt.Errorf("the server answered %s", res.Status)
	}
	return res, nil
}

// relist lists the collection and reports it.
func (f *feed[T]) relist(ctx context.Context) error {
	var (
		items    []T
		first    page[T]
		token    string
		restarts int
	)
	for {
		p, err := f.page(ctx, token)
		switch {
		case token != "" && expired(err) && restarts < maxRestarts:
			restarts++
			items, token = nil, ""
			continue
		case err != nil:
			return err
		case token == "":
			first = p
		case p.next == token:
			return errors.New("the list does not get on: a page names itself as the next")
		}
		items, token = append(items, p.items...), p.next
		if token == "" {
			// The pages are of one version. Were they not, what has changed
			// since the first could be missing in it.
			f.version, f.filled = first.version, len(items) > 0
			f.list(items)
			return nil
		}
	}
}

// page asks for the page of the list that token is for, the first if it is empty.
func (f *feed[T]) page(ctx context.Context, token string) (page[T], error) {
	ctx, cancel := context.WithTimeout(ctx, f.pace.page)
	defer cancel()
	query := url.Values{"limit": {strconv.Itoa(pageLimit)}}
	if token != "" {
		query.Set("continue", token)
	}
	res, err := f.get(ctx, query)
	if err != nil {
		return page[T]{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	p, err := readPage[T](res.Body)
	if err == nil && f.kind != "" && p.kind != "" && p.kind != f.kind {
		err = fmt.Errorf("the answer is a %s and no %s", p.kind, f.kind)
	}
	return p, err
}

// follow watches the collection for the lifetime of a watch. It returns nil if the
// watch did what it should and is to be resumed at once.
func (f *feed[T]) follow(ctx context.Context) error {
	lifetime := max(spread(f.pace.lifetime, 1.0/3).Truncate(time.Second), time.Second)
	// The server ends the watch. Should it not, the connection is dead.
	ctx, cancel := context.WithTimeout(ctx, lifetime+f.pace.grace)
	defer cancel()
	res, err := f.get(ctx, url.Values{
		"watch":               {"true"},
		"allowWatchBookmarks": {"true"},
		"resourceVersion":     {f.version},
		"timeoutSeconds":      {strconv.Itoa(int(lifetime / time.Second))},
	})
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return fmt.Errorf("the server answered the watch with content type %q", res.Header.Get("Content-Type"))
	}
	f.report(feedState{phase: feedWatching})
	began := time.Now()
	events, err := f.receive(res.Body)
	if events > 0 || time.Since(began) >= f.pace.steady {
		f.backoff = 0
	} else if err == nil {
		err = errEndedAtOnce
	}
	return err
}

// receive reports the events of a watch until it ends, and returns how many they were.
// The error is nil if the server ended the watch in order.
func (f *feed[T]) receive(body io.Reader) (events int, err error) {
	frames := newFrames(body)
	for {
		next, err := frames.next()
		if err == io.EOF { //nolint:errorlint // not what wraps it
			return events, nil
		}
		if err != nil {
			return events, err
		}
		switch next.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			item, err := decodeObject[T](next.Object)
			if err != nil {
				return events, fmt.Errorf("event %s: %w", next.Type, err)
			}
			events++
			f.version = cmp.Or(item.meta().ResourceVersion, f.version)
			f.event(next.Type, item)
		case watch.Bookmark:
			var mark struct {
				Metadata slimMeta `json:"metadata"`
			}
			if err := json.Unmarshal(next.Object, &mark); err != nil {
				return events, fmt.Errorf("event %s: %w", next.Type, err)
			}
			f.version = cmp.Or(mark.Metadata.ResourceVersion, f.version)
		case watch.Error:
			fault := &apierrors.StatusError{}
			if err := json.Unmarshal(next.Object, &fault.ErrStatus); err != nil {
				return events, fmt.Errorf("event %s: %w", next.Type, err)
			}
			return events, fmt.Errorf("the server broke off the watch: %w", fault)
		case "":
			return events, errors.New("the server answered the watch with what is no event")
		}
	}
}

// expired reports whether the server no longer has the version that it was asked for.
func expired(err error) bool {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusGone
}

// stale reports whether a watch can't go on from where it was, so that a list must tell
// what there is. A server that was restored from a backup does not know the version
// yet; one that does not find the collection may have none.
func stale(err error) bool {
	return expired(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

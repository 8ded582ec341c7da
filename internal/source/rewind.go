package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// This file detects that the resourceVersions of a server have gone back, as after a restore of etcd.
//
// A watch from a version that the server does not have is silent: up to that version, an API server sends neither
// events nor bookmarks (kubernetes#107457). So the version from which a watch was opened is compared with that of the
// server, by a consistent list with at most one object: after the server could not be reached, a connection was lost, or the server has ended a
// watch before its timeout, and if a server that sends bookmarks has sent nothing for some time. A list below the version of the reflector is also
// evidence.
//
// An event or a bookmark below that version is only a suspicion: it may come from a server that is behind. It is dropped,
// and a whole list, which is consistent, decides. If comparisons fail after an outage, the server may pass the version
// before one succeeds. Then a later version shows nothing, and a whole list is compared by content when comparisons succeed again.

const (
	// quietFor is the time without events and bookmarks after which the version of a watch is compared with that of the
	// server. API servers send a bookmark about once a minute, unless nothing at all is written.
	quietFor = 2 * time.Minute
	// checkAgain is the time until the next comparison if one has failed, and checkAtMost that after several failures: each time is twice the
	// one before.
	checkAgain, checkAtMost = time.Second, 30 * time.Second
	// checkWithin is the maximum time of a comparison. The events of the watch wait for it.
	checkWithin = 10 * time.Second
	// maxDisorders is the number of lists of one generation that follow events below the version of the reflector and show
	// that the server's versions have not gone back. After them, the server does not order its versions: events are passed on.
	maxDisorders = 3
)

// suspicion is what a source, or a child of a set, knows against the versions of its server. A list ends it. A later constant is stronger.
type suspicion uint8

const (
	unsuspected suspicion = iota
	// receded: an event was below the version.
	receded
	// incomparable: the server may have gone back, and its version does not show it: it may have passed that of the source since, or belong to
	// another generation of the type.
	incomparable
	// rewound: the server has gone back.
	rewound
)

// RewoundError is the failure of a source whose server has gone back to earlier versions. It lasts until a list has
// replaced the objects.
type RewoundError struct {
	Had string // the version up to which the reflector had everything
	Has string // the version of the server
}

func (e *RewoundError) Error() string {
	return fmt.Sprintf("the server's resourceVersion has gone back from %s to %s, as after a restore of etcd", e.Had, e.Has)
}

// comparison compares the version of a watch with that of the server when it is time to do so. It continues with the next watch of the
// same objects. The goroutine that reads the watch owns it.
type comparison struct {
	// doubtful says that the server could not be reached, or has ended a watch early or not at all, and nothing has shown its version since.
	doubtful bool
	// late says that a comparison of this watch could not be made during the doubt: a later version does not end it. If the source ends the
	// watch, or passed is true, the next watch is late, too: events have been passed on since, and it begins at a later version.
	late, passed bool

	pause     time.Duration    // before the last comparison, if it and all since a version was shown have failed
	forbidden time.Time        // the first of the last comparisons of this watch, which were all forbidden; zero: the last one was not
	elsewhere bool             // events may be of earlier versions, or have been compared before
	timer     *time.Timer      // nil: none runs
	due       <-chan time.Time // has a value when it is time for the comparison; nil: there is none
}

// atOnce is closed: it is time.
var atOnce = func() chan time.Time { c := make(chan time.Time); close(c); return c }()

// begin is called when stream was just opened.
func (c *comparison) begin(stream *stream) {
	c.elsewhere = stream.elsewhere || stream.isMerged // each child of a set has compared its events
	c.doubtful = (c.doubtful || stream.interrupted) && !stream.lists
	c.forbidden = time.Time{} // there may have been another outage
	switch {
	case stream.lists, stream.isMerged: // its version is that of the server; each namespace of a set has its own
	case c.doubtful:
		c.due = atOnce
	case stream.requests.gate.bookmarks.Load():
		c.after(quietFor, 0.1)
	}
}

// after sets the time of the comparison.
func (c *comparison) after(pause time.Duration, jitter float64) {
	c.timer = time.NewTimer(wait.Jitter(pause, jitter))
	c.due = c.timer.C
}

// ended is called when the server has ended the watch. Doubtful says that its end was early, or did not arrive.
func (c *comparison) ended(doubtful bool) {
	c.doubtful, c.late = c.doubtful || doubtful, c.late && c.passed
}

// elapsed returns a channel that has a value when it is time for the comparison; nil for a nil comparison.
func (c *comparison) elapsed() <-chan time.Time {
	if c == nil {
		return nil
	}
	return c.due
}

// stop is called when the watch has ended.
func (c *comparison) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.timer, c.due = nil, nil
}

// shown is called when the server has shown that it has the version of the watch: a comparison would show nothing.
func (c *comparison) shown() {
	c.stop()
	c.doubtful, c.late, c.passed, c.pause = false, false, false, 0
}

// again sets the time of the next comparison after one that could not be made. The server may pass the version before that one.
func (c *comparison) again() {
	c.late = c.late || c.doubtful
	c.pause = min(max(checkAgain, 2*c.pause), checkAtMost)
	c.after(c.pause, 0.2)
}

// refused reports whether err, of a comparison, shows that the user may not list. A server that has just started may forbid it until it knows
// its roles.
func (c *comparison) refused(err error) bool {
	if !apierrors.IsForbidden(err) {
		c.forbidden = time.Time{}
		return false
	}
	if c.forbidden.IsZero() {
		c.forbidden = time.Now()
	}
	return !c.doubtful || time.Since(c.forbidden) >= checkAtMost
}

// run compares version with that of the server, and returns the result, with an error if the server has gone back. If the type is held, or the
// comparison fails, it is repeated later. If the user may not list, it shows nothing. The watch continues.
func (c *comparison) run(ctx context.Context, from *requests, version string) (suspicion, *RewoundError) {
	if now, _ := from.gate.available.Current(); now.absent() {
		c.again()
		return unsuspected, nil
	}
	quick := *from.unreported()
	quick.timeout = checkWithin
	has, err := quick.version(withoutLimit(ctx))
	switch {
	case err != nil && !c.refused(err): // a server that has just started may reject it
		c.again()
		return unsuspected, nil
	case err == nil && before(has, version):
		return rewound, &RewoundError{Had: version, Has: has}
	case err == nil && c.late:
		return incomparable, nil
	}
	c.shown()
	return unsuspected, nil
}

// version requests the present version of the server: that of a consistent list with at most one object.
func (r *requests) version(ctx context.Context) (string, error) {
	list, err := r.list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	content, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return content.GetResourceVersion(), nil
}

// unreachable reports whether err is not a response of an API server that works: the server may have been replaced.
func unreachable(err error) bool {
	if errors.Is(err, errGaveWay) || errors.Is(err, errClosed) {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
}

// compare compares the version of the open watch of t with that of the server, and reports whether the watch must end: a list
// follows, or another type, whose versions may be lower.
func (s *resumableWatch) compare(ctx context.Context, t Type) bool {
	version, _, _ := s.known.place()
	against, err := s.comparison.run(ctx, s.requests(t), version)
	switch {
	case against == unsuspected || ctx.Err() != nil:
		return false
	case !s.remains(ctx, t):
		s.putOff(&s.pace, nil) // the other type will be known soon
	case err != nil:
		s.rewind(ctx, err)
	default:
		s.known.suspect(against)
	}
	return true
}

// rewind records and reports that the server has gone back, unless that is known.
func (s *resumableWatch) rewind(ctx context.Context, err *RewoundError) {
	if !s.known.suspect(rewound) {
		return
	}
	s.cfg.Observer.Failed(VerbList, err)
	s.report(ctx, &ListError{Err: err})
}

// compareVersions sets the suspicion against the server of content, a list of t. It may be known already that the server has gone back.
func (s *resumableWatch) compareVersions(ctx context.Context, content *listed, t Type) {
	had, _, of := s.known.place()
	if of.Generation != t.Generation { // a restore may also look like a replaced type
		content.suspicion = incomparable
		s.awaitStore(ctx, content)
		return
	}
	against, doubted := s.known.suspicionFor(content)
	content.suspicion, content.doubted = against, doubted || s.comparison.doubtful
	if against != unsuspected {
		s.known.suspect(against)
	}
	has := content.version
	for namespace, at := range content.positions {
		if was := s.known.versionIn(namespace); before(at.version, was) {
			had, has = was, at.version
		}
	}
	if content.suspicion < rewound && before(has, had) {
		content.suspicion = rewound
		s.rewind(ctx, &RewoundError{Had: had, Has: has})
	}
	s.awaitStore(ctx, content)
}

// compare compares the version of the open watch with that of the server, and reports whether the watch must end, as
// resumableWatch.compare does.
func (c *child) compare(ctx context.Context) bool {
	against, err := c.comparison.run(ctx, c.requests, c.version)
	switch {
	case against == unsuspected || ctx.Err() != nil:
		return false
	case !c.remains(ctx, c.of):
		c.pace.failed(time.Now(), nil) // the other type will be known soon
	case err != nil:
		c.rewind(ctx, err)
	default:
		c.suspicion, c.listed = against, false
	}
	return true
}

// rewind records and reports that the server has gone back, unless that is known.
func (c *child) rewind(ctx context.Context, err *RewoundError) {
	if c.suspicion == rewound {
		return
	}
	c.suspicion, c.listed = rewound, false
	c.requests.failed(ctx, VerbList, err)
	c.report(ctx, &ListError{Err: &NamespaceError{c.namespace, err}})
}

// recedes reports whether event has a version below the one up to which the reflector has everything, in namespace if there
// is a set of namespaces, and that says something about the server. The objects of client-go's fake clients have any versions.
func (g *gate) recedes(event watch.Event, version string, elsewhere bool) bool {
	obj, err := meta.Accessor(event.Object)
	return err == nil && !elsewhere && before(obj.GetResourceVersion(), version) &&
		g.known.isOrdered() && !g.cfg.Client.IsWatchListSemanticsUnSupported()
}

// suspects reports whether event, which is no error, says that the server of a watch from version has gone back: it is dropped, and a list follows.
// Otherwise it ends the doubt of c. While comparisons can't be made, a list instead of the watch would fail, too: the event is passed on, and the next
// comparison decides.
func (g *gate) suspects(event watch.Event, version string, c *comparison) bool {
	switch {
	case g.recedes(event, version, c.elsewhere):
		return true
	case !c.late:
		c.shown()
	default:
		c.passed = true
	}
	return false
}

// isStored reports whether the reflector's store has the object of item under key, in the same state. After versions have
// gone back, another state may have the same version.
func (s *resumableWatch) isStored(key string, item listedItem) bool {
	store := s.lookUp()
	if store == nil {
		return false
	}
	stored, there := store(key)
	if !there {
		return false
	}
	var object any = item.object
	if c, is := item.object.(*carrier); is {
		object = c.content
	}
	return reflect.DeepEqual(s.contentOf(stored), s.contentOf(object))
}

// contentOf returns what of obj is compared: obj in the form before it was packed, and metadata without its apiVersion and kind, which are empty in
// lists, and not in events.
func (s *resumableWatch) contentOf(obj any) any {
	if partial, is := obj.(*metav1.PartialObjectMetadata); is {
		return partial.ObjectMeta
	}
	if object, is := obj.(metav1.Object); is && s.cfg.Packing != nil {
		return s.cfg.Packing.Unpack(object)
	}
	return obj
}

// awaitStore waits for a limited time until the store has the objects of content that the reflector has in the same state, if they are compared
// by content.
func (s *resumableWatch) awaitStore(ctx context.Context, content *listed) {
	if !content.needsContent() {
		return
	}
	var keys []string
	for key, item := range content.items {
		if id, there := s.known.get(key); there && item.equals(id) {
			keys = append(keys, key)
		}
	}
	s.lookUp().await(ctx, &s.known, keys)
}

// suspect records a suspicion: the next list decides. It reports whether there was none as strong.
func (k *known) suspect(against suspicion) (stronger bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stronger = against > k.suspicion
	k.suspicion, k.current = max(k.suspicion, against), false
	return stronger
}

func (k *known) isSuspected() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.suspicion != unsuspected
}

// isOrdered reports whether the versions of events have been in order, as far as lists have shown.
func (k *known) isOrdered() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.disorders < maxDisorders
}

// judgeLocked ends what is suspected of the server, after a list that decides. The caller holds mu, and has not set the
// version of the list yet.
func (k *known) judgeLocked(against suspicion, version string) {
	back := before(version, k.version)
	switch {
	case against == rewound && !back: // the server has passed the former version meanwhile
		k.rewinds++
	case against == receded && !back:
		k.disorders++
	}
}

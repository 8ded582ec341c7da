package typestate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// linesEachMinute is the maximum number of lines of one informer in a minute. The next line after
// that has the number of omitted lines.
const linesEachMinute = 10

// The verbosity at which lines are written.
const (
	LogOrdinary = 2 // the informer begins, has listed, has ended
	LogRetries  = 4 // each failed attempt, each closed watch
)

// stateLog writes the changes of one informer's state to the log: one line for a change, and
// none for a retry. It holds no lock while it writes. Its fields record which lines were written.
type stateLog struct {
	gvr schema.GroupVersionResource

	mu      sync.Mutex
	logger  klog.Logger // of the context that the informer was started with
	begun   bool
	failing map[string]*episode // by the namespaces of a set, and ofNames; those in which all requests fail, under the empty name
	gone    bool                // a line has reported that the type is gone
	listed  int                 // the generation of the last "Listed" line, plus one
	objects bool                // a line has reported that objects are left out of the cache
	minute  time.Time
	lines   int // the number of lines in that minute
	leftOut int // the number of omitted lines since the last line
}

// ofNames is the key of failures of requests for the names of a set. No namespace has this name.
const ofNames = "the namespaces of the set"

// begin is called when the informer is started.
func (l *stateLog) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logger, l.begun = klog.FromContext(ctx), true
}

// episode is a failure from its first request to its end.
type episode struct {
	reason  status.Reason   // the last one
	written []status.Reason // those with a line
	since   time.Time
	short   bool      // the server ends watches soon after they have begun
	opened  time.Time // if short: since when requests succeed; zero: they fail
}

// calmAfter is the time without a failure after which the server no longer ends watches soon: it is longer than the pauses between them.
const calmAfter = time.Minute

// ends reports whether a success ends the failure. The watch may end soon, as those before.
func (e *episode) ends(now time.Time) bool {
	if e.short && e.opened.IsZero() {
		e.opened = now
	}
	return !e.short || now.Sub(e.opened) >= calmAfter
}

// episodeLocked records the reason of a failure in namespace. The caller holds mu.
func (l *stateLog) episodeLocked(namespace string, reason status.Reason) *episode {
	e := l.failing[namespace]
	if e == nil {
		e = &episode{since: time.Now()}
		if l.failing == nil {
			l.failing = map[string]*episode{}
		}
		l.failing[namespace] = e
	}
	e.reason = reason
	return e
}

// isNew records the reason of the failure err, and reports whether it has no line yet. Reasons that
// alternate have one line each.
func (l *stateLog) isNew(namespace string, reason status.Reason, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.episodeLocked(namespace, reason)
	e.short, e.opened = errors.Is(err, source.ErrShortWatches), time.Time{}
	return !slices.Contains(e.written, reason)
}

// wrote records that the reason of a failure has a line.
func (l *stateLog) wrote(namespace string, reason status.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.episodeLocked(namespace, reason); !slices.Contains(e.written, reason) {
		e.written = append(e.written, reason)
	}
}

// retried logs a failed list or watch that will be retried. If other namespaces of a set do not fail, namespace is the one that does; or it is
// ofNames, which is in the text of err.
func (l *stateLog) retried(ctx context.Context, namespace string, reason status.Reason, err error) {
	logger := klog.FromContext(ctx).WithValues("resource", discovery.RefOf(l.gvr))
	if namespace != "" && namespace != ofNames {
		logger = logger.WithValues("namespace", namespace)
	}
	if !l.isNew(namespace, reason, err) {
		logger.V(LogRetries).Info("Failed to list or watch, retrying", "reason", reason, "err", err)
		return
	}
	// Not utilruntime.HandleError: it delays callers for all resources to limit the number of
	// lines, which this package limits itself.
	if leftOut, write := l.admit(); write {
		l.wrote(namespace, reason)
		logger.Error(err, "Failed to list or watch, retrying", append([]any{"reason", reason}, leftOut...)...)
	}
}

// closed logs the ordinary end of a watch.
func (l *stateLog) closed(ctx context.Context, err error) {
	klog.FromContext(ctx).V(LogRetries).Info("Watch closed", "resource", discovery.RefOf(l.gvr), "err", err)
}

// refused logs that discovery does not serve the type.
func (l *stateLog) refused(now *Snapshot, reason status.Reason, err error) {
	if now.Serving == source.Gone {
		l.vanished(reason, now.Evidence)
	}
	text := "Waiting for the resource before listing it"
	if now.disputed {
		text = "The name does not mean the resource alone, continuing with it"
	}
	if l.isNew("", reason, err) && l.write(0, text, "reason", reason, "err", err) {
		l.wrote("", reason)
	}
}

// vanished logs that there is evidence that the type is gone.
func (l *stateLog) vanished(reason status.Reason, evidence discovery.Evidence) {
	l.mu.Lock()
	known := l.gone
	l.gone = true
	l.mu.Unlock()
	l.wrote("", reason)
	if !known {
		l.write(0, "The resource is gone, waiting for it to come back", "evidence", evidence.Kind, "crdUID", evidence.CRDUID)
	}
}

// healed logs that a failure has ended, if it has.
func (l *stateLog) healed(before, now *Snapshot) {
	_, _, failed := before.Failing()
	if _, _, failing := now.Failing(); failing {
		return
	}
	l.mu.Lock()
	ended, gone := l.failing[""], l.gone
	if short := ended != nil && ended.short && !gone; !failed && !short || short && !ended.ends(now.At) {
		l.mu.Unlock()
		return
	}
	delete(l.failing, "")
	l.gone = false
	l.mu.Unlock()
	switch {
	case ended == nil:
	case gone:
		l.write(0, "The resource is there again", "after", time.Since(ended.since))
	default:
		l.write(0, "Recovered", "reason", ended.reason, "after", time.Since(ended.since))
	}
}

// healedIn logs that requests do not fail any more in some namespaces of a set, or for its names. Report returns the present state of the source.
func (l *stateLog) healedIn(report func() source.Report) {
	l.mu.Lock()
	_, whole := l.failing[""]
	few := len(l.failing) == 0 || whole && len(l.failing) == 1
	l.mu.Unlock()
	if few {
		return
	}
	state := report()
	fails := map[string]bool{"": true, ofNames: state.NamesErr != nil}
	for _, n := range state.Namespaces {
		fails[n.Name] = n.Failure.Err != nil
	}
	ended, now := map[string]*episode{}, time.Now()
	l.mu.Lock()
	all := l.failing[""]
	for namespace, e := range l.failing {
		if !fails[namespace] && (all == nil || !all.short) && e.ends(now) {
			ended[namespace] = e
			delete(l.failing, namespace)
		}
	}
	l.mu.Unlock()
	for namespace, e := range ended {
		key := "namespace"
		if namespace == ofNames {
			key = "of"
		}
		l.write(0, "Recovered", key, namespace, "reason", e.reason, "after", time.Since(e.since))
	}
}

// completed logs the first list of each generation, and that the type is gone.
func (l *stateLog) completed(now *Snapshot) {
	if now.Serving == source.Gone {
		l.vanished(status.ReasonNotFound, now.Evidence)
	}
	if !now.Source.Complete {
		return
	}
	l.mu.Lock()
	known := l.listed == now.Source.Generation+1
	l.listed = now.Source.Generation + 1
	l.mu.Unlock()
	if !known {
		l.write(LogOrdinary, "Listed", "objects", now.Source.Objects, "resourceVersion", now.Source.Listed)
	}
}

// objectsLeftOut logs that objects are left out of the cache, and that none is left out any more. Objects that are
// left out of an index have no line: their errors come from under the lock of the store.
func (l *stateLog) objectsLeftOut(now *Snapshot) {
	leaves := now.Source.Rejected.Count > 0
	l.mu.Lock()
	before := l.objects
	l.objects = leaves
	l.mu.Unlock()
	switch {
	case leaves && !before:
		l.write(0, "Objects are left out", "reason", now.LeftOut.Reason, "object", now.LeftOut.Key, "err", now.LeftOut.Err)
	case !leaves && before:
		l.write(0, "No object is left out any more")
	}
}

// write writes a line, unless the limit is reached, and reports whether it did.
func (l *stateLog) write(verbosity int, text string, keysAndValues ...any) bool {
	l.mu.Lock()
	logger := l.logger
	if !l.begun {
		logger = klog.Background()
	}
	l.mu.Unlock()
	logger = logger.V(verbosity)
	if !logger.Enabled() {
		return false
	}
	leftOut, write := l.admit()
	if write {
		logger.WithValues("resource", discovery.RefOf(l.gvr)).Info(text, append(keysAndValues, leftOut...)...)
	}
	return write
}

// admit reports whether a line may be written, and returns its values about omitted lines.
func (l *stateLog) admit() (leftOut []any, write bool) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.minute) >= time.Minute {
		l.minute, l.lines = now, 0
	}
	if l.lines == linesEachMinute {
		l.leftOut++
		return nil, false
	}
	l.lines++
	if l.leftOut > 0 {
		leftOut = []any{"linesLeftOut", l.leftOut}
		l.leftOut = 0
	}
	return leftOut, true
}

// LogPanic logs a recovered panic of an event handler.
func (s *State) LogPanic(handler, lease, key, text string, stack []byte) {
	s.log.write(0, "Event handler has panicked, continuing with its next event",
		"handler", handler, "lease", lease, "object", key, "panic", text, "stack", string(stack))
}

// Log writes a line about the informer to its logger.
func (s *State) Log(verbosity int, text string, keysAndValues ...any) {
	s.log.write(verbosity, text, keysAndValues...)
}

// LogError logs an error of a list or watch that will be retried. It is the default watch error
// handler of an informer.
func (s *State) LogError(ctx context.Context, err error) {
	if isExpired(err) {
		s.log.closed(ctx, err)
		return
	}
	namespace := namespaceOf(err, "")
	if now := s.Snapshot(); namespace != "" {
		if _, _, failing := now.Failing(); failing {
			namespace = ""
		}
	}
	if _, is := errors.AsType[*source.NamesError](err); is {
		namespace = ofNames
	}
	s.log.retried(ctx, namespace, Classify(err), err)
}

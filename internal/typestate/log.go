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
// none for a retry. Lines are in the order of the changes. It holds no lock while it writes.
type stateLog struct {
	gvr schema.GroupVersionResource

	// The fields below are guarded by mu. Except logger, they record which lines were written.
	mu      sync.Mutex
	logger  klog.Logger // of the context that the informer was started with
	begun   bool
	whole   *episode            // nil: discovery does not fail, nor requests outside of a set or in all its namespaces
	failing map[string]*episode // of single namespaces of a set, by name, and ofNames
	gone    bool                // a line has reported that the type is gone
	listed  int                 // the generation of the last "Listed" line, plus one
	objects bool                // a line has reported that objects are left out of the cache
	minute  time.Time
	lines   int // the number of lines in that minute
	leftOut int // the number of omitted lines since the last line

	queue   []func() // writes the next lines
	writing bool     // a goroutine writes the lines of queue
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

// episodeLocked records the reason of the failure err in namespace, and reports whether it has no line yet. Reasons that alternate have one line
// each. The caller holds mu.
func (l *stateLog) episodeLocked(namespace string, reason status.Reason, err error) (e *episode, isNew bool) {
	e = l.whole
	if namespace != "" {
		e = l.failing[namespace]
	}
	if e == nil {
		e = &episode{since: time.Now()}
		l.beginLocked(namespace, e)
	}
	e.reason, e.short, e.opened = reason, errors.Is(err, source.ErrShortWatches), time.Time{}
	return e, !slices.Contains(e.written, reason)
}

// beginLocked records that e begins in namespace. The caller holds mu.
func (l *stateLog) beginLocked(namespace string, e *episode) {
	if namespace == "" {
		l.whole = e
		return
	}
	if l.failing == nil {
		l.failing = map[string]*episode{}
	}
	l.failing[namespace] = e
}

// retried logs a failed list or watch that will be retried. If other namespaces of a set do not fail, namespace is the one that does; or it is
// ofNames, which is in the text of err.
func (l *stateLog) retried(ctx context.Context, namespace string, reason status.Reason, err error) {
	logger := klog.FromContext(ctx).WithValues("resource", discovery.RefOf(l.gvr))
	if namespace != "" && namespace != ofNames {
		logger = logger.WithValues("namespace", namespace)
	}
	retries := logger.V(LogRetries)
	logsRetries := retries.Enabled()
	defer l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	e, isNew := l.episodeLocked(namespace, reason, err)
	if !isNew {
		if logsRetries {
			l.queue = append(l.queue, func() { retries.Info("Failed to list or watch, retrying", "reason", reason, "err", err) })
		}
		return
	}
	// Not utilruntime.HandleError: it delays callers for all resources to limit the number of
	// lines, which this package limits itself.
	if leftOut, admitted := l.admitLocked(); admitted {
		e.written = append(e.written, reason)
		l.queue = append(l.queue, func() {
			logger.Error(err, "Failed to list or watch, retrying", append([]any{"reason", reason}, leftOut...)...)
		})
	}
}

// closed logs the ordinary end of a watch.
func (l *stateLog) closed(ctx context.Context, err error) {
	klog.FromContext(ctx).V(LogRetries).Info("Watch closed", "resource", discovery.RefOf(l.gvr), "err", err)
}

// refused logs that discovery does not serve the type.
func (l *stateLog) refused(now *Snapshot, reason status.Reason, err error) {
	text := "Waiting for the resource before listing it"
	if now.disputed {
		text = "The name does not mean the resource alone, continuing with it"
	}
	defer l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Serving == source.Gone {
		l.vanishedLocked(reason, now.Evidence)
	}
	if e, isNew := l.episodeLocked("", reason, err); isNew && l.lineLocked(0, text, "reason", reason, "err", err) {
		e.written = append(e.written, reason)
	}
}

// vanishedLocked logs that there is evidence that the type is gone. The caller holds mu.
func (l *stateLog) vanishedLocked(reason status.Reason, evidence discovery.Evidence) {
	if e, isNew := l.episodeLocked("", reason, nil); isNew {
		e.written = append(e.written, reason)
	}
	if !l.gone {
		l.gone = true
		l.lineLocked(0, "The resource is gone, waiting for it to come back", "evidence", evidence.Kind, "crdUID", evidence.CRDUID)
	}
}

// healed logs that a failure has ended, if it has. Fails reports whether the informer fails at present: a request may have failed since another one
// has succeeded.
func (l *stateLog) healed(fails func() bool) {
	defer l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	ended, gone := l.whole, l.gone
	if ended == nil || fails() || ended.short && !gone && !ended.ends(time.Now()) {
		return
	}
	l.whole, l.gone = nil, false
	if gone {
		l.lineLocked(0, "The resource is there again", "after", time.Since(ended.since))
		return
	}
	l.lineLocked(0, "Recovered", "reason", ended.reason, "after", time.Since(ended.since))
}

// healedIn logs that requests do not fail any more in some namespaces of a set, or for its names. Report returns the present state of the source.
func (l *stateLog) healedIn(report func() source.Report) {
	defer l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failing) == 0 {
		return
	}
	state := report()
	fails := map[string]bool{ofNames: state.NamesErr != nil}
	for _, n := range state.Namespaces {
		fails[n.Name] = n.Failure.Err != nil
	}
	for namespace, e := range l.failing {
		if fails[namespace] || l.whole != nil && l.whole.short || !e.ends(time.Now()) {
			continue
		}
		delete(l.failing, namespace)
		key := "namespace"
		if namespace == ofNames {
			key = "of"
		}
		l.lineLocked(0, "Recovered", key, namespace, "reason", e.reason, "after", time.Since(e.since))
	}
}

// completed logs the first list of each generation, that the type is gone, that objects are left out of the cache, and that none is left out any
// more. Objects that are left out of an index have no line: their errors come from under the lock of the store. Present returns the present state.
func (l *stateLog) completed(present func() Snapshot) {
	ordinary := l.at(LogOrdinary).Enabled()
	defer l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := present()
	if now.Serving == source.Gone {
		l.vanishedLocked(status.ReasonNotFound, now.Evidence)
	}
	if now.Source.Complete && l.listed != now.Source.Generation+1 {
		l.listed = now.Source.Generation + 1
		if ordinary {
			l.lineLocked(LogOrdinary, "Listed", "objects", now.Source.Objects, "resourceVersion", now.Source.Listed)
		}
	}
	before, leaves := l.objects, now.Source.Rejected.Count > 0
	l.objects = leaves
	switch {
	case leaves && !before:
		l.lineLocked(0, "Objects are left out", "reason", now.LeftOut.Reason, "object", now.LeftOut.Key, "err", now.LeftOut.Err)
	case !leaves && before:
		l.lineLocked(0, "No object is left out any more")
	}
}

// at returns the logger for lines of this verbosity.
func (l *stateLog) at(verbosity int) klog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.atLocked(verbosity)
}

func (l *stateLog) atLocked(verbosity int) klog.Logger {
	logger := l.logger
	if !l.begun {
		logger = klog.Background()
	}
	return logger.V(verbosity)
}

// lineLocked queues a line, unless the limit is reached, and reports whether it did. The caller holds mu.
func (l *stateLog) lineLocked(verbosity int, text string, keysAndValues ...any) bool {
	leftOut, admitted := l.admitLocked()
	if admitted {
		logger := l.atLocked(verbosity)
		l.queue = append(l.queue, func() {
			logger.WithValues("resource", discovery.RefOf(l.gvr)).Info(text, append(keysAndValues, leftOut...)...)
		})
	}
	return admitted
}

// admitLocked reports whether a line may be written, and returns its values about omitted lines. The caller holds mu.
func (l *stateLog) admitLocked() (leftOut []any, admitted bool) {
	now := time.Now()
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

// write writes the lines of queue, unless another goroutine does.
func (l *stateLog) write() {
	for line := l.next(false); line != nil; line = l.next(true) {
		line()
	}
}

// next removes the next line from queue, and returns the function that writes it; nil if there is none, or another goroutine writes them. Writes says
// that the caller has written the line before.
func (l *stateLog) next(writes bool) (line func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writing && !writes {
		return nil
	}
	if l.writing = len(l.queue) > 0; !l.writing {
		l.queue = nil
		return nil
	}
	line, l.queue = l.queue[0], l.queue[1:]
	return line
}

// LogPanic logs a recovered panic of an event handler.
func (s *State) LogPanic(handler, lease, key, text string, stack []byte) {
	s.Log(0, "Event handler has panicked, continuing with its next event",
		"handler", handler, "lease", lease, "object", key, "panic", text, "stack", string(stack))
}

// Log writes a line about the informer to its logger.
func (s *State) Log(verbosity int, text string, keysAndValues ...any) {
	l := &s.log
	if !l.at(verbosity).Enabled() {
		return
	}
	defer l.write()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lineLocked(verbosity, text, keysAndValues...)
}

// LogError logs an error of a list or watch that will be retried. It is the default watch error
// handler of an informer.
func (s *State) LogError(ctx context.Context, err error) {
	namespace := namespaceOf(err, "")
	switch _, ofTheNames := errors.AsType[*source.NamesError](err); {
	case ofTheNames:
		namespace = ofNames
	case s.fails():
		namespace = ""
	case namespace == "" && isExpired(err):
		s.log.closed(ctx, err)
		return
	}
	s.log.retried(ctx, namespace, Classify(err), err)
	s.log.healed(s.fails) // requests in other namespaces may have ended the failure before it had a line
}

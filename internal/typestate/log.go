package typestate

import (
	"context"
	"errors"
	"io"
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
	failing status.Reason   // the last reported reason; empty: nothing fails
	written []status.Reason // the reasons with a line since the failure began
	since   time.Time       // the start of the failure
	gone    bool            // a line has reported that the type is gone
	listed  int             // the generation of the last "Listed" line, plus one
	objects bool            // a line has reported that objects are left out of the cache
	minute  time.Time
	lines   int // the number of lines in that minute
	leftOut int // the number of omitted lines since the last line
}

// begin is called when the informer is started.
func (l *stateLog) begin(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logger, l.begun = klog.FromContext(ctx), true
}

// isNew records the reason of a failure, and reports whether it has no line yet. Reasons that
// alternate have one line each.
func (l *stateLog) isNew(reason status.Reason) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing == "" {
		l.since = time.Now()
	}
	l.failing = reason
	if slices.Contains(l.written, reason) {
		return false
	}
	l.written = append(l.written, reason)
	return true
}

// retried logs a failed list or watch that will be retried.
func (l *stateLog) retried(ctx context.Context, reason status.Reason, err error) {
	logger := klog.FromContext(ctx).WithValues("resource", discovery.RefOf(l.gvr))
	if !l.isNew(reason) {
		logger.V(LogRetries).Info("Failed to list or watch, retrying", "reason", reason, "err", err)
		return
	}
	// Not utilruntime.HandleError: it delays callers for all resources to limit the number of
	// lines, which this package limits itself.
	if leftOut, write := l.admit(); write {
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
	if l.isNew(reason) {
		l.write(0, text, "reason", reason, "err", err)
	}
}

// vanished logs that there is evidence that the type is gone.
func (l *stateLog) vanished(reason status.Reason, evidence discovery.Evidence) {
	l.mu.Lock()
	known := l.gone
	l.gone = true
	l.mu.Unlock()
	l.isNew(reason)
	if !known {
		l.write(0, "The resource is gone, waiting for it to come back", "evidence", evidence.Kind, "crdUID", evidence.CRDUID)
	}
}

// healed logs that a failure has ended, if it has.
func (l *stateLog) healed(before, now *Snapshot) {
	_, _, failed := before.Failing()
	if _, _, failing := now.Failing(); !failed || failing {
		return
	}
	l.mu.Lock()
	reason, gone, lasted := l.failing, l.gone, time.Since(l.since)
	l.failing, l.written, l.gone = "", nil, false
	l.mu.Unlock()
	switch {
	case gone:
		l.write(0, "The resource is there again", "after", lasted)
	case reason != "":
		l.write(0, "Recovered", "reason", reason, "after", lasted)
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

// write writes a line, unless the limit is reached.
func (l *stateLog) write(verbosity int, text string, keysAndValues ...any) {
	l.mu.Lock()
	logger := l.logger
	if !l.begun {
		logger = klog.Background()
	}
	l.mu.Unlock()
	logger = logger.V(verbosity)
	if !logger.Enabled() {
		return
	}
	if leftOut, write := l.admit(); write {
		logger.WithValues("resource", discovery.RefOf(l.gvr)).Info(text, append(keysAndValues, leftOut...)...)
	}
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
	if isExpired(err) || errors.Is(err, io.EOF) {
		s.log.closed(ctx, err)
		return
	}
	s.log.retried(ctx, Classify(err), err)
}

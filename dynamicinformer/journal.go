package dynamicinformer

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
)

// linesEachMinute is how many lines one informer writes at most in a minute, whatever its
// type does: the next one then says how many were left out.
const linesEachMinute = 10

// How much is to be logged for a line to be written.
const (
	logOrdinary = 2 // it begins, has listed, ends
	logRetries  = 4 // each try that has failed, each watch that was closed
)

// journal writes what becomes of one informer to the log: a line for each change of state,
// and none for each retry. It is written without a lock.
type journal struct {
	gvr schema.GroupVersionResource

	mu      sync.Mutex
	logger  klog.Logger // of the context that the informer was started with
	begun   bool
	wrong   Reason   // what is; empty: nothing
	told    []Reason // that lines have told of, since nothing was
	since   time.Time
	gone    bool
	listed  int // the generation of the last list, plus one
	minute  time.Time
	lines   int // in that minute
	leftOut int // since the last one
}

// begin is called when the informer is started.
func (j *journal) begin(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.logger, j.begun = klog.FromContext(ctx), true
}

// news notes that reason is what is wrong, and reports whether that is new. A reason is
// followed by another, or by healed.
func (j *journal) news(reason Reason) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.wrong == "" {
		j.since = time.Now()
	}
	j.wrong = reason
	if slices.Contains(j.told, reason) { // those that take turns are told of once
		return false
	}
	j.told = append(j.told, reason)
	return true
}

// failed tells of a list or watch that is going to be tried again.
func (j *journal) failed(ctx context.Context, reason Reason, err error) {
	logger := klog.FromContext(ctx).WithValues("resource", discovery.RefOf(j.gvr))
	if !j.news(reason) {
		logger.V(logRetries).Info("Failed to list or watch, retrying", "reason", reason, "err", err)
		return
	}
	// Not utilruntime.HandleError: it makes callers of all resources wait for one
	// another, to keep a storm of lines down that is not made here.
	if leftOut, write := j.admit(); write {
		logger.Error(err, "Failed to list or watch, retrying", append([]any{"reason", reason}, leftOut...)...)
	}
}

// closed tells of the ordinary end of a watch.
func (j *journal) closed(ctx context.Context, err error) {
	klog.FromContext(ctx).V(logRetries).Info("Watch closed", "resource", discovery.RefOf(j.gvr), "err", err)
}

// waiting tells that discovery has said no.
func (j *journal) waiting(reason Reason, err error) {
	if j.news(reason) {
		j.write(0, "Waiting for the resource before listing it", "reason", reason, "err", err)
	}
}

// vanished tells that the type is gone for certain.
func (j *journal) vanished(reason Reason, evidence discovery.Evidence) {
	j.mu.Lock()
	known := j.gone
	j.gone = true
	j.mu.Unlock()
	j.news(reason)
	if !known {
		j.write(0, "The resource is gone, waiting for it to come back", "evidence", evidence.Kind, "crdUID", evidence.CRDUID)
	}
}

// healed tells that nothing is wrong any more.
func (j *journal) healed() {
	j.mu.Lock()
	wrong, gone, lasted := j.wrong, j.gone, time.Since(j.since)
	j.wrong, j.told, j.gone = "", nil, false
	j.mu.Unlock()
	switch {
	case gone:
		j.write(0, "The resource is there again", "after", lasted)
	case wrong != "":
		j.write(0, "Recovered", "reason", wrong, "after", lasted)
	}
}

// completed tells of the first list of each type that has had the name.
func (j *journal) completed(state source.State) {
	if !state.Complete {
		return
	}
	j.mu.Lock()
	known := j.listed == state.Generation+1
	j.listed = state.Generation + 1
	j.mu.Unlock()
	if !known {
		j.write(logOrdinary, "Listed", "objects", state.Objects, "resourceVersion", state.Listed)
	}
}

// write writes a line, unless there were too many.
func (j *journal) write(verbosity int, text string, keysAndValues ...any) {
	j.mu.Lock()
	logger := j.logger
	if !j.begun {
		logger = klog.Background()
	}
	j.mu.Unlock()
	logger = logger.V(verbosity)
	if !logger.Enabled() {
		return
	}
	if leftOut, write := j.admit(); write {
		logger.WithValues("resource", discovery.RefOf(j.gvr)).Info(text, append(keysAndValues, leftOut...)...)
	}
}

// admit reports whether a line may be written, and what it says of those that were not.
func (j *journal) admit() (leftOut []any, write bool) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.Sub(j.minute) >= time.Minute {
		j.minute, j.lines = now, 0
	}
	if j.lines == linesEachMinute {
		j.leftOut++
		return nil, false
	}
	j.lines++
	if j.leftOut > 0 {
		leftOut = []any{"linesLeftOut", j.leftOut}
		j.leftOut = 0
	}
	return leftOut, true
}

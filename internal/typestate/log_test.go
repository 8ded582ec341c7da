package typestate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/internal/source"
)

// meanwhile is a context that calls a function when a logger is read from it.
type meanwhile struct {
	context.Context //nolint:containedctx // it is a context
	do              func()
}

func (m meanwhile) Value(key any) any {
	m.do()
	return m.Context.Value(key)
}

// Requests in several namespaces of a set are concurrent: one may succeed before the failure of all has its line.
func TestLog_FailureThatEndsBeforeItsLineHasRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx := klog.NewContext(t.Context(), logger)
		s := newShips(t)
		yes(served("a"))(s)
		s.Begin(ctx)
		err := &source.NamespaceError{Namespace: "port", Err: errors.New("down")}
		for range 2 {
			s.Failed(source.VerbList, err)
			s.LogError(meanwhile{ctx, func() { s.Succeeded(source.VerbWatch) }}, err)
			time.Sleep(time.Hour)
		}
		var lines []string
		for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
			lines = append(lines, entry.Message)
		}
		const failed, recovered = "Failed to list or watch, retrying", "Recovered"
		if diff := cmp.Diff([]string{failed, recovered, failed, recovered}, lines); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

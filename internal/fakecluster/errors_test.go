package fakecluster_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestLogErrorsAtOnce_NoDelayInABubble(t *testing.T) {
	before := utilruntime.ErrorHandlers
	defer func() { utilruntime.ErrorHandlers = before }()
	fakecluster.LogErrorsAtOnce()

	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	handle := func() { utilruntime.HandleErrorWithContext(ctx, errors.New("refused"), "List failed") }
	handle()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		handle()
		if took := time.Since(begun); took != 0 {
			t.Errorf("HandleError took %v of the time of the bubble", took)
		}
	})
	if logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); strings.Count(logged, "List failed") != 2 {
		t.Errorf("2 errors should have been logged, not\n%s", logged)
	}
}

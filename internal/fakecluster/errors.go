package fakecluster

import (
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// LogErrorsAtOnce replaces apimachinery's error handlers by one that logs, for the whole process.
// By default, utilruntime.HandleError also sleeps until a millisecond after the error before, and
// client-go's reflectors call it. The clock of a bubble begins in the year 2000: after an error
// outside of bubbles, or late in another one, that sleep lasts years. Timers fire all the while, so
// the test does not end. TestMain calls it where informers run in bubbles.
func LogErrorsAtOnce() {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(ctx context.Context, err error, msg string, keysAndValues ...any) {
			klog.FromContext(ctx).Error(err, msg, keysAndValues...)
		},
	}
}

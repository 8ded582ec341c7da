package browser_test

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // the zero logger is silent
	fakecluster.LogErrorsAtOnce()
	goleak.VerifyTestMain(m)
}

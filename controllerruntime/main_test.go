package controllerruntime

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // the zero logger is silent
	goleak.VerifyTestMain(m)
}

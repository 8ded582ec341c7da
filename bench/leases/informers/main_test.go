package informers

import (
	"testing"

	"go.uber.org/goleak"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

func TestMain(m *testing.M) {
	// One of them sleeps until a millisecond after the last error, which is decades if that
	// was outside the bubble; the other logs what these tests bring about.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

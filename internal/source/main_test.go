package source_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMain(m *testing.M) {
	fakecluster.LogErrorsAtOnce()
	goleak.VerifyTestMain(m)
}

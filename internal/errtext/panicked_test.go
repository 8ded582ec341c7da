package errtext_test

import (
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

func TestPanicked_NamesTheFunctionAndTheLine(t *testing.T) {
	var none map[string]int
	for name, test := range map[string]struct {
		function func()
		want     string
	}{
		"panic":         {func() { panic("x") }, "panic: x (in github.com/gvrkit/gvrkit/internal/errtext_test.TestPanicked_NamesTheFunctionAndTheLine.func1, panicked_test.go:"},
		"runtime error": {func() { none["a"] = 1 }, "panic: assignment to entry in nil map (in github.com/gvrkit/gvrkit/internal/errtext_test.TestPanicked_NamesTheFunctionAndTheLine.func2, panicked_test.go:"},
	} {
		if got := recovered(test.function); got == nil || !strings.HasPrefix(got.Error(), test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPanicked_WithoutAPanicHasOnlyTheValue(t *testing.T) {
	if got := errtext.Panicked("x"); got.Error() != "panic: x" {
		t.Error(got)
	}
}

func recovered(function func()) (err error) {
	defer func() { err = errtext.Panicked(recover()) }()
	function()
	return nil
}

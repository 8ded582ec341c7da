package main

import (
	"strings"
	"testing"
)

func TestFirstFailure_OfEachKind(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   string
		failed bool
	}{
		"a test":           {"=== RUN   TestA\n--- PASS: TestA (0.01s)\n=== RUN   TestB\n--- FAIL: TestB (0.01s)\n", "TestB", true},
		"a subtest":        {"=== RUN   TestA\n=== RUN   TestA/b\n    --- FAIL: TestA/b (0.01s)\n--- FAIL: TestA (0.01s)\n", "TestA/b", true},
		"a panic":          {"=== RUN   TestA\npanic: x\n\ngoroutine 1\n", "TestA", false},
		"after all passed": {"=== RUN   TestA\n--- PASS: TestA (0.01s)\nPASS\ngoleak: found a goroutine", "the end of the package", false},
		"before all":       {"panic: x\n", "the package", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, failed := firstFailure(strings.NewReader(test.output), func() {}); got != test.want || failed != test.failed {
				t.Errorf("got %q, %v, want %q, %v", got, failed, test.want, test.failed)
			}
		})
	}
}

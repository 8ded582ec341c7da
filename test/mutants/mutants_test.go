package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a mutant replaces is in its file, once.
func TestMutants_FitTheSource(t *testing.T) {
	for _, m := range mutants {
		source, err := os.ReadFile(filepath.Join("../..", m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: what it replaces is %d times in %s: %q", m.name, n, m.file, m.old)
		}
	}
}

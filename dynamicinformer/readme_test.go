package dynamicinformer_test

import (
	"os"
	"strings"
	"testing"
)

// The README's program is the example's, to the letter: what it shows compiles.
func TestReadme_ProgramIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	program, _, found := strings.Cut(rest, "```\n")
	if !found || !strings.Contains(string(example), "\n"+program) {
		t.Errorf("example_test.go lacks the README's program:\n%s", program)
	}
	if lines := strings.Count(program, "\n"); lines > 32 {
		t.Errorf("the README's program has %d lines", lines)
	}
}

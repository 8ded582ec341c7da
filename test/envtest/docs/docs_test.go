// Package docs_test compiles the Go snippets of the README and of docs/, and runs the follower of docs/scale.md
// and the controller of docs/testing.md.
package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the directory of the repository.
const root = "../../.."

// Each Go snippet of the README and of docs/ must be in code that compiles, with the same text except
// for indentation.
func TestDocs_SnippetsCompile(t *testing.T) {
	code := "\n"
	for _, path := range []string{"snippets_test.go", root + "/dynamicinformer/example_test.go"} {
		code += trimmed(read(t, path))
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, root+"/README.md") {
		for _, snippet := range snippets(read(t, page)) {
			if !strings.Contains(code, "\n"+trimmed(snippet)) {
				t.Errorf("%s has a snippet that is not in snippets_test.go:\n%s", filepath.Base(page), snippet)
			}
		}
	}
}

func TestReadme_ProgramIsShort(t *testing.T) {
	program := snippets(read(t, root+"/README.md"))[0]
	if !strings.HasPrefix(program, "func ") {
		t.Errorf("the first snippet of the README is not its program:\n%s", program)
	}
	if lines := strings.Count(program, "\n"); lines > 32 {
		t.Errorf("the README's program has %d lines", lines)
	}
}

// snippets returns the Go code in page.
func snippets(page string) []string {
	var found []string
	for {
		_, rest, more := strings.Cut(page, "\n```go\n")
		if !more {
			return found
		}
		var snippet string
		snippet, page, _ = strings.Cut(rest, "```\n")
		found = append(found, snippet)
	}
}

// trimmed returns text without the indentation of its lines.
func trimmed(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		lines.WriteString(strings.TrimLeft(line, " \t"))
	}
	return lines.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

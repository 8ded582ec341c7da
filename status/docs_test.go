package status_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A state or reason that is added gets a row in docs/status.md, with what to do.
func TestDocs_HaveEachStateAndReason(t *testing.T) {
	docs, err := os.ReadFile("../docs/status.md")
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile(`(?m)^\t(?:Reason|State)\w+ (?:Reason|State) = "(\w+)"$`)
	for _, path := range []string{"reason.go", "state.go"} {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := constant.FindAllStringSubmatch(string(code), -1)
		if len(found) < 6 {
			t.Errorf("%s has %d constants", path, len(found))
		}
		for _, match := range found {
			if !strings.Contains(string(docs), "\n| `"+match[1]+"` | ") {
				t.Errorf("docs/status.md has no row for %s", match[1])
			}
		}
	}
}

package discovery

import (
	"strings"
	"testing"
)

// A name whose length differs by too much is not compared: a comparison with a long name allocates.
func TestSuggestions_LengthsAreComparedFirst(t *testing.T) {
	long := strings.Repeat("x", 100)
	if got := testing.AllocsPerRun(100, func() { distanceOf("widgets", long, 2) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
	for name, want := range map[string]int{long: 3, "": 3, "widget": 1, "Widgetss": 1, "gadgets": 2, "wodgots": 2, "gudgits": 3} {
		if got := distanceOf("widgets", name, 2); got != want && (want < 3 || got < 3) {
			t.Errorf("the distance to %q is %d, want %d", name, got, want)
		}
	}
}

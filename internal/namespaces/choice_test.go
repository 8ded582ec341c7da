package namespaces_test

import (
	"slices"
	"testing"

	"github.com/gvrkit/gvrkit/internal/namespaces"
)

func TestChoice_OrderAndRepetitionDoNotCount(t *testing.T) {
	a, b := namespaces.Named("b", "a", "b"), namespaces.Named("a", "b")
	if a.String() != b.String() || !slices.Equal(a.Names(), []string{"a", "b"}) {
		t.Errorf("%s and %s", a, b)
	}
	if c := namespaces.Named("a"); c.String() == a.String() {
		t.Errorf("%s and %s are equal", c, a)
	}
	if got := namespaces.Named(); got.String() == (*namespaces.Choice)(nil).String() {
		t.Errorf("an empty set is %s", got)
	}
}

func TestChoice_ChecksNames(t *testing.T) {
	for _, name := range []string{"", "A", "a/b", ".."} {
		if got, err := namespaces.Named("a", name).Check(); err == nil || got != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, c := range []*namespaces.Choice{nil, namespaces.Named(), namespaces.Named("a", "b-1")} {
		if name, err := c.Check(); err != nil {
			t.Errorf("%s: %s: %v", c, name, err)
		}
	}
}

func TestChoice_NilHasNoSet(t *testing.T) {
	if (*namespaces.Choice)(nil).Set(nil) != nil {
		t.Error("there is a set")
	}
	if names, _ := namespaces.Named("b", "a").Set(nil).Current(); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("names = %v", names)
	}
}

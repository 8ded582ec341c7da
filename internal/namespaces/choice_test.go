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

func TestChoice_EqualChoicesHaveEqualTexts(t *testing.T) {
	everywhere := (*namespaces.Choice)(nil).Allowed()
	for _, a := range []*namespaces.Choice{
		nil, namespaces.Named(), namespaces.Named("a", "b"), namespaces.Named("b", "a"), namespaces.Named("a"), namespaces.Labeled(""), namespaces.Labeled("x"),
		everywhere, everywhere.Allowed(), namespaces.Labeled("").Allowed(), namespaces.Labeled("x").Allowed(), namespaces.Named("a").Allowed(),
	} {
		for _, b := range []*namespaces.Choice{nil, namespaces.Named(), namespaces.Named("a", "b"), namespaces.Labeled("x"), everywhere, namespaces.Labeled("").Allowed(), namespaces.Named("a").Allowed()} {
			if got, want := a.Equal(b), a.String() == b.String(); got != want || b.Equal(a) != want {
				t.Errorf("%s and %s: %v, want %v", a, b, got, want)
			}
		}
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

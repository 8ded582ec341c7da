package discovery_test

import (
	"errors"
	"testing"

	"github.com/gvrkit/gvrkit/discovery"
)

func TestSelector_Validate(t *testing.T) {
	for field, s := range map[string]discovery.Selector{
		"":           {Groups: []string{"", "example.com"}, Categories: []string{"all"}, Verbs: []string{"list"}, Scope: discovery.ClusterScoped, Backing: discovery.BackingCRD, Versions: discovery.EveryVersion()},
		"Groups":     {Groups: []string{"example.com", "Example com"}},
		"Categories": {Categories: []string{"all", ""}},
		"Verbs":      {Verbs: []string{""}},
		"Scope":      {Scope: "Galaxy"},
		"Backing":    {Backing: "Etcd"},
	} {
		err := s.Validate()
		if field == "" {
			if err != nil {
				t.Errorf("valid: %v", err)
			}
			continue
		}
		bad, is := errors.AsType[*discovery.SelectorError](err)
		if !is || bad.Field != field || !errors.Is(err, discovery.ErrInvalidSelector) {
			t.Errorf("wrong %s: %v", field, err)
		}
	}
}

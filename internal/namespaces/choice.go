// Package namespaces chooses the namespaces of an informer: [Choice] is the value of the options. It does not know
// informers.
package namespaces

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Choice is a choice of namespaces. It does not change. A nil Choice chooses no set.
type Choice struct {
	names []string // sorted, each once
}

// Named returns the choice of names.
func Named(names ...string) *Choice {
	names = slices.Clone(names)
	slices.Sort(names)
	return &Choice{names: slices.Compact(names)}
}

// String returns the choice as a value of its option. Equal choices have equal texts.
func (c *Choice) String() string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%q", c.names)
}

// Check returns an error, with the name that it is about, if a name is not that of a namespace.
func (c *Choice) Check() (name string, err error) {
	if c == nil {
		return "", nil
	}
	for _, name := range c.names {
		if wrong := validation.IsDNS1123Label(name); wrong != nil {
			return name, errors.New(strings.Join(wrong, ", "))
		}
	}
	return "", nil
}

// Names returns the names. They are read-only.
func (c *Choice) Names() []string { return c.names }

// Set returns a set for a source with the chosen names; nil if there is no choice.
func (c *Choice) Set() *source.Namespaces {
	if c == nil {
		return nil
	}
	return source.NewNamespaces(c.names...)
}

// Package namespaces chooses the namespaces of an informer: [Choice] is the value of the options. It follows the Namespace
// objects that a selector selects. It does not know informers.
package namespaces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Choice is a choice of namespaces. It does not change. A nil Choice chooses no set.
type Choice struct {
	names    []string // sorted, each once
	selector *string  // of the labels of Namespace objects; nil: names

	allowed    bool // only those that are not forbidden
	everywhere bool // all, if they are not forbidden
}

// Allowed returns the choice of those namespaces of c that are not forbidden or, if c is nil, of all or those that are
// not forbidden.
func (c *Choice) Allowed() *Choice {
	if c == nil {
		all := ""
		return &Choice{selector: &all, allowed: true, everywhere: true}
	}
	allowed := *c
	allowed.allowed = true
	return &allowed
}

// After returns c, limited to the namespaces that are not forbidden if the earlier choice is.
func (c *Choice) After(earlier *Choice) *Choice {
	if earlier == nil || !earlier.allowed {
		return c
	}
	return c.Allowed()
}

// Named returns the choice of names.
func Named(names ...string) *Choice {
	names = slices.Clone(names)
	slices.Sort(names)
	return &Choice{names: slices.Compact(names)}
}

// Labeled returns the choice of the namespaces whose labels selector selects.
func Labeled(selector string) *Choice { return &Choice{selector: &selector} }

// Option returns the name of the choice's option.
func (c *Choice) Option() string {
	switch {
	case c == nil:
	case c.everywhere:
		return "WithAllowedNamespaces"
	case c.selector != nil:
		return "WithNamespaceSelector"
	}
	return "WithNamespaces"
}

// Equal reports whether c and other choose the same namespaces in the same way.
func (c *Choice) Equal(other *Choice) bool {
	if c == nil || other == nil {
		return c == other
	}
	return slices.Equal(c.names, other.names) && (c.selector == nil) == (other.selector == nil) &&
		(c.selector == nil || *c.selector == *other.selector) && c.allowed == other.allowed && c.everywhere == other.everywhere
}

// String returns the choice as a value of its option.
func (c *Choice) String() string {
	text := ""
	switch {
	case c == nil:
		return "none"
	case c.everywhere:
		return "allowed"
	case c.selector != nil:
		text = fmt.Sprintf("selected by %q", *c.selector)
	default:
		text = fmt.Sprintf("%q", c.names)
	}
	if c.allowed {
		text += " and allowed"
	}
	return text
}

// Check returns an error, with the value that it is about, if a name is not that of a namespace, or the selector can't
// be parsed.
func (c *Choice) Check() (value string, err error) {
	if c == nil {
		return "", nil
	}
	if c.selector != nil {
		_, err := labels.Parse(*c.selector)
		return *c.selector, err
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

// Set returns a set for a source with the chosen names; nil if there is no choice. A source with the set of a selector
// lists and watches Namespace objects with client.
func (c *Choice) Set(client source.Client) *source.Namespaces {
	if c == nil {
		return nil
	}
	set := source.NewNamespaces(c.names...)
	if c.selector != nil {
		set = source.NewFollowedNamespaces(func(ctx context.Context, set *source.Namespaces, result func(verb string, err error)) {
			follow(ctx, client, *c.selector, set, result)
		})
	}
	if c.allowed {
		set.Allowed(c.everywhere)
	}
	return set
}

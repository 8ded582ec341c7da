package discovery

import (
	"errors"
	"fmt"
	"slices"
)

// ErrInvalidSelector means that a selector says something that has no meaning. Type:
// [*SelectorError].
var ErrInvalidSelector = errors.New("invalid selector")

// SelectorError says what is wrong with a [Selector].
type SelectorError struct {
	// Field is the name of the field, and Value what it may not be, or have.
	Field string
	Value string
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("invalid selector: %s can't be %q", e.Field, e.Value)
}

// Is reports whether target is ErrInvalidSelector.
func (e *SelectorError) Is(target error) bool { return target == ErrInvalidSelector }

// Validate returns a [*SelectorError] if s says something that has no meaning, such as a
// Scope that there is not, and nil otherwise. That s selects nothing is no error.
func (s Selector) Validate() error {
	for _, group := range s.Groups {
		if checkParts(Ref{Resource: "any", Group: group}, false) != nil {
			return &SelectorError{Field: "Groups", Value: group}
		}
	}
	switch {
	case slices.Contains(s.Categories, ""):
		return &SelectorError{Field: "Categories"}
	case slices.Contains(s.Verbs, ""):
		return &SelectorError{Field: "Verbs"}
	case !slices.Contains([]Scope{AnyScope, NamespaceScoped, ClusterScoped}, s.Scope):
		return &SelectorError{Field: "Scope", Value: string(s.Scope)}
	case !slices.Contains([]Backing{BackingUnknown, BackingCRD, BackingAggregated, BackingBuiltIn}, s.Backing):
		return &SelectorError{Field: "Backing", Value: string(s.Backing)}
	}
	return nil
}

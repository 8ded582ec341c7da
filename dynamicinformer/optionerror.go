package dynamicinformer

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/source"
)

// ErrInvalidOption is matched by every [*OptionError].
var ErrInvalidOption = errors.New("invalid option")

// OptionError says that an option has a value that no server accepts. It unwraps to what is
// wrong with it.
type OptionError struct {
	// Option is the name of the option, and Value what it was given.
	Option, Value string
	Err           error
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s(%q): %v", e.Option, errtext.Cut(e.Value), e.Err)
}

// Is reports whether target is ErrInvalidOption.
func (e *OptionError) Is(target error) bool { return target == ErrInvalidOption }

// Unwrap returns what is wrong with the value.
func (e *OptionError) Unwrap() error { return e.Err }

// check returns an [*OptionError] if an option has a value that no server accepts. What a
// tweak does is not known here.
func (s *settings) check() error {
	if s.namespace != metav1.NamespaceAll {
		if wrong := validation.IsDNS1123Label(s.namespace); wrong != nil {
			return &OptionError{Option: "WithNamespace", Value: s.namespace, Err: errors.New(wrong[0])}
		}
	}
	if _, err := labels.Parse(s.labels); err != nil {
		return &OptionError{Option: "WithLabelSelector", Value: s.labels, Err: err}
	}
	if _, err := fields.ParseSelector(s.fields); err != nil {
		return &OptionError{Option: "WithFieldSelector", Value: s.fields, Err: err}
	}
	return nil
}

// invalid returns why no request can be made with s, or nil. It is for factories of client-go's
// form, whose constructors return no error: they refuse only what client-go's client refuses,
// since fakes accept more than servers do.
func (s *settings) invalid() error {
	if s.namespace == metav1.NamespaceAll {
		return nil
	}
	if wrong := content.IsPathSegmentName(s.namespace); wrong != nil {
		return fmt.Errorf("%w: %w", source.ErrInvalid,
			&OptionError{Option: "WithNamespace", Value: s.namespace, Err: errors.New(strings.Join(wrong, ", "))})
	}
	return nil
}

// orNil returns client, and nil for one that holds a nil pointer.
func orNil(client dynamic.Interface) dynamic.Interface {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return client
}

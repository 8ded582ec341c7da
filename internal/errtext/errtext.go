// Package errtext returns errors that are safe to store, log and display: their texts are
// short and contain no response bodies. The errors of apimachinery and client-go contain
// whole bodies: if the kind is missing in a response, the data of a Secret would be
// logged.
//
// The package does not know requests, nor the meaning of an error.
package errtext

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// Limit is the maximum length of a text in bytes.
const Limit = 1 << 10

// hidden replaces a body.
const hidden = "a body that is not shown"

// The words of apimachinery before a body or an object.
const (
	missingKind      = "Object 'Kind' is missing in '"
	missingVersion   = "Object 'apiVersion' is missing in '"
	unexpectedObject = "unexpected object: "
)

// Cut returns text. If text is longer than Limit, it returns the beginning and a note with the
// length. It does not cut within a character.
func Cut(text string) string {
	if len(text) <= Limit {
		return text
	}
	note := fmt.Sprintf("… (%d bytes)", len(text))
	end := Limit - len(note)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + note
}

// Text returns text as Cut does, without bodies that apimachinery has added.
func Text(text string) string {
	for words, end := range map[string]string{missingKind: "'", missingVersion: "'", unexpectedObject: ""} { // a text may have several
		if before, _, found := strings.Cut(text, words); found {
			text = before + words + hidden + end
		}
	}
	return Cut(text)
}

// Panicked returns an error for the value of a recovered panic, with the function and the line that have panicked.
// It must be called by the deferred function that has recovered the panic.
func Panicked(value any) error {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicked := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !inRuntime {
			return fmt.Errorf("panic: %v (in %s, %s:%d)", value, frame.Function, filepath.Base(frame.File), frame.Line)
		}
		panicked = panicked || inRuntime
		if !more {
			return fmt.Errorf("panic: %v", value)
		}
	}
}

// Clean returns err if its text is safe. Otherwise it returns an error with a safe text. For
// errors of Kubernetes, that error has the same type and no body. For other errors, it wraps
// err. errors.Is, errors.As and the functions of apimachinery return the same for both errors,
// except functions such as runtime.IsMissingKind, which do not look at wrapped errors.
func Clean(err error) error {
	switch e := err.(type) { //nolint:errorlint // what wraps one of these has a text of its own
	case nil:
		return nil
	case *apierrors.StatusError:
		return cleanStatus(e)
	case *apierrors.UnexpectedObjectError:
		return &apierrors.UnexpectedObjectError{Object: kindOf(e.Object)}
	case *cleaned:
		return e
	}
	switch {
	case apiruntime.IsMissingKind(err):
		return apiruntime.NewMissingKindErr(hidden)
	case apiruntime.IsMissingVersion(err):
		return apiruntime.NewMissingVersionErr(hidden)
	}
	text := err.Error()
	bodies := bodiesOf(err)
	slices.SortFunc(bodies, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, body := range bodies {
		text = hide(text, body)
	}
	if text = Text(text); text == err.Error() {
		return err
	}
	return &cleaned{text: text, err: err}
}

// cleaned is an error with another text.
type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *cleaned) Unwrap() error { return e.err }

// As sets target to a status without bodies, if the error has one.
func (e *cleaned) As(target any) bool {
	status, is := errors.AsType[*apierrors.StatusError](e.err)
	if !is {
		return false
	}
	switch target := target.(type) {
	case **apierrors.StatusError:
		*target = cleanStatus(status)
	case *apierrors.APIStatus:
		*target = cleanStatus(status)
	default:
		return false
	}
	return true
}

// cleanStatus returns err if its text is safe, or a copy with a safe text.
func cleanStatus(err *apierrors.StatusError) *apierrors.StatusError {
	message := err.ErrStatus.Message
	for _, body := range bodiesIn(&err.ErrStatus) {
		message = hide(message, body)
	}
	message = Text(message)
	changed := message != err.ErrStatus.Message
	status := *err.ErrStatus.DeepCopy()
	status.Message = message
	if status.Details != nil {
		for i := range status.Details.Causes {
			cause := &status.Details.Causes[i]
			text := Text(cause.Message)
			if isBody(cause) {
				text = hidden
			}
			changed = changed || text != cause.Message
			cause.Message = text
		}
	}
	if !changed {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// bodiesOf returns the bodies of all statuses that err wraps.
func bodiesOf(err error) (bodies []string) {
	switch e := err.(type) { //nolint:errorlint // it visits each one
	case *apierrors.StatusError:
		return bodiesIn(&e.ErrStatus)
	case interface{ Unwrap() error }:
		return bodiesOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			bodies = append(bodies, bodiesOf(one)...)
		}
	}
	return bodies
}

// bodiesIn returns the bodies that client-go has added to a Status that it has created, for an
// error response that is not a Status.
func bodiesIn(status *metav1.Status) (bodies []string) {
	if status.Details == nil {
		return nil
	}
	for i := range status.Details.Causes {
		if cause := &status.Details.Causes[i]; isBody(cause) {
			bodies = append(bodies, cause.Message)
		}
	}
	return bodies
}

// mayHaveSecret matches a text that may have an object, or a part of one, in JSON or YAML or as Go prints it, or credentials. It also matches pages
// with style sheets.
var mayHaveSecret = regexp.MustCompile(`(?m)\{|^\s*\[|\bmap\[|^[\s-]*["']?[a-z][\w.-]*["']?\s*:\s*$|^[\s-]*["']?(apiVersion|kind|metadata|spec|status|data|stringData|items)["']?\s*:` +
	`|(?i:(authorization|cookie|password|passwd|pwd|secret|token|(api|access|private)[-_ ]?key)["']?\s*[:=]|\bbearer\s+[\w.~+/=-]{16})`)

// MayHaveSecret reports whether text may have an object or credentials.
func MayHaveSecret(text string) bool { return mayHaveSecret.MatchString(text) }

// isBody reports whether cause has a body that may have an object or credentials. A sentence or HTML page of a proxy
// does not have one, and is useful to display. Neither does a sentence of client-go without the body that apimachinery has added.
func isBody(cause *metav1.StatusCause) bool {
	return cause.Type == metav1.CauseTypeUnexpectedServerResponse && MayHaveSecret(Text(cause.Message))
}

// hide returns text without body, in quotes or without quotes.
func hide(text, body string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, strconv.Quote(body), hidden), body, hidden)
}

// kindOf returns an object with only the kind of object.
func kindOf(object apiruntime.Object) apiruntime.Object {
	kind := &unstructured.Unstructured{Object: map[string]any{}}
	if object == nil {
		return kind
	}
	if gvk := object.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		kind.SetAPIVersion(Cut(gvk.GroupVersion().String()))
		kind.SetKind(Cut(gvk.Kind))
	}
	return kind
}

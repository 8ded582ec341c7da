package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// The kinds of errors, for errors.Is. Each kind has a type with the details, for errors.As.
var (
	// ErrNotServed means that the server has responded, and does not serve the resource. Type:
	// [*NotServedError].
	ErrNotServed = errors.New("resource not served")
	// ErrInconclusive means that the server, or a part of it, did not respond. It does not mean
	// that the resource is absent: try again. Type: [*InconclusiveError].
	ErrInconclusive = errors.New("discovery inconclusive")
	// ErrNotEstablished means that the CustomResourceDefinition of the resource exists, and that
	// the server does not serve it yet. Such an error also matches ErrNotServed. Type:
	// [*NotEstablishedError].
	ErrNotEstablished = errors.New("CustomResourceDefinition not established")
	// ErrAmbiguous means that the reference matches resources of several groups. Type:
	// [*AmbiguousError].
	ErrAmbiguous = errors.New("ambiguous resource reference")
	// ErrVerbNotSupported means that the resource is served, but does not support a verb.
	// Type: [*VerbError].
	ErrVerbNotSupported = errors.New("verb not supported")
	// ErrInvalidRef means that the reference is not the name of any possible resource. Type:
	// [*RefError].
	ErrInvalidRef = errors.New("invalid resource reference")
)

// NotServedError is the error for a resource that the server does not serve. It unwraps to
// apimachinery's *meta.NoResourceMatchError, or to its *meta.NoKindMatchError if the question was
// about a kind.
type NotServedError struct {
	// Ref is the resource that was asked for.
	Ref Ref
	// Versions are the versions in which the group serves the resource, the preferred one first.
	// It is empty if there are none, or if they are not known.
	Versions []string
	// GroupServed reports whether the server has the group of the reference.
	GroupServed bool
	kind        bool     // Ref.Resource is a kind
	searched    []string // the versions of the question; only a RESTMapping has more than one
	suggested   *suggestions
}

// Suggestions returns served resources with similar names, the most similar first. The first call
// of Suggestions or Error searches for them; until then, the error keeps the list of served
// resources.
func (e *NotServedError) Suggestions() []Ref { return e.suggested.list() }

func (e *NotServedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: not served by the API server", e.Ref)
	if len(e.Versions) > 0 {
		fmt.Fprintf(&b, " in version %s; it is served in %s", strings.Join(e.searched, " or "), strings.Join(e.Versions, ", "))
	} else if refs := e.Suggestions(); len(refs) > 0 {
		fmt.Fprintf(&b, "; did you mean %s?", strings.Join(refStrings(refs), " or "))
	} else {
		b.WriteString("; is its CustomResourceDefinition installed?")
	}
	return errtext.Cut(b.String())
}

// Is reports whether target is ErrNotServed.
func (e *NotServedError) Is(target error) bool { return target == ErrNotServed }

// Unwrap makes meta.IsNoMatchError hold.
func (e *NotServedError) Unwrap() error {
	return noMatch(e.Ref, e.kind, e.searched)
}

func noMatch(ref Ref, kind bool, searched []string) error {
	if kind {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: ref.Group, Kind: ref.Resource}, SearchedVersions: searched}
	}
	return &meta.NoResourceMatchError{
		PartialResource: schema.GroupVersionResource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource},
	}
}

// InconclusiveError is the error for a question that the server did not answer. It unwraps to the
// cause, so that apierrors.IsForbidden or errors.Is with context.DeadlineExceeded hold for it.
type InconclusiveError struct {
	// Ref is the resource that was asked for.
	Ref Ref
	// Failed are the group versions whose requests failed, sorted. It is empty if the requests
	// for the list of groups failed.
	Failed []schema.GroupVersion
	// Asked is the time of the last request.
	Asked time.Time
	// Again is the time of the next possible request: the server's Retry-After, at most ten minutes
	// later, or the end of a short pause after several failures in a row, which increases to a second.
	// Zero means now. Questions before that time get the same error without a request.
	Again time.Time
	// Err is the cause.
	Err error
}

// inconclusive returns the error for a question about ref that the server did not answer.
func inconclusive(ref Ref, err error, failed ...schema.GroupVersion) *InconclusiveError {
	out := &InconclusiveError{Ref: ref, Failed: failed, Asked: time.Now(), Err: err}
	if asked, known := errors.AsType[*askedError](err); known {
		out.Asked = asked.at
	}
	if paused, is := errors.AsType[*pauseError](err); is {
		out.Asked, out.Again = paused.asked, paused.until
	} else if after, wait := apierrors.SuggestsClientDelay(err); wait {
		out.Again = out.Asked.Add(min(time.Duration(after)*time.Second, maxPause))
	}
	return out
}

func (e *InconclusiveError) Error() string {
	what := "it is served"
	if e.Ref == everyResource {
		what = "there are more resources"
	}
	text := fmt.Sprintf("%s: discovery can't tell whether %s", e.Ref, what)
	if len(e.Failed) > 0 {
		failed := make([]string, len(e.Failed))
		for i, gv := range e.Failed {
			failed[i] = gv.String()
		}
		text += ": could not read the resources of " + strings.Join(failed, ", ")
	}
	return errtext.Cut(fmt.Sprintf("%s: %v%s", text, e.Err, advice(e.Err)))
}

// advice returns the end of an error text that says what to do about err, or "".
func advice(err error) string {
	_, ofCRDs := errors.AsType[*crdListError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return "; check the token or the certificate"
	case apierrors.IsForbidden(err) && ofCRDs:
		return "; allow the user to list " + crdResource.GroupResource().String()
	case apierrors.IsForbidden(err):
		return "; bind the ClusterRole system:discovery to the user"
	}
	return ""
}

// Is reports whether target is ErrInconclusive.
func (e *InconclusiveError) Is(target error) bool { return target == ErrInconclusive }

// Unwrap returns the cause.
func (e *InconclusiveError) Unwrap() error { return e.Err }

// NotEstablishedError is the error for a resource whose CustomResourceDefinition exists and is not
// served, because the server has not accepted it yet. It also matches ErrNotServed.
type NotEstablishedError struct {
	// Ref is the resource that was asked for.
	Ref Ref
	// CRD is the name of the CustomResourceDefinition.
	CRD string
	// Condition is the type of the CRD's condition that has the reason: NamesAccepted or
	// Established. It is empty if the server has set no condition yet.
	Condition string
	// Reason and Message are the condition's. Message has at most 1 KB.
	Reason, Message string

	kind     bool // Ref.Resource is a kind
	searched []string
}

// newNotEstablishedError returns the error with the first condition that is not true.
func newNotEstablishedError(q question, definition *crd) *NotEstablishedError {
	err := &NotEstablishedError{Ref: q.ref, CRD: definition.Metadata.Name, kind: q.form == kind, searched: q.searched()}
	for _, name := range []string{namesAccepted, established} {
		if cond := definition.condition(name); cond != nil && cond.Status != "True" {
			err.Condition, err.Reason, err.Message = cond.Type, cond.Reason, errtext.Cut(cond.Message)
			break
		}
	}
	return err
}

func (e *NotEstablishedError) Error() string {
	text := fmt.Sprintf("%s: the CustomResourceDefinition %s is not established", e.Ref, e.CRD)
	if e.Condition == "" {
		return errtext.Cut(text + " yet: the server has set no condition on it")
	}
	return errtext.Cut(fmt.Sprintf("%s: its condition %s is not true: %s", text, e.Condition, strings.Join(nonEmpty(e.Reason, e.Message), ": ")))
}

// Is reports whether target is ErrNotEstablished or ErrNotServed.
func (e *NotEstablishedError) Is(target error) bool {
	return target == ErrNotEstablished || target == ErrNotServed
}

// Unwrap makes meta.IsNoMatchError hold.
func (e *NotEstablishedError) Unwrap() error { return noMatch(e.Ref, e.kind, e.searched) }

// AmbiguousError is the error for a reference that matches resources of several groups. It unwraps
// to apimachinery's *meta.AmbiguousResourceError.
type AmbiguousError struct {
	// Ref is the reference.
	Ref Ref
	// Candidates are the resources that it matches, each in the preferred version of its group, in
	// the server's order of groups.
	Candidates []Resource
}

func (e *AmbiguousError) Error() string {
	refs := make([]Ref, len(e.Candidates))
	for i, res := range e.Candidates {
		refs[i] = RefOf(res.GVR)
	}
	return errtext.Cut(fmt.Sprintf("%s: served by several groups; say which one: %s", e.Ref, strings.Join(refStrings(refs), " or ")))
}

// Is reports whether target is ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// Unwrap makes meta.IsAmbiguousError hold.
func (e *AmbiguousError) Unwrap() error {
	err := &meta.AmbiguousResourceError{PartialResource: schema.GroupVersionResource{Resource: e.Ref.Resource}}
	for _, res := range e.Candidates {
		err.MatchingResources = append(err.MatchingResources, res.GVR)
		err.MatchingKinds = append(err.MatchingKinds, res.GVK)
	}
	return err
}

// VerbError is the error for a served resource that does not support a verb. It does not depend on
// the permissions of the user.
type VerbError struct {
	GVR schema.GroupVersionResource
	// Missing are the verbs that the resource does not support.
	Missing []string
	// Verbs are the verbs that it supports, sorted.
	Verbs []string
}

func (e *VerbError) Error() string {
	supported := "no verbs"
	if len(e.Verbs) > 0 {
		supported = strings.Join(e.Verbs, ", ")
	}
	return errtext.Cut(fmt.Sprintf("%s: the resource does not support %s; it supports %s",
		RefOf(e.GVR), strings.Join(e.Missing, " and "), supported))
}

// Is reports whether target is ErrVerbNotSupported.
func (e *VerbError) Is(target error) bool { return target == ErrVerbNotSupported }

// RefError is the error for a reference or a GVR that is not the name of any possible resource.
type RefError struct {
	// Ref is the reference.
	Ref string
	// Problem describes the mistake.
	Problem string

	parts bool // Ref was given in parts, such as a GVR
}

func (e *RefError) Error() string {
	ref := errtext.Cut(e.Ref)
	if e.parts {
		return fmt.Sprintf("resource %q: %s", ref, e.Problem)
	}
	return fmt.Sprintf("resource reference %q: %s; want plural, plural.group, plural.version.group or group/version/plural", ref, e.Problem)
}

// Is reports whether target is ErrInvalidRef.
func (e *RefError) Is(target error) bool { return target == ErrInvalidRef }

// missingVerbs returns a *VerbError if res does not support all verbs of want, or nil.
func missingVerbs(res Resource, want []string) error {
	var missing []string
	for _, verb := range want {
		if !res.Supports(verb) {
			missing = append(missing, verb)
		}
	}
	if missing == nil {
		return nil
	}
	return &VerbError{GVR: res.GVR, Missing: missing, Verbs: slices.Sorted(slices.Values(res.Verbs))}
}

// crdListError is the error for a list of the CustomResourceDefinitions that failed.
type crdListError struct{ err error }

func (e *crdListError) Error() string {
	return fmt.Sprintf("the CustomResourceDefinitions can't be listed: %v", e.err)
}

// Unwrap returns the cause.
func (e *crdListError) Unwrap() error { return e.err }

// causesError joins errors in one line. Each text occurs once.
type causesError struct{ errs []error }

func (e *causesError) Error() string {
	var texts []string
	for _, err := range e.errs {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return errtext.Cut(strings.Join(texts, "; "))
}

// Unwrap returns all errors.
func (e *causesError) Unwrap() []error { return e.errs }

// errNilContext is the error for a question with a nil context.
var errNilContext = errors.New("the context is nil")

// nonEmpty returns the texts that are not empty.
func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

func refStrings(refs []Ref) []string {
	out := make([]string, len(refs))
	for i, ref := range refs {
		out[i] = ref.String()
	}
	return out
}

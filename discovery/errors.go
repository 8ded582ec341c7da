package discovery

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of failure, for errors.Is. Each has a type of its own with the
// details, for errors.As.
var (
	// ErrNotServed means that the server was asked and does not serve the resource. Type:
	// [*NotServedError].
	ErrNotServed = errors.New("resource not served")
	// ErrInconclusive means that the server could not be asked, or only in part. It says
	// nothing about the resource; ask again. Type: [*InconclusiveError].
	ErrInconclusive = errors.New("discovery inconclusive")
	// ErrNotEstablished means that there is a CustomResourceDefinition of the resource, and
	// that the server does not serve it, or not yet. Such an error matches ErrNotServed,
	// too. Type: [*NotEstablishedError].
	ErrNotEstablished = errors.New("CustomResourceDefinition not established")
	// ErrAmbiguous means that the reference fits resources of several groups. Type:
	// [*AmbiguousError].
	ErrAmbiguous = errors.New("ambiguous resource reference")
	// ErrVerbNotSupported means that the resource is served, but not for these verbs.
	// Type: [*VerbError].
	ErrVerbNotSupported = errors.New("verb not supported")
	// ErrInvalidRef means that the reference can't name any resource. Type: [*RefError].
	ErrInvalidRef = errors.New("invalid resource reference")
)

// NotServedError says that the server does not serve a resource, and what it
// serves instead. It unwraps to apimachinery's *meta.NoResourceMatchError, or to its
// *meta.NoKindMatchError if a kind was asked for.
type NotServedError struct {
	// Ref is the resource that was asked for.
	Ref Ref
	// Versions are the versions in which the group does serve it, preferred
	// first. Empty if there is none, or if the server did not tell.
	Versions []string
	// GroupServed says whether the server has the group that was asked for at all.
	GroupServed bool
	kind        bool     // Ref.Resource is a kind
	searched    []string // versions; more than one of a RESTMapping only
	suggested   *suggestions
}

// Suggestions returns served resources with similar names, best first. They are looked for
// when this method or Error is called first; until then the error keeps what was served.
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
	return b.String()
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

// InconclusiveError says that the server could not be asked about a resource. It
// unwraps to the cause, so that apierrors.IsForbidden, context.DeadlineExceeded
// and the like are found in it.
type InconclusiveError struct {
	// Ref is the resource that was asked for.
	Ref Ref
	// Failed are the group versions that could not be asked, sorted; empty if
	// the server could not be asked at all.
	Failed []schema.GroupVersion
	// Asked is when the server was last asked.
	Asked time.Time
	// Again is when the server may be asked again: when it has said so, or after a short
	// pause that grows to a second, where asking has failed several times in a row. Zero is
	// at once. Asking earlier gets the same error without a request.
	Again time.Time
	// Err is why.
	Err error
}

// inconclusive returns the error of a question about ref that could not be put.
func inconclusive(ref Ref, err error, failed ...schema.GroupVersion) *InconclusiveError {
	out := &InconclusiveError{Ref: ref, Failed: failed, Asked: time.Now(), Err: err}
	if asked, known := errors.AsType[*askedError](err); known {
		out.Asked = asked.at
	}
	if paused, is := errors.AsType[*pauseError](err); is {
		out.Asked, out.Again = paused.asked, paused.until
	} else if after, wait := apierrors.SuggestsClientDelay(err); wait {
		out.Again = out.Asked.Add(time.Duration(after) * time.Second)
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
	return fmt.Sprintf("%s: %v%s", text, e.Err, advice(e.Err))
}

// advice returns what to do about err, as the end of a text, or "".
func advice(err error) string {
	switch {
	case apierrors.IsUnauthorized(err):
		return "; check the token or the certificate"
	case apierrors.IsForbidden(err):
		return "; bind the ClusterRole system:discovery to the user"
	}
	return ""
}

// Is reports whether target is ErrInconclusive.
func (e *InconclusiveError) Is(target error) bool { return target == ErrInconclusive }

// Unwrap returns the cause.
func (e *InconclusiveError) Unwrap() error { return e.Err }

// NotEstablishedError says that a CustomResourceDefinition is there and is not served:
// the server has not accepted it, or not yet. It matches ErrNotServed, too.
type NotEstablishedError struct {
	// Ref is the resource that was asked for.
	Ref Ref
	// CRD is the name of the CustomResourceDefinition.
	CRD string
	// Condition is the type of the CRD's condition that says why, NamesAccepted or
	// Established; empty if the server has not looked at the CRD yet.
	Condition string
	// Reason and Message are the condition's.
	Reason, Message string

	kind     bool // Ref.Resource is a kind
	searched []string
}

// newNotEstablishedError tells of the condition that stands in the way.
func newNotEstablishedError(q question, definition *crd) *NotEstablishedError {
	err := &NotEstablishedError{Ref: q.ref, CRD: definition.Metadata.Name, kind: q.form == kind, searched: q.searched()}
	for _, name := range []string{namesAccepted, established} {
		if cond := definition.condition(name); cond != nil && cond.Status != "True" {
			err.Condition, err.Reason, err.Message = cond.Type, cond.Reason, cond.Message
			break
		}
	}
	return err
}

func (e *NotEstablishedError) Error() string {
	text := fmt.Sprintf("%s: the CustomResourceDefinition %s is not established", e.Ref, e.CRD)
	if e.Condition == "" {
		return text + " yet: the server has set no condition on it"
	}
	return fmt.Sprintf("%s: its condition %s is not true: %s", text, e.Condition, strings.Join(nonEmpty(e.Reason, e.Message), ": "))
}

// Is reports whether target is ErrNotEstablished or ErrNotServed.
func (e *NotEstablishedError) Is(target error) bool {
	return target == ErrNotEstablished || target == ErrNotServed
}

// Unwrap makes meta.IsNoMatchError hold.
func (e *NotEstablishedError) Unwrap() error { return noMatch(e.Ref, e.kind, e.searched) }

// AmbiguousError says that a reference fits resources of several groups. It
// unwraps to apimachinery's *meta.AmbiguousResourceError.
type AmbiguousError struct {
	// Ref is the reference.
	Ref Ref
	// Candidates are what it fits, each in the version that its group prefers, in
	// the order in which the server prefers the groups.
	Candidates []Resource
}

func (e *AmbiguousError) Error() string {
	refs := make([]Ref, len(e.Candidates))
	for i, res := range e.Candidates {
		refs[i] = RefOf(res.GVR)
	}
	return fmt.Sprintf("%s: served by several groups; say which one: %s", e.Ref, strings.Join(refStrings(refs), " or "))
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

// VerbError says that a served resource does not support a verb: the type does
// not, whoever asks.
type VerbError struct {
	GVR schema.GroupVersionResource
	// Missing are the verbs that were asked for and are not there.
	Missing []string
	// Verbs are those that are, sorted.
	Verbs []string
}

func (e *VerbError) Error() string {
	there := "no verb at all"
	if len(e.Verbs) > 0 {
		there = strings.Join(e.Verbs, ", ")
	}
	return fmt.Sprintf("%s: the resource does not support %s; it supports %s",
		RefOf(e.GVR), strings.Join(e.Missing, " and "), there)
}

// Is reports whether target is ErrVerbNotSupported.
func (e *VerbError) Is(target error) bool { return target == ErrVerbNotSupported }

// RefError says why a reference or a GVR can't name a resource.
type RefError struct {
	// Ref is the reference as it was given.
	Ref string
	// Problem is what is wrong with it.
	Problem string
}

func (e *RefError) Error() string {
	return fmt.Sprintf("resource reference %q: %s; want plural, plural.group, plural.version.group or group/version/plural", e.Ref, e.Problem)
}

// Is reports whether target is ErrInvalidRef.
func (e *RefError) Is(target error) bool { return target == ErrInvalidRef }

// missingVerbs returns those of want that res does not have as an error, or nil.
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

// causesError is several errors in one line, each text once.
type causesError struct{ errs []error }

func (e *causesError) Error() string {
	var texts []string
	for _, err := range e.errs {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns all of them.
func (e *causesError) Unwrap() []error { return e.errs }

// nonEmpty returns those of texts that are not empty.
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

// maxNear is how many suggestions an error makes.
const maxNear = 3

// suggestions are the resources with names like that of ref. They are looked for when they
// are first asked for: most errors are never read.
type suggestions struct {
	ref Ref

	mu     sync.Mutex
	groups []*groupView // what was served when the error was made; nil once looked through
	found  []Ref
}

// list returns them, best first. On nil there are none.
func (s *suggestions) list() []Ref {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups != nil {
		s.found, s.groups = similar(s.groups, s.ref), nil
	}
	return slices.Clone(s.found)
}

// similar returns the resources of groups whose plural, singular, kind or short name is
// closest to that of ref, best first. The same name in another group is closest
// of all.
func similar(groups []*groupView, ref Ref) []Ref {
	type candidate struct {
		ref      Ref
		distance int
	}
	want := strings.ToLower(ref.Resource)
	limit := max(1, len(want)/3) // a third of the letters may be wrong, and one always
	var candidates []candidate
	for _, g := range groups {
		first := len(candidates)
		for i := range g.resources {
			res := &g.resources[i]
			best := limit + 1
			for _, name := range [...]string{res.GVR.Resource, res.Singular, res.GVK.Kind} {
				best = min(best, distanceOf(want, name, limit))
			}
			for _, name := range res.ShortNames {
				best = min(best, distanceOf(want, name, limit))
			}
			if best > limit {
				continue
			}
			at := slices.IndexFunc(candidates[first:], func(c candidate) bool { return c.ref.Resource == res.GVR.Resource })
			if at < 0 {
				candidates = append(candidates, candidate{Ref{Resource: res.GVR.Resource, Group: g.name}, best})
			} else {
				candidates[first+at].distance = min(candidates[first+at].distance, best)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		if ref.Group != "" { // a reference with a group means one like it
			if d := distance(ref.Group, a.ref.Group, math.MaxInt) - distance(ref.Group, b.ref.Group, math.MaxInt); d != 0 {
				return d
			}
		}
		return strings.Compare(a.ref.String(), b.ref.String())
	})
	var refs []Ref
	for _, cand := range candidates[:min(maxNear, len(candidates))] {
		refs = append(refs, cand.ref)
	}
	return refs
}

// distanceOf returns the distance between want and name in lower case, or more than limit.
func distanceOf(want, name string, limit int) int {
	if name == "" || max(len(want)-len(name), len(name)-len(want)) > limit {
		return limit + 1 // each letter more is one
	}
	return distance(want, strings.ToLower(name), limit)
}

// distance is Levenshtein's: the insertions, deletions and replacements of a byte
// that turn a into b. It is more than limit where that is certain before the end.
func distance(a, b string, limit int) int {
	var few [64]int
	row := few[:0]
	if len(b) >= len(few) {
		row = make([]int, 0, len(b)+1)
	}
	row = row[:len(b)+1]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return least
		}
	}
	return row[len(b)]
}

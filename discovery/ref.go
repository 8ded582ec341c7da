package discovery

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Ref is a reference to a resource: plural, plural.group or plural.version.group. Version and Group are
// empty if the reference does not have them. The core group is empty, too: "pods.v1" is in the core
// group, and "pods" is in any group.
type Ref struct {
	Resource string
	Version  string
	Group    string
}

// RefOf returns the reference with all parts of gvr.
func RefOf(gvr schema.GroupVersionResource) Ref {
	return Ref{Resource: gvr.Resource, Version: gvr.Version, Group: gvr.Group}
}

// String returns the reference as text, for example ipamblocks.v1.crd.projectcalico.org. ParseRef
// returns an equal Ref from this text if the version has the usual form and the group does not begin
// like a version. Resolve finds the same resource from the text of every valid Ref. An empty resource name
// is written as "(no name)".
func (r Ref) String() string {
	s := cmp.Or(r.Resource, "(no name)")
	if r.Version != "" {
		s += "." + r.Version
	}
	if r.Group != "" {
		s += "." + r.Group
	}
	return s
}

// ParseRef parses a reference: plural, plural.group or plural.version.group. With a slash, the forms
// are group/version/plural ("crd.projectcalico.org/v1/ipamblocks", and "v1/pods" in the core group)
// and the texts of a GroupVersionResource and a GroupVersionKind ("crd.projectcalico.org/v1,
// Kind=IPAMBlock"). It sends no request. A [Resolver] finds out whether the resource exists.
//
// Without a slash, the second part is the version if it has the form of one (v1, v1beta2). Otherwise
// it is the beginning of the group. Resolve also tries the other meaning. kubectl's form for the core
// group, "pods.v1.", is accepted. An error is a [*RefError].
func ParseRef(s string) (Ref, error) {
	q, err := parseQuestion(s)
	return q.ref, err
}

// parseQuestion parses a reference to a question. The forms with a slash have one meaning: the group and
// the version are exact, and the name after "Kind=" is a kind.
func parseQuestion(s string) (question, error) {
	var (
		q       question
		problem string
	)
	gv, name, typed := strings.Cut(s, ",")
	switch {
	case typed:
		q, problem = parseTyped(gv, name)
	case strings.Contains(s, "/"):
		q, problem = parseSlashed(strings.Split(s, "/"))
	default:
		q.form = anyForm
		q.ref, problem = parseDotted(s)
	}
	if problem != "" {
		return question{}, &RefError{Ref: s, Problem: problem}
	}
	return q, nil
}

func parseDotted(s string) (ref Ref, problem string) {
	resource, rest, qualified := strings.Cut(s, ".")
	ref.Resource = resource
	if problem := checkResource(resource); problem != "" || !qualified {
		return ref, problem
	}
	first, more, _ := strings.Cut(rest, ".")
	if versionForm.MatchString(first) {
		ref.Version, ref.Group = first, more
	} else {
		ref.Group = rest
	}
	if ref.Version != "" && ref.Group == "" {
		return ref, ""
	}
	if len(validation.IsDNS1123Subdomain(ref.Group)) > 0 {
		return ref, badGroup
	}
	return ref, ""
}

// parseTyped parses the text of a GVR or a GVK: the parts before and after the comma.
func parseTyped(gv, typed string) (q question, problem string) {
	q = question{form: anyForm, inGroup: true}
	name, isResource := strings.CutPrefix(typed, " Resource=")
	if !isResource {
		var isKind bool
		if name, isKind = strings.CutPrefix(typed, " Kind="); !isKind {
			return q, `after the version there must be ", Kind=" or ", Resource="`
		}
		q.form = kind
	}
	group, version, slashed := strings.Cut(gv, "/")
	if !slashed {
		group, version = "", gv
	}
	q.ref = Ref{Resource: name, Version: version, Group: group}
	return q, problemOf(q.ref, true)
}

// parseSlashed parses group/version/plural, and version/plural in the core group.
func parseSlashed(parts []string) (q question, problem string) {
	q = question{form: anyForm, inGroup: true}
	core := versionForm.MatchString(parts[0]) && (len(parts) != 3 || !versionForm.MatchString(parts[1]))
	switch {
	case len(parts) == 2 && core:
		q.ref = Ref{Resource: parts[1], Version: parts[0]}
	case len(parts) == 3 && !core:
		q.ref = Ref{Resource: parts[2], Version: parts[1], Group: parts[0]}
	case len(parts) == 2 && versionForm.MatchString(parts[1]):
		return q, "the resource is missing: there is only a group and a version"
	default:
		return q, subresource
	}
	return q, problemOf(q.ref, true)
}

// The problems of several forms of a reference.
const (
	subresource = "a subresource can't be listed or watched: remove the part after the resource"
	badGroup    = "the group is not a DNS name"
)

// checkResource returns the problem of the name of a resource, or "". Capital letters are allowed, since
// kinds have them.
func checkResource(name string) string {
	switch {
	case name == "":
		return "the resource name is empty"
	case strings.Contains(name, "/"):
		return subresource
	case len(validation.IsDNS1123Label(strings.ToLower(name))) > 0,
		strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }): // the lower case of some is ASCII
		return "the resource name is not a DNS label"
	}
	return ""
}

// CheckGVR returns a [*RefError] if gvr is not the name of any possible resource: a part is empty, it is
// a subresource, or it has characters that no server accepts. It sends no request.
func CheckGVR(gvr schema.GroupVersionResource) error {
	return checkParts(RefOf(gvr), true)
}

// checkParts checks a resource or a kind that is given in parts.
func checkParts(ref Ref, needVersion bool) error {
	if problem := problemOf(ref, needVersion); problem != "" {
		return &RefError{Ref: ref.String(), Problem: problem, parts: true}
	}
	return nil
}

// problemOf returns the problem of ref, or "".
func problemOf(ref Ref, needVersion bool) string {
	problem := checkResource(ref.Resource)
	switch {
	case problem != "":
		return problem
	case ref.Version == "" && needVersion:
		return "the version is empty"
	case ref.Version != "" && len(validation.IsDNS1123Label(ref.Version)) > 0:
		return "the version is not a DNS label"
	case ref.Group != "" && len(validation.IsDNS1123Subdomain(ref.Group)) > 0:
		return badGroup
	}
	return ""
}

// versionForm is the form of the versions of Kubernetes, which it recommends for CRDs.
var versionForm = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

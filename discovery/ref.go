package discovery

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Ref is a reference to a resource as a person writes it: plural, plural.group
// or plural.version.group. Version and Group are empty where nothing was said;
// the core group is the empty one, so "pods.v1" names it and "pods" does not.
type Ref struct {
	Resource string
	Version  string
	Group    string
}

// RefOf returns the reference that names gvr in full.
func RefOf(gvr schema.GroupVersionResource) Ref {
	return Ref{Resource: gvr.Resource, Version: gvr.Version, Group: gvr.Group}
}

// String returns the reference as it is written, for example
// ipamblocks.v1.crd.projectcalico.org. ParseRef reads it back, to an equal Ref if
// the version has the usual form and the group does not begin like one; Resolve
// finds the same resource in any case.
func (r Ref) String() string {
	s := r.Resource
	if r.Version != "" {
		s += "." + r.Version
	}
	if r.Group != "" {
		s += "." + r.Group
	}
	return s
}

// ParseRef reads a reference. It is pure: whether the resource exists is for a
// [Resolver] to say. The second part is taken for a version if it looks like one
// (v1, v1beta2) and for the start of the group otherwise; Resolve also tries the
// other reading. kubectl's form for the core group, "pods.v1.", is understood.
// An error is a [*RefError].
func ParseRef(s string) (Ref, error) {
	resource, rest, qualified := strings.Cut(s, ".")
	if problem := checkResource(resource); problem != "" {
		return Ref{}, &RefError{Ref: s, Problem: problem}
	}
	ref := Ref{Resource: resource}
	if !qualified {
		return ref, nil
	}
	first, more, _ := strings.Cut(rest, ".")
	if versionForm.MatchString(first) {
		ref.Version, ref.Group = first, more
	} else {
		ref.Group = rest
	}
	if ref.Version != "" && ref.Group == "" {
		return ref, nil
	}
	if problems := validation.IsDNS1123Subdomain(ref.Group); len(problems) > 0 {
		return Ref{}, &RefError{Ref: s, Problem: "the group is not a DNS name"}
	}
	return ref, nil
}

// checkResource returns what is wrong with a resource name, or "". Capitals are
// let through: they are those of a kind, and the answer to it is a suggestion.
func checkResource(name string) string {
	switch {
	case name == "":
		return "the resource name is empty"
	case strings.Contains(name, "/"):
		return "a subresource can't be listed or watched: leave out what follows the slash"
	case len(validation.IsDNS1123Label(strings.ToLower(name))) > 0,
		strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }): // some have ASCII for lower case
		return "the resource name is not a DNS label"
	}
	return ""
}

// CheckGVR returns a [*RefError] if gvr can't name a resource: if it is empty, names a
// subresource, or has characters that no server accepts. It asks nobody.
func CheckGVR(gvr schema.GroupVersionResource) error {
	return checkParts(RefOf(gvr), true)
}

// checkParts checks a resource or kind that a program gave in parts.
func checkParts(ref Ref, needVersion bool) error {
	problem := checkResource(ref.Resource)
	switch {
	case problem != "":
	case ref.Version == "" && needVersion:
		problem = "the version is empty"
	case ref.Version != "" && len(validation.IsDNS1123Label(ref.Version)) > 0:
		problem = "the version is not a DNS label"
	case ref.Group != "" && len(validation.IsDNS1123Subdomain(ref.Group)) > 0:
		problem = "the group is not a DNS name"
	default:
		return nil
	}
	return &RefError{Ref: ref.String(), Problem: problem}
}

// versionForm is the form that Kubernetes gives its versions and recommends for CRDs.
var versionForm = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

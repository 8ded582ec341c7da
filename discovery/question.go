package discovery

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nameForm is what a name is of a resource. A name may be the plural of one resource and a
// short name of another; the first of the forms that any of them has decides, as in kubectl.
type nameForm uint8

const (
	plural nameForm = iota
	singular
	shortName
	kind
	anyForm
)

// question is what is asked for, and how. It is comparable: two questions that are equal
// have one answer, so that what is not served is remembered by question.
type question struct {
	ref  Ref // as errors name it
	form nameForm
	// inGroup says that an empty group is the core group, not any.
	inGroup bool
	// method is the RESTMapper's that was called, whose answers are client-go's; it is
	// empty for the resolver's own, whose answers differ only by the fields above.
	method string
	// versions are those of a RESTMapping, each with a comma after it.
	versions string
}

func questionOfGVR(gvr schema.GroupVersionResource) question {
	return question{ref: RefOf(gvr), form: plural, inGroup: true}
}

func questionOfGVK(gvk schema.GroupVersionKind) question {
	return question{ref: Ref{Resource: gvk.Kind, Version: gvk.Version, Group: gvk.Group}, form: kind, inGroup: true}
}

// gvr returns the resource that is asked for if it is named in full.
func (q question) gvr() (gvr schema.GroupVersionResource, full bool) {
	return schema.GroupVersionResource{Group: q.ref.Group, Version: q.ref.Version, Resource: q.ref.Resource},
		q.form == plural && q.ref.Version != ""
}

// reading is one meaning of a question.
type reading struct {
	name           string // in lower case, unless it can only be a kind
	version, group string
	anyGroup       bool
	// prefix says that group is the beginning of a group's name.
	prefix bool
	form   nameForm
}

// searched returns the versions that q asks for; none are all.
func (q question) searched() []string {
	if q.versions != "" {
		return strings.Split(strings.TrimSuffix(q.versions, ","), ",")
	}
	if q.ref.Version != "" {
		return []string{q.ref.Version}
	}
	return nil
}

// readings returns what q can mean, in the order in which kubectl tries it: the
// version and the group apart first, then all of it as the group; then both again with the
// beginning of a group. A CRD's version may have any name, and a group may begin with a
// label like v1.
func (q question) readings() []reading {
	ref := q.ref
	r := reading{name: ref.Resource, version: ref.Version, group: ref.Group, form: q.form}
	switch {
	case q.versions != "":
		var readings []reading
		for _, version := range q.searched() {
			r.version = version
			readings = append(readings, r)
		}
		return readings
	case q.method != "" && q.form == anyForm: // as client-go's mapper reads a partial resource
		r.name, r.anyGroup = strings.ToLower(ref.Resource), ref.Group == ""
		if r.anyGroup || r.version != "" {
			return []reading{r}
		}
		return []reading{r, r.cutShort()}
	case q.form != anyForm:
		r.anyGroup = !q.inGroup
		return []reading{r}
	}
	r.name = strings.ToLower(ref.Resource)
	if q.inGroup {
		return []reading{r}
	}
	r.anyGroup = ref.Version == "" && ref.Group == ""
	whole := r
	switch label, rest, found := strings.Cut(ref.Group, "."); {
	case r.anyGroup:
		return []reading{r}
	case ref.Version != "" && ref.Group == "": // the core group, or one that begins like a version
		whole.version, whole.group = "", ref.Version
		return []reading{r, whole, whole.cutShort()}
	case ref.Version != "":
		whole.version, whole.group = "", ref.Version+"."+ref.Group
	case found:
		r.version, r.group = label, rest
	default:
		return []reading{r, r.cutShort()}
	}
	return []reading{r, whole, r.cutShort(), whole.cutShort()}
}

// cutShort returns r with its group as the beginning of a group's name.
func (r reading) cutShort() reading {
	r.prefix = true
	return r
}

// covers reports whether what r names may be in gv.
func (r reading) covers(gv schema.GroupVersion) bool {
	return (r.anyGroup || gv.Group == r.group || r.prefix && strings.HasPrefix(gv.Group, r.group)) &&
		(r.version == "" || gv.Version == r.version)
}

// matches reports whether r names res by a name of that form.
func (r reading) matches(res *Resource, form nameForm) bool {
	switch {
	case r.form == anyForm:
		return r.covers(res.GVR.GroupVersion())
	case r.form != form:
		return false
	case form == kind: // a few built-in resources have objects of another group
		return res.GVK.Kind == r.name && r.covers(res.GVK.GroupVersion())
	}
	return res.GVR.Resource == r.name && r.covers(res.GVR.GroupVersion())
}

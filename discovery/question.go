package discovery

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nameForm is the form of a name. A name may be the plural of one resource and a short name of another:
// the first of the forms below that matches any resource decides, as in kubectl.
type nameForm uint8

const (
	plural nameForm = iota
	singular
	shortName
	kind
	anyForm
)

// question is a question of a caller. Equal questions have equal answers, so that it is the key of
// stored refusals.
type question struct {
	ref  Ref // in errors
	form nameForm
	// inGroup reports whether an empty group means the core group. Otherwise it means any group.
	inGroup bool
	// method is the method of the RESTMapper, whose answers are client-go's. It is empty for the
	// methods of the resolver, whose answers depend only on the fields above.
	method string
	// versions are the versions of a RESTMapping, each followed by a comma.
	versions string
}

func questionOfGVR(gvr schema.GroupVersionResource) question {
	return question{ref: RefOf(gvr), form: plural, inGroup: true}
}

func questionOfGVK(gvk schema.GroupVersionKind) question {
	return question{ref: Ref{Resource: gvk.Kind, Version: gvk.Version, Group: gvk.Group}, form: kind, inGroup: true}
}

// gvr returns the resource of the question, and reports whether q has its plural and a version.
func (q question) gvr() (gvr schema.GroupVersionResource, full bool) {
	return schema.GroupVersionResource{Group: q.ref.Group, Version: q.ref.Version, Resource: q.ref.Resource},
		q.form == plural && q.ref.Version != ""
}

// reading is one possible meaning of a question.
type reading struct {
	name           string // in lower case, except for kinds
	version, group string
	anyGroup       bool
	// prefix reports whether group is a prefix of a group's name.
	prefix bool
	form   nameForm
}

// searched returns the versions of q; nil means all.
func (q question) searched() []string {
	if q.versions != "" {
		return strings.Split(strings.TrimSuffix(q.versions, ","), ",")
	}
	if q.ref.Version != "" {
		return []string{q.ref.Version}
	}
	return nil
}

// readings returns the possible meanings of q, in kubectl's order: first with a version and a group,
// then with all of it as the group; then both again with a prefix of a group. The version of a CRD may
// have any name, and a group may begin with a label like v1.
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
	case q.method != "" && q.form == anyForm: // the meaning of a partial resource in client-go's mapper
		r.name, r.anyGroup = strings.ToLower(ref.Resource), ref.Group == ""
		if r.anyGroup || r.version != "" {
			return []reading{r}
		}
		return []reading{r, r.asPrefix()}
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
	case ref.Version != "" && ref.Group == "": // the core group, or a group that begins like a version
		whole.version, whole.group = "", ref.Version
		return []reading{r, whole, whole.asPrefix()}
	case ref.Version != "":
		whole.version, whole.group = "", ref.Version+"."+ref.Group
	case found:
		r.version, r.group = label, rest
	default:
		return []reading{r, r.asPrefix()}
	}
	return []reading{r, whole, r.asPrefix(), whole.asPrefix()}
}

// asPrefix returns r with its group as a prefix of a group's name.
func (r reading) asPrefix() reading {
	r.prefix = true
	return r
}

// covers reports whether gv may have the resource of r.
func (r reading) covers(gv schema.GroupVersion) bool {
	return (r.anyGroup || gv.Group == r.group || r.prefix && strings.HasPrefix(gv.Group, r.group)) &&
		(r.version == "" || gv.Version == r.version)
}

// matches reports whether r is a name of res of that form.
func (r reading) matches(res *Resource, form nameForm) bool {
	switch {
	case r.form == anyForm:
		return r.covers(res.GVR.GroupVersion())
	case r.form != form:
		return false
	case form == kind: // the objects of a few built-in resources have another group
		return res.GVK.Kind == r.name && r.covers(res.GVK.GroupVersion())
	}
	return res.GVR.Resource == r.name && r.covers(res.GVR.GroupVersion())
}

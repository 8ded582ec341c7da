package discovery

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// document is a server's list of all resources, in the server's order. It is immutable.
type document struct {
	core, named root
}

// root is the part of a document below /api, or below /apis.
type root struct {
	groups []groupDoc
	err    error     // the request failed, or the response is incomplete; groups are the known ones
	etag   string    // of the response, if it was complete
	legacy bool      // the server has no aggregated discovery
	date   time.Time // of the response, by the server's clock, in whole seconds
}

// groups returns all groups, the core group first.
func (d *document) groups() []groupDoc {
	return append(slices.Clip(d.core.groups), d.named.groups...)
}

// versions returns all group versions, in order.
func (d *document) versions() iter.Seq2[schema.GroupVersion, versionDoc] {
	return func(yield func(schema.GroupVersion, versionDoc) bool) {
		for _, group := range d.groups() {
			for _, version := range group.versions {
				if !yield(schema.GroupVersion{Group: group.name, Version: version.name}, version) {
					return
				}
			}
		}
	}
}

// withLastKnown returns the document with the resources of previous for all group versions that
// failed: their resources may still exist.
func (d *document) withLastKnown(previous *document) *document {
	if previous == nil || previous == d {
		return d
	}
	return &document{core: d.core.withLastKnown(previous.core), named: d.named.withLastKnown(previous.named)}
}

func (r root) withLastKnown(previous root) root {
	groups := slices.Clone(r.groups)
	for i, group := range groups {
		if slices.ContainsFunc(group.versions, func(v versionDoc) bool { return v.err != nil }) {
			groups[i] = group.withLastKnown(previous.group(group.name))
		}
	}
	if r.err != nil { // other groups may exist
		for _, group := range previous.groups {
			if !slices.ContainsFunc(groups, func(g groupDoc) bool { return g.name == group.name }) {
				groups = append(groups, group)
			}
		}
	}
	r.groups = groups
	return r
}

// group returns the group of that name, or the zero value.
func (r root) group(name string) groupDoc {
	i := slices.IndexFunc(r.groups, func(g groupDoc) bool { return g.name == name })
	if i < 0 {
		return groupDoc{}
	}
	return r.groups[i]
}

// groupDoc is the entry of a group in a document. It is immutable.
type groupDoc struct {
	name     string
	versions []versionDoc // the preferred one first
	raw      string       // the bytes in protobuf; "" for another format
}

// is reports whether g and other share their versions.
func (g groupDoc) is(other groupDoc) bool {
	return len(g.versions) > 0 && len(g.versions) == len(other.versions) && &g.versions[0] == &other.versions[0]
}

// withLastKnown returns g with the resources of previous for the versions that failed.
func (g groupDoc) withLastKnown(previous groupDoc) groupDoc {
	versions := slices.Clone(g.versions)
	for i, version := range versions {
		known := slices.IndexFunc(previous.versions, func(v versionDoc) bool { return v.name == version.name })
		if version.err == nil || known < 0 {
			continue
		}
		version = version.copied()
		for _, res := range previous.versions[known].resources {
			version.add(res)
		}
		versions[i] = version
	}
	g.versions = versions
	return g
}

// versionDoc is the list of resources of a group version.
type versionDoc struct {
	name      string
	names     map[string]bool // of resources, if there are many
	resources []Resource      // with err: the last known ones
	err       error           // the request failed, or the response is incomplete
}

// markMalformed records that the response has invalid entries. The valid entries count.
func (v *versionDoc) markMalformed() {
	if v.err == nil {
		v.err = errMalformed
	}
}

// few is the maximum number of names that are compared one by one.
const few = 16

// add adds a resource. If there are several of one name, the first one counts.
func (v *versionDoc) add(res Resource) {
	if len(v.resources) < few {
		if slices.ContainsFunc(v.resources, func(other Resource) bool { return other.GVR == res.GVR }) {
			return
		}
	} else {
		if v.names == nil {
			v.names = make(map[string]bool, 2*few)
			for i := range v.resources {
				v.names[v.resources[i].GVR.Resource] = true
			}
		}
		if v.names[res.GVR.Resource] {
			return
		}
		v.names[res.GVR.Resource] = true
	}
	v.resources = append(v.resources, res)
}

// copied returns a copy to which resources can be added without an effect on v.
func (v versionDoc) copied() versionDoc {
	v.resources, v.names = slices.Clip(v.resources), nil
	return v
}

package discovery

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// errDisagree is the state of a moment: of several API servers, or of the caches in
// one, not all know of a type that has just come (kubernetes#115241).
var errDisagree = errors.New("the server lists the resource, and says of its group version that there is no such resource")

// catalogue is all that is known to be served, at one moment. It is not changed once
// made.
type catalogue struct {
	// resources are sorted by group in the server's order, and within a group by
	// version, preferred first.
	resources []Resource
	// groups are those that the server has, whether their resources are known or not.
	groups map[string]bool
	// failed are the group versions that exist but could not be asked. What is
	// known of their resources is from before.
	failed map[schema.GroupVersion]error
	// unknown is why not even all groups are known; nil if they are.
	unknown error
	// waiting are the CRDs that are there and not served.
	waiting []*crd

	index  func() *index
	mapper func() meta.RESTMapperWithContext
	memo   memo
}

// index finds resources by name.
type index struct {
	byGVR map[schema.GroupVersionResource]int
	names map[string][]hit // in lower case
	kinds map[string][]hit // as they are
}

// hit is a resource that has a name, in the order of catalogue.resources.
type hit struct {
	at   int
	form nameForm
}

// newCatalogue lists what groups have. Of the errors of the groups, those count that
// leave something open.
func newCatalogue(groups []groupDoc, unknown error) *catalogue {
	c := &catalogue{groups: map[string]bool{}, failed: map[schema.GroupVersion]error{}, unknown: unknown}
	for _, group := range groups {
		c.groups[group.name] = true
		versions := map[string][]string{}
		begin := len(c.resources)
		for _, version := range group.versions {
			if version.err != nil {
				c.failed[schema.GroupVersion{Group: group.name, Version: version.name}] = version.err
			}
			for _, res := range version.resources {
				versions[res.GVR.Resource] = append(versions[res.GVR.Resource], version.name)
			}
			c.resources = append(c.resources, version.resources...)
		}
		for i := begin; i < len(c.resources); i++ {
			c.resources[i].Versions = versions[c.resources[i].GVR.Resource]
		}
	}
	c.index = sync.OnceValue(c.makeIndex)
	c.mapper = sync.OnceValue(c.makeMapper)
	return c
}

// same reports whether other says the same of everything.
func (c *catalogue) same(other *catalogue) bool {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	return reflect.DeepEqual(c.resources, other.resources) && maps.Equal(c.groups, other.groups) &&
		maps.EqualFunc(c.failed, other.failed, func(a, b error) bool { return text(a) == text(b) }) &&
		text(c.unknown) == text(other.unknown) && slices.Equal(c.waiting, other.waiting)
}

func (c *catalogue) makeIndex() *index {
	x := &index{
		byGVR: make(map[schema.GroupVersionResource]int, len(c.resources)),
		names: make(map[string][]hit, 4*len(c.resources)),
		kinds: make(map[string][]hit, len(c.resources)),
	}
	for at := range c.resources {
		res := &c.resources[at]
		x.byGVR[res.GVR] = at
		x.kinds[res.GVK.Kind] = append(x.kinds[res.GVK.Kind], hit{at, kind})
		x.add(res.GVR.Resource, hit{at, plural})
		for _, name := range res.ShortNames {
			x.add(name, hit{at, shortName})
		}
		x.add(res.Singular, hit{at, singular})
		x.add(res.GVK.Kind, hit{at, kind})
	}
	return x
}

func (x *index) add(name string, h hit) {
	if name != "" {
		name = strings.ToLower(name)
		x.names[name] = append(x.names[name], h)
	}
}

// find returns what r names: of those in the first form of name that fits any, each
// group's in the version that the server prefers.
func (c *catalogue) find(r reading) []Resource {
	x := c.index()
	hits := x.names[r.name]
	if r.form == kind {
		hits = x.kinds[r.name]
	}
	best := anyForm
	for _, h := range hits {
		if h.form < best && r.matches(&c.resources[h.at], h.form) {
			best = h.form
		}
	}
	if best == anyForm {
		return nil
	}
	var found []Resource
	for _, h := range hits {
		res := &c.resources[h.at]
		if h.form != best || !r.matches(res, h.form) {
			continue
		}
		if !slices.ContainsFunc(found, func(other Resource) bool { return other.GVR.GroupResource() == res.GVR.GroupResource() }) {
			found = append(found, *res)
		}
	}
	return found
}

// ofKind returns the resource whose objects are of gvk, in the preferred version if gvk
// has none. It is nil if there is none, or a choice.
func (c *catalogue) ofKind(gvk schema.GroupVersionKind) *Resource {
	var only *Resource
	x := c.index()
	for _, h := range x.kinds[gvk.Kind] {
		res := &c.resources[h.at]
		switch {
		case res.GVK.Group != gvk.Group || res.GVR.Group != gvk.Group || gvk.Version != "" && res.GVK.Version != gvk.Version:
		case only == nil:
			only = res
		case only.GVR.Resource != res.GVR.Resource:
			return nil
		}
	}
	return only
}

// answer returns the one resource that q means in any of its readings.
func (c *catalogue) answer(q question) (Resource, error) {
	if gvr, full := q.gvr(); full {
		if at, found := c.index().byGVR[gvr]; found {
			return c.resources[at], nil
		}
		return Resource{}, c.refuse(q)
	}
	for _, r := range q.readings() {
		found := c.find(r)
		switch {
		case len(found) == 0:
		case len(found) == 1 || r.anyGroup && ofKubernetes(found[0]):
			return found[0], nil
		default:
			return Resource{}, &AmbiguousError{Ref: q.ref, Candidates: found}
		}
	}
	return Resource{}, c.refuse(q)
}

// ofKubernetes reports whether res is in an API group of Kubernetes itself. These come
// first in every server's order, and kubectl takes the first: "pods" is the core
// group's, whoever else has pods.
func ofKubernetes(res Resource) bool {
	return res.Backing != BackingCRD && res.Backing != BackingAggregated && scheme.Scheme.IsGroupRegistered(res.GVR.Group)
}

// refuse returns the error for q, which nothing in the catalogue answers.
func (c *catalogue) refuse(q question) error {
	readings := q.readings()
	for _, r := range readings {
		if err := c.inconclusive(q, r); err != nil {
			return err
		}
	}
	if c.unknown != nil {
		return inconclusive(q.ref, c.unknown)
	}
	for _, r := range readings {
		if definition := c.waitingFor(r); definition != nil {
			return newNotEstablishedError(q, definition)
		}
	}
	absent := &NotServedError{Ref: q.ref, Near: c.near(q.ref), kind: q.form == kind}
	for _, r := range readings {
		absent.GroupServed = absent.GroupServed || !r.anyGroup && c.serves(r.group, r.version, q)
		if r.version != "" && absent.Versions == nil {
			r.version = ""
			if found := c.find(r); len(found) > 0 {
				absent.Versions = found[0].Versions
			}
		}
	}
	return absent
}

// serves reports whether there is such a group. Where the version was only guessed, as
// the first label of what may be the group, the version has to be there, too.
func (c *catalogue) serves(group, version string, q question) bool {
	if !c.groups[group] || version == "" || version == q.ref.Version {
		return c.groups[group]
	}
	gv := schema.GroupVersion{Group: group, Version: version}
	_, failed := c.failed[gv]
	return failed || slices.ContainsFunc(c.resources, func(res Resource) bool { return res.GVR.GroupVersion() == gv })
}

// inconclusive returns an error if a group version that q might mean failed: what was
// not found may be there.
func (c *catalogue) inconclusive(q question, r reading) error {
	var gvs []schema.GroupVersion
	for gv := range c.failed {
		if r.covers(gv) {
			gvs = append(gvs, gv)
		}
	}
	if gvs == nil {
		return nil
	}
	slices.SortFunc(gvs, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	causes := make([]error, len(gvs))
	for i, gv := range gvs {
		causes[i] = c.failed[gv]
	}
	return inconclusive(q.ref, errors.Join(causes...), gvs...)
}

// waitingFor returns a CRD that r names and that is not served, or nil.
func (c *catalogue) waitingFor(r reading) *crd {
	for _, definition := range c.waiting {
		for i := range definition.Spec.Versions {
			v := &definition.Spec.Versions[i]
			if v.Served && r.covers(schema.GroupVersion{Group: definition.Spec.Group, Version: v.Name}) && definition.hasName(r) {
				return definition
			}
		}
	}
	return nil
}

// memo remembers what references have been found to mean. It lives as long as the
// catalogue that it is about.
type memo struct {
	mu    sync.RWMutex
	known map[string]Resource
}

// maxMemo bounds a memo: references may come from anybody.
const maxMemo = 4096

func (m *memo) get(ref string) (Resource, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	res, found := m.known[ref]
	return res, found
}

func (m *memo) put(ref string, res Resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]Resource{}
	}
	if len(m.known) < maxMemo {
		m.known[ref] = res
	}
}

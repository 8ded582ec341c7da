package discovery

import (
	"cmp"
	"errors"
	"iter"
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
var errDisagree = errors.New("the server lists the resource, but its group version does not have it yet; ask again")

// snapshot is all that is known to be served, at one moment. It is not changed once
// made. Groups that do not change are shared with the snapshot before it, with their
// indexes, so that a change costs what its own group costs.
type snapshot struct {
	groups []*groupView // in the server's order
	byName []*groupView // the same, sorted by name
	// coreUnknown and namedUnknown are why not even all groups are known: the core group, or
	// those with a name. They are nil if they are.
	coreUnknown, namedUnknown error
	// crdsRule says that the CRDs are known, all of them.
	crdsRule bool
	types    int // that are served

	mapper func() meta.RESTMapperWithContext
	memo   memo
}

// groupView is what is known of one group. It is not changed once made.
type groupView struct {
	name     string
	versions []string // none if there are only CRDs that are not served
	// resources are sorted by version, preferred first.
	resources []Resource
	// failed are the versions that exist but could not be asked. What is known of
	// their resources is from before.
	failed map[string]error
	// waiting are the CRDs of the group that are there and not served.
	waiting []*crd
	// types are what events tell of the types, each once.
	types []typeState
	// decided are the plurals of which CRDs say all: what is not listed is not served,
	// without a doubt.
	decided map[string]bool

	index func() *index
}

// index finds the resources of a group by name.
type index struct {
	byGVR map[schema.GroupVersionResource]int
	names map[string][]hit // in lower case
	kinds map[string][]hit // as they are
	types map[string]int   // in groupView.types, by plural
}

// hit is a resource that has a name, in the order of groupView.resources.
type hit struct {
	at   int
	form nameForm
}

// newSnapshot lists groups, which are in the server's order.
func newSnapshot(groups []*groupView, coreUnknown, namedUnknown error) *snapshot {
	c := &snapshot{groups: groups, coreUnknown: coreUnknown, namedUnknown: namedUnknown, byName: slices.Clone(groups)}
	slices.SortFunc(c.byName, func(a, b *groupView) int { return strings.Compare(a.name, b.name) })
	for _, g := range groups {
		c.types += len(g.types)
	}
	c.mapper = sync.OnceValue(c.makeMapper)
	return c
}

// with returns c with other views of some of its groups.
func (c *snapshot) with(views []*groupView, coreUnknown, namedUnknown error) *snapshot {
	now := &snapshot{
		groups: slices.Clone(c.groups), byName: slices.Clone(c.byName), types: c.types,
		coreUnknown: coreUnknown, namedUnknown: namedUnknown,
	}
	for _, view := range views {
		old := c.group(view.name)
		now.groups[slices.Index(now.groups, old)] = view
		now.byName[slices.Index(now.byName, old)] = view
		now.types += len(view.types) - len(old.types)
	}
	now.mapper = sync.OnceValue(now.makeMapper)
	return now
}

// newGroupView lists what a group has. Of the errors of its versions, those count that
// leave something open.
func newGroupView(group groupDoc) *groupView {
	g := &groupView{name: group.name}
	versions := map[string][]string{}
	for _, version := range group.versions {
		g.versions = append(g.versions, version.name)
		if version.err != nil {
			if g.failed == nil {
				g.failed = map[string]error{}
			}
			g.failed[version.name] = version.err
		}
		for i := range version.resources {
			name := version.resources[i].GVR.Resource
			versions[name] = append(versions[name], version.name)
		}
		g.resources = append(g.resources, version.resources...)
	}
	for i := range g.resources {
		g.resources[i].Versions = versions[g.resources[i].GVR.Resource]
	}
	g.index = sync.OnceValue(g.makeIndex)
	return g
}

// same reports whether other says the same of everything.
func (c *snapshot) same(other *snapshot) bool {
	return slices.EqualFunc(c.groups, other.groups, func(a, b *groupView) bool { return a == b || a.same(b) }) &&
		errorText(c.coreUnknown) == errorText(other.coreUnknown) && errorText(c.namedUnknown) == errorText(other.namedUnknown) &&
		c.crdsRule == other.crdsRule
}

// decides reports whether the CRDs say all that there is to say of gr.
func (c *snapshot) decides(gr schema.GroupResource) bool {
	group := c.group(gr.Group)
	return group != nil && group.decided[gr.Resource]
}

// same reports whether other says the same of the group.
func (g *groupView) same(other *groupView) bool {
	return g.name == other.name && slices.Equal(g.versions, other.versions) && reflect.DeepEqual(g.resources, other.resources) &&
		maps.EqualFunc(g.failed, other.failed, func(a, b error) bool { return errorText(a) == errorText(b) }) &&
		slices.Equal(g.waiting, other.waiting) && maps.Equal(g.decided, other.decided) &&
		slices.EqualFunc(g.types, other.types, typeState.same)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// all returns all resources, those of a group by version, preferred first.
func (c *snapshot) all() iter.Seq[*Resource] {
	return func(yield func(*Resource) bool) {
		for _, group := range c.groups {
			for i := range group.resources {
				if !yield(&group.resources[i]) {
					return
				}
			}
		}
	}
}

// group returns the group of that name, or nil.
func (c *snapshot) group(name string) *groupView {
	i, found := slices.BinarySearchFunc(c.byName, name, func(g *groupView, name string) int { return strings.Compare(g.name, name) })
	if !found {
		return nil
	}
	return c.byName[i]
}

// served returns what is served as gvr, or nil.
func (c *snapshot) served(gvr schema.GroupVersionResource) *Resource {
	group := c.group(gvr.Group)
	if group == nil {
		return nil
	}
	at, served := group.index().byGVR[gvr]
	if !served {
		return nil
	}
	return &group.resources[at]
}

// groupsFor returns the groups in which r may be found.
func (c *snapshot) groupsFor(r reading) []*groupView {
	if r.anyGroup || r.form == kind { // a few resources have objects of another group
		return c.groups
	}
	if r.prefix {
		return slices.DeleteFunc(slices.Clone(c.groups), func(g *groupView) bool { return !strings.HasPrefix(g.name, r.group) })
	}
	if group := c.group(r.group); group != nil {
		return []*groupView{group}
	}
	return nil
}

func (g *groupView) makeIndex() *index {
	x := &index{
		byGVR: make(map[schema.GroupVersionResource]int, len(g.resources)),
		names: make(map[string][]hit, 4*len(g.resources)),
		kinds: make(map[string][]hit, len(g.resources)),
		types: make(map[string]int, len(g.types)),
	}
	for at := range g.types {
		x.types[g.types[at].resource.GVR.Resource] = at
	}
	for at := range g.resources {
		res := &g.resources[at]
		x.byGVR[res.GVR] = at
		x.kinds[res.GVK.Kind] = append(x.kinds[res.GVK.Kind], hit{at, kind})
		x.add(res.GVR.Resource, hit{at, plural})
		x.add(res.Singular, hit{at, singular})
		for _, name := range res.ShortNames {
			x.add(name, hit{at, shortName})
		}
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

// hits returns what of the group has the name that r asks for.
func (g *groupView) hits(r reading) []hit {
	if r.form == kind {
		return g.index().kinds[r.name]
	}
	return g.index().names[r.name]
}

// find returns what r names: of those in the first form of name that fits any, each
// group's in the version that the server prefers.
func (c *snapshot) find(r reading) []Resource {
	groups := c.groupsFor(r)
	best := anyForm
	for _, g := range groups {
		for _, h := range g.hits(r) {
			if h.form < best && r.matches(&g.resources[h.at], h.form) {
				best = h.form
			}
		}
	}
	if best == anyForm {
		return nil
	}
	var found []Resource
	for _, g := range groups {
		for _, h := range g.hits(r) {
			res := &g.resources[h.at]
			if h.form != best || !r.matches(res, h.form) {
				continue
			}
			if !slices.ContainsFunc(found, func(other Resource) bool { return other.GVR.GroupResource() == res.GVR.GroupResource() }) {
				found = append(found, *res)
			}
		}
	}
	elsewhere := func(res Resource) bool { return res.GVR.Group != r.group }
	if r.form == kind && !r.anyGroup && slices.ContainsFunc(found, func(res Resource) bool { return !elsewhere(res) }) {
		found = slices.DeleteFunc(found, elsewhere) // a kind's own group comes first
	}
	return found
}

// ofKind returns the resource whose objects are of gvk, in the preferred version if gvk
// has none. It is nil if there is none, or a choice, or a resource of another group or version
// than its objects: then the rules of the method that was called decide.
func (c *snapshot) ofKind(gvk schema.GroupVersionKind) *Resource {
	g := c.group(gvk.Group)
	if g == nil {
		return nil
	}
	var only *Resource
	for _, h := range g.index().kinds[gvk.Kind] {
		res := &g.resources[h.at]
		switch {
		case res.GVK.GroupVersion() != res.GVR.GroupVersion():
			return nil
		case gvk.Version != "" && res.GVK.Version != gvk.Version:
		case only == nil:
			only = res
		case only.GVR.Resource != res.GVR.Resource:
			return nil
		}
	}
	return only
}

// answer returns the one resource that q means in any of its readings.
func (c *snapshot) answer(q question) (Resource, error) {
	if gvr, full := q.gvr(); full {
		if res := c.served(gvr); res != nil {
			return *res, nil
		}
		return Resource{}, c.refuse(q)
	}
	for _, r := range q.readings() {
		found := c.find(r)
		switch {
		case len(found) == 0:
		case len(found) == 1 || (r.anyGroup || r.prefix) && ofKubernetes(found[0]):
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

// refuse returns the error for q, which nothing in the snapshot answers.
func (c *snapshot) refuse(q question) error {
	readings := q.readings()
	for _, r := range readings {
		if err := c.inconclusive(q, r); err != nil {
			return err
		}
	}
	for _, r := range readings {
		if err := c.unknownFor(r); err != nil {
			return inconclusive(q.ref, err)
		}
	}
	for _, r := range readings {
		if definition := c.waitingFor(r); definition != nil {
			return newNotEstablishedError(q, definition)
		}
	}
	absent := &NotServedError{Ref: q.ref, suggested: c.suggestions(q.ref), kind: q.form == kind, searched: q.searched()}
	for _, r := range readings {
		absent.GroupServed = absent.GroupServed || !r.anyGroup && !r.prefix && c.serves(r.group, r.version, q)
		if r.version != "" && absent.Versions == nil {
			r.version = ""
			if found := c.find(r); len(found) > 0 {
				absent.Versions = found[0].Versions
			}
		}
	}
	return absent
}

// suggestions returns what is to be suggested instead of ref.
func (c *snapshot) suggestions(ref Ref) *suggestions { return &suggestions{ref: ref, groups: c.groups} }

// unknownFor returns why not all groups are known that r may mean, or nil.
func (c *snapshot) unknownFor(r reading) error {
	switch {
	case r.anyGroup:
		return cmp.Or(c.coreUnknown, c.namedUnknown)
	case r.group == "":
		return c.coreUnknown
	}
	return c.namedUnknown
}

// serves reports whether there is such a group. Where the version was only guessed, as
// the first label of what may be the group, the version has to be there, too.
func (c *snapshot) serves(group, version string, q question) bool {
	g := c.group(group)
	if g == nil || len(g.versions) == 0 {
		return false
	}
	if version == "" || version == q.ref.Version {
		return true
	}
	_, failed := g.failed[version]
	return failed || slices.ContainsFunc(g.resources, func(res Resource) bool { return res.GVR.Version == version })
}

// inconclusive returns an error if a group version that q might mean failed: what was
// not found may be there.
func (c *snapshot) inconclusive(q question, r reading) error {
	failed := map[schema.GroupVersion]error{}
	for _, g := range c.groups {
		for version, err := range g.failed {
			if gv := (schema.GroupVersion{Group: g.name, Version: version}); r.covers(gv) {
				failed[gv] = err
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	gvs := slices.SortedFunc(maps.Keys(failed), func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	causes := make([]error, len(gvs))
	for i, gv := range gvs {
		causes[i] = failed[gv]
	}
	return inconclusive(q.ref, &causesError{causes}, gvs...)
}

// waitingFor returns a CRD that r names and that is not served, or nil.
func (c *snapshot) waitingFor(r reading) *crd {
	for _, g := range c.groupsFor(r) {
		for _, definition := range g.waiting {
			for i := range definition.Spec.Versions {
				v := &definition.Spec.Versions[i]
				if v.Served && r.covers(schema.GroupVersion{Group: definition.Spec.Group, Version: v.Name}) && definition.hasName(r) {
					return definition
				}
			}
		}
	}
	return nil
}

// memo remembers what references have been found to mean. It lives as long as the
// snapshot that it is about.
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

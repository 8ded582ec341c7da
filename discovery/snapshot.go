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

// errDisagree is the error for a new type that not all API servers, or not all caches of one server,
// know yet (kubernetes#115241).
var errDisagree = errors.New("the server lists the resource, but its group version does not have it yet; try again")

// snapshot is the known state of all types at one time. It is immutable. Unchanged groups and their
// indexes are shared with the previous snapshot, so that the cost of a change depends on its group
// only.
type snapshot struct {
	groups []*groupView // in the server's order
	byName []*groupView // the same, sorted by name
	// coreUnknown and namedUnknown are the errors for which the core group or the list of the named
	// groups is not known. Nil: it is known.
	coreUnknown, namedUnknown error
	// crdsRule reports whether all CRDs are known.
	crdsRule bool
	types    int // the number of served types

	mapper func() meta.RESTMapperWithContext
	memo   memo
}

// groupView is the known state of one group. It is immutable.
type groupView struct {
	name     string
	versions []string // empty if there are only CRDs that are not served
	// resources are sorted by version, the preferred one first.
	resources []Resource
	// failed are the existing versions whose requests failed. Their resources are the last known
	// ones.
	failed map[string]error
	// waiting are the existing CRDs of the group that are not served.
	waiting []*crd
	// types are the states of the types, each once.
	types []typeState
	// decided are the plurals for which the CRDs are conclusive: a version that is not listed is
	// not served, unless another server may serve the version: it is among foreign.
	decided map[string]bool
	foreign []string

	index func() *index
}

// index finds the resources of a group by name.
type index struct {
	byGVR map[schema.GroupVersionResource]int
	names map[string][]hit // in lower case
	kinds map[string][]hit // as they are
	types map[string]int   // in groupView.types, by plural
}

// hit is a resource with a name, in the order of groupView.resources.
type hit struct {
	at   int
	form nameForm
}

// newSnapshot returns a snapshot of groups, which are in the server's order.
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

// newGroupView returns the view of a group, without its types.
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

// same reports whether c and other are equal.
func (c *snapshot) same(other *snapshot) bool {
	return slices.EqualFunc(c.groups, other.groups, func(a, b *groupView) bool { return a == b || a.same(b) }) &&
		errorText(c.coreUnknown) == errorText(other.coreUnknown) && errorText(c.namedUnknown) == errorText(other.namedUnknown) &&
		c.crdsRule == other.crdsRule
}

// decides reports whether the CRDs are conclusive about gvr.
func (c *snapshot) decides(gvr schema.GroupVersionResource) bool {
	group := c.group(gvr.Group)
	return group != nil && group.decided[gvr.Resource] && !slices.Contains(group.foreign, gvr.Version)
}

// same reports whether g and other are equal.
func (g *groupView) same(other *groupView) bool {
	return g.name == other.name && slices.Equal(g.versions, other.versions) && reflect.DeepEqual(g.resources, other.resources) &&
		maps.EqualFunc(g.failed, other.failed, func(a, b error) bool { return errorText(a) == errorText(b) }) &&
		slices.Equal(g.waiting, other.waiting) && maps.Equal(g.decided, other.decided) && slices.Equal(g.foreign, other.foreign) &&
		slices.EqualFunc(g.types, other.types, typeState.same)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// all returns all resources, those of a group by version, the preferred one first.
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

// served returns the resource that is served as gvr, or nil.
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

// groupsFor returns the groups that may have the resource of r.
func (c *snapshot) groupsFor(r reading) []*groupView {
	if r.anyGroup || r.form == kind { // the objects of a few resources have another group
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

// hits returns the resources of the group with the name of r.
func (g *groupView) hits(r reading) []hit {
	if r.form == kind {
		return g.index().kinds[r.name]
	}
	return g.index().names[r.name]
}

// find returns the resources with the name of r: those for which it has the first form that matches any,
// in the preferred version of each group.
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

// ofKind returns the resource whose objects have the kind gvk, in the preferred version if gvk has none.
// It returns nil if there is none, if there are several, or if the resource has another group or version
// than its objects: then the rules of the called method decide.
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

// answer returns the resource of q, or the reason why there is none.
func (c *snapshot) answer(q question) (Resource, error) {
	res, err := c.lookUp(q)
	if errors.Is(err, errAbsent) {
		err = c.refuse(q)
	}
	return res, err
}

// errAbsent means that a snapshot has no resource of a question. [snapshot.refuse] has the reason, which takes
// longer to compute.
var errAbsent = errors.New("not served")

// lookUp returns the resource of the first reading of q that matches any, errAbsent or an [*AmbiguousError].
func (c *snapshot) lookUp(q question) (Resource, error) {
	if gvr, full := q.gvr(); full {
		if res := c.served(gvr); res != nil {
			return *res, nil
		}
		return Resource{}, errAbsent
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
	return Resource{}, errAbsent
}

// ofKubernetes reports whether res is in an API group of Kubernetes itself. These groups are the first of
// every server, and kubectl takes the first: "pods" is in the core group, also if another group has a
// resource of this name.
func ofKubernetes(res Resource) bool {
	return res.Backing != BackingCRD && res.Backing != BackingAggregated && scheme.Scheme.IsGroupRegistered(res.GVR.Group)
}

// refuse returns the error for q, which has no answer in the snapshot.
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
		if absent.Versions == nil && slices.Contains(absent.searched, r.version) { // not the first label of a group
			r.version = ""
			if found := c.find(r); len(found) > 0 {
				absent.Versions = found[0].Versions
			}
		}
	}
	return absent
}

// suggestions returns the suggestions for ref.
func (c *snapshot) suggestions(ref Ref) *suggestions { return &suggestions{ref: ref, groups: c.groups} }

// unknownFor returns the error for which not all possible groups of r are known, or nil.
func (c *snapshot) unknownFor(r reading) error {
	switch {
	case r.anyGroup:
		return cmp.Or(c.coreUnknown, c.namedUnknown)
	case r.group == "":
		return c.coreUnknown
	}
	return c.namedUnknown
}

// serves reports whether the group exists. If the version may be the first label of a group, the version
// must exist, too.
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

// inconclusive returns an error if a possible group version of q failed: it may have the resource.
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

// memo stores the resources of resolved references for one snapshot.
type memo struct {
	mu      sync.RWMutex
	answers map[string]Resource
}

// maxMemo is the maximum number of entries, since references may come from users.
const maxMemo = 4096

func (m *memo) get(ref string) (Resource, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	res, found := m.answers[ref]
	return res, found
}

func (m *memo) put(ref string, res Resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil {
		m.answers = map[string]Resource{}
	}
	if len(m.answers) < maxMemo {
		m.answers[ref] = res
	}
}

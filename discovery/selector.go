package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Selector selects types. Empty fields match all types: the zero Selector selects everything. It is a
// value: its slices are not changed.
type Selector struct {
	// Groups are API groups; "" is the core group.
	Groups []string
	// Resources are types by plural and group. The resource "*" means each type of the group.
	Resources []schema.GroupResource
	// Names are references as [Resolver.Resolve] takes them, such as short names or kinds: a type is selected if
	// one of them means it at present, in any version. The meaning of a name can change when any type of the
	// server changes.
	Names []string
	// Except are types that are not selected, in the form of Resources.
	Except []schema.GroupResource
	// Categories are categories such as "all". A type must have at least one of them.
	Categories []string
	// Verbs are verbs. A type must support all of them.
	Verbs []string
	// Scope is the scope of the type.
	Scope Scope
	// Backing is what serves the type. BackingCRD selects all types with a CustomResourceDefinition. For
	// the other values, the resolver must run.
	Backing Backing
	// CRDLabels selects types by the labels of their CustomResourceDefinitions. It does not select
	// types without a CustomResourceDefinition.
	CRDLabels labels.Selector
	// Versions selects the versions of each type. The default is the preferred version.
	Versions VersionPolicy
}

// Scope is the scope of a type.
type Scope string

// The scopes.
const (
	AnyScope        Scope = ""
	NamespaceScoped Scope = "Namespaced"
	ClusterScoped   Scope = "Cluster"
)

// Matches reports whether the selector selects res. It ignores CRDLabels and Names, since a Resource has
// neither the labels of its CRD nor the names of other types.
func (s Selector) Matches(res Resource) bool {
	return (len(s.Groups) == 0 || slices.Contains(s.Groups, res.GVR.Group)) &&
		(len(s.Resources) == 0 || hasResource(s.Resources, res.GVR)) && !hasResource(s.Except, res.GVR) &&
		(len(s.Categories) == 0 || slices.ContainsFunc(res.Categories, func(c string) bool { return slices.Contains(s.Categories, c) })) &&
		!slices.ContainsFunc(s.Verbs, func(verb string) bool { return !res.Supports(verb) }) &&
		(s.Scope == AnyScope || (s.Scope == NamespaceScoped) == res.Namespaced) &&
		(s.Backing == BackingUnknown || s.Backing == res.Backing) &&
		s.Versions.selects(&res)
}

// hasResource reports whether gvr is among resources.
func hasResource(resources []schema.GroupResource, gvr schema.GroupVersionResource) bool {
	return slices.ContainsFunc(resources, func(gr schema.GroupResource) bool {
		return gr.Group == gvr.Group && (gr.Resource == gvr.Resource || gr.Resource == "*")
	})
}

// invalidResource reports whether gr is neither a resource nor "*" with a group.
func invalidResource(gr schema.GroupResource) bool {
	if gr.Resource == "*" {
		gr.Resource = "any"
	}
	return checkParts(Ref{Resource: gr.Resource, Group: gr.Group}, false) != nil
}

// groups returns the only groups that may have types that s selects; none: all groups may.
func (s *Selector) groups() []string {
	if len(s.Groups) > 0 || len(s.Resources) == 0 {
		return s.Groups
	}
	groups := make([]string, len(s.Resources))
	for i, gr := range s.Resources {
		groups[i] = gr.Group
	}
	return groups
}

// ResolveAll returns the resources that s selects, in the server's order of groups, the preferred version
// of each first. It is not an error if s selects nothing.
//
// If a part of the server that may have more resources does not respond, ResolveAll returns the found
// resources and an [*InconclusiveError]. If a name is ambiguous, it returns the types of the other names
// and an [*AmbiguousError]. Selection by the labels of CRDs requires the permission to list CRDs.
func (r *Resolver) ResolveAll(ctx context.Context, s Selector) ([]Resource, error) {
	if ctx == nil {
		return nil, inconclusive(everyResource, errNilContext)
	}
	c := r.known(ctx)
	if c == nil {
		fresh, err := r.requestAll(ctx)
		if err != nil {
			return nil, inconclusive(everyResource, err)
		}
		c = fresh
	}
	if s.Backing != BackingUnknown && s.Backing != BackingCRD && r.current.Load() == nil {
		return nil, inconclusive(everyResource, errBacking)
	}
	defined, err := r.selectedByCRD(ctx, s, c)
	if err != nil {
		return nil, err
	}
	if s.Backing == BackingCRD {
		s.Backing = BackingUnknown // defined checks it
	}
	meant, ambiguous := c.meanings(s.Names)
	var found []Resource
	for res := range c.all() {
		if s.Matches(*res) && (len(s.Names) == 0 || meant[res.GVR.GroupResource()]) && defined(*res) {
			found = append(found, *res)
		}
	}
	if len(ambiguous) > 0 {
		return found, ambiguous[0]
	}
	return found, c.unaskedFor(s)
}

// selectedByCRD returns the function that reports whether s selects the CustomResourceDefinition of a resource. The server has none if its
// response is NotFound and c, the present snapshot, lacks them, too.
func (r *Resolver) selectedByCRD(ctx context.Context, s Selector, c *snapshot) (func(Resource) bool, error) {
	if s.CRDLabels == nil && s.Backing != BackingCRD {
		return func(Resource) bool { return true }, nil
	}
	definitions, err := r.crds(ctx)
	if _, refusal := c.answer(questionOfGVR(crdResource)); apierrors.IsNotFound(err) && errors.Is(refusal, ErrNotServed) {
		err = nil
	}
	if err != nil {
		return nil, inconclusive(everyResource, &crdListError{err})
	}
	return func(res Resource) bool {
		definition := definitions[res.GVR.GroupResource().String()]
		return definition != nil && (s.CRDLabels == nil || s.CRDLabels.Matches(labels.Set(definition.Labels)))
	}, nil
}

// meanings returns the types that names mean, and the errors of the names that mean several types.
func (c *snapshot) meanings(names []string) (meant map[schema.GroupResource]bool, ambiguous []*AmbiguousError) {
	meant = map[schema.GroupResource]bool{}
	for _, name := range names {
		q, err := parseQuestion(name)
		if err != nil {
			continue // it means nothing; Validate refuses it
		}
		res, err := c.lookUp(q)
		if err == nil {
			meant[res.GVR.GroupResource()] = true
		}
		if several, is := errors.AsType[*AmbiguousError](err); is {
			ambiguous = append(ambiguous, several)
		}
	}
	return meant, ambiguous
}

// errBacking is the error of ResolveAll for selection by backing if the resolver does not run.
var errBacking = errors.New("what serves a type is only known while Run runs")

// everyResource is the reference in errors of ResolveAll.
var everyResource = Ref{Resource: "*"}

// unaskedFor returns an error if there may be more resources that s selects.
func (c *snapshot) unaskedFor(s Selector) error {
	unknown := c.unknownFor(reading{anyGroup: true})
	groups := s.groups()
	if len(groups) > 0 {
		unknown = nil
		for _, group := range groups {
			unknown = cmp.Or(unknown, c.unknownFor(reading{group: group}))
		}
	}
	if unknown != nil {
		return inconclusive(everyResource, unknown)
	}
	every := reading{anyGroup: true}
	err := c.inconclusive(question{ref: everyResource}, every)
	var inconclusive *InconclusiveError
	if len(groups) == 0 || !errors.As(err, &inconclusive) {
		return err
	}
	for _, gv := range inconclusive.Failed {
		if slices.Contains(groups, gv.Group) {
			return err
		}
	}
	return nil
}

// crds returns the metadata of the CRDs, by name.
func (r *Resolver) crds(ctx context.Context) (map[string]*slimMeta, error) {
	if known := r.knownCRDs(); known != nil {
		return known, nil
	}
	rest, ok := r.server.(*restServer)
	if !ok {
		return nil, errNoWatch
	}
	metas, joined, err := r.metas.Do(ctx, struct{}{}, nil, rest.crds)
	if err == nil && joined { // it may be older than the call
		metas, _, err = r.metas.Do(ctx, struct{}{}, nil, rest.crds)
	}
	return metas, err
}

// knownCRDs returns the metadata of the CRDs that a run knows, or nil.
func (r *Resolver) knownCRDs() map[string]*slimMeta {
	r.mu.Lock()
	l := r.live
	r.mu.Unlock()
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.knowledge.crdsRule {
		return nil
	}
	return l.knowledge.metas()
}

// crds lists the metadata of the CRDs.
func (s *restServer) crds(ctx context.Context) (map[string]*slimMeta, error) {
	const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	body, err := s.fetch(ctx, crdPath, metadataOnly)
	if err != nil {
		return nil, err
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Metadata slimMeta `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("GET %s: %w", crdPath, err)
	}
	if list.Kind != "PartialObjectMetadataList" && list.Kind != "CustomResourceDefinitionList" {
		return nil, fmt.Errorf("GET %s: %w: kind %q", crdPath, errNoList, list.Kind)
	}
	metas := make(map[string]*slimMeta, len(list.Items))
	for i := range list.Items {
		metas[list.Items[i].Metadata.Name] = &list.Items[i].Metadata
	}
	return metas, nil
}

// ErrInvalidSelector means that a field of a selector has an invalid value. Type: [*SelectorError].
var ErrInvalidSelector = errors.New("invalid selector")

// SelectorError is the error for a [Selector] with an invalid value.
type SelectorError struct {
	// Field is the name of the field, and Value the invalid value.
	Field string
	Value string
}

func (e *SelectorError) Error() string {
	return fmt.Sprintf("invalid selector: %s can't be %q", e.Field, e.Value)
}

// Is reports whether target is ErrInvalidSelector.
func (e *SelectorError) Is(target error) bool { return target == ErrInvalidSelector }

// Validate returns a [*SelectorError] if a field of s has an invalid value, such as an unknown Scope, and
// nil otherwise. A selector that selects no type can be valid.
func (s Selector) Validate() error {
	for _, group := range s.Groups {
		if checkParts(Ref{Resource: "any", Group: group}, false) != nil {
			return &SelectorError{Field: "Groups", Value: group}
		}
	}
	resources, except := slices.IndexFunc(s.Resources, invalidResource), slices.IndexFunc(s.Except, invalidResource)
	names := slices.IndexFunc(s.Names, func(name string) bool { _, err := parseQuestion(name); return err != nil })
	switch {
	case resources >= 0:
		return &SelectorError{Field: "Resources", Value: s.Resources[resources].String()}
	case except >= 0:
		return &SelectorError{Field: "Except", Value: s.Except[except].String()}
	case names >= 0:
		return &SelectorError{Field: "Names", Value: s.Names[names]}
	case slices.Contains(s.Categories, ""):
		return &SelectorError{Field: "Categories"}
	case slices.Contains(s.Verbs, ""):
		return &SelectorError{Field: "Verbs"}
	case !slices.Contains([]Scope{AnyScope, NamespaceScoped, ClusterScoped}, s.Scope):
		return &SelectorError{Field: "Scope", Value: string(s.Scope)}
	case !slices.Contains([]Backing{BackingUnknown, BackingCRD, BackingAggregated, BackingBuiltIn}, s.Backing):
		return &SelectorError{Field: "Backing", Value: string(s.Backing)}
	}
	return nil
}

// errCRDsUnknown is the error for selection by a CustomResourceDefinition that is not known.
var errCRDsUnknown = errors.New("its CustomResourceDefinition is not known at present")

// errBackingUnknown is the error for selection by the backing of a type if a run does not know it.
var errBackingUnknown = errors.New("what serves it is not known at present")

// errNoRun is the error of Selects if the resolver does not run.
var errNoRun = errors.New("whether the selector selects it is only known while Run runs")

// Selects reports whether s selects res, the resource of an event of [Resolver.Subscribe]. It takes the facts
// that a Resource does not have, such as the labels of its CRD, from the run. It sends no request.
//
// If s has names, a backing or labels of CRDs, the error is an [*InconclusiveError] if the resolver does not run. If it has
// a backing or labels, also if the resolver may not list CustomResourceDefinitions or APIServices, or if the
// type's CRD was deleted or created again since the event: then the subscriber gets another event. The error is an
// [*AmbiguousError] if one of the names may mean res or another type. An event of one type can change what names
// mean, and so whether another type is selected.
func (r *Resolver) Selects(s Selector, res Resource) (bool, error) {
	selected, err := r.selectsWithoutNames(s, res)
	if !selected || err != nil || len(s.Names) == 0 {
		return selected, err
	}
	return r.means(s.Names, res)
}

// selectsWithoutNames is Selects without the names of s.
func (r *Resolver) selectsWithoutNames(s Selector, res Resource) (bool, error) {
	wanted := s.Backing
	s.Backing = BackingUnknown
	if !s.Matches(res) {
		return false, nil
	}
	if s.CRDLabels == nil && wanted == BackingUnknown {
		return true, nil
	}
	known, running := r.knownOf(res)
	if !running {
		return false, inconclusive(RefOf(res.GVR), errNoRun)
	}
	if s.CRDLabels != nil || wanted == BackingCRD {
		switch {
		case !known.crdsRule, !known.defined && res.CRDUID != "", known.defined && res.CRDUID != "" && known.uid != res.CRDUID:
			return false, inconclusive(RefOf(res.GVR), errCRDsUnknown)
		case !known.defined, s.CRDLabels != nil && !s.CRDLabels.Matches(known.labels): // Matches may be a user's code
			return false, nil
		case wanted == BackingUnknown, wanted == BackingCRD:
			return true, nil
		}
	}
	if known.backing == BackingUnknown {
		return false, inconclusive(RefOf(res.GVR), errBackingUnknown)
	}
	return known.backing == wanted, nil
}

// means reports whether one of names means the type of res at present.
func (r *Resolver) means(names []string, res Resource) (bool, error) {
	c := r.current.Load()
	if c == nil {
		r.widen()
		return false, inconclusive(RefOf(res.GVR), errNoRun)
	}
	gr := res.GVR.GroupResource()
	meant, ambiguous := c.meanings(names)
	if meant[gr] {
		return true, nil
	}
	for _, several := range ambiguous {
		if slices.ContainsFunc(several.Candidates, func(other Resource) bool { return other.GVR.GroupResource() == gr }) {
			return false, several
		}
	}
	return false, nil
}

// knownType has the facts of a type that its resource does not have.
type knownType struct {
	crdsRule bool // all CustomResourceDefinitions are known
	defined  bool // the type has one
	uid      types.UID
	labels   labels.Set // of the CustomResourceDefinition; never written to
	backing  Backing
}

// knownOf returns the facts of the type of res, and reports whether the resolver runs.
func (r *Resolver) knownOf(res Resource) (known knownType, running bool) {
	c := r.current.Load()
	if c == nil {
		r.widen()
		return known, false
	}
	state := c.group(res.GVR.Group).typeOf(res.GVR.Resource)
	known = knownType{crdsRule: c.crdsRule, defined: state.defined, uid: state.uid, labels: state.labels}
	known.backing = cmp.Or(res.Backing, state.resource.Backing)
	return known, true
}

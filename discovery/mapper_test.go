package discovery_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/gvrkit/gvrkit/discovery"
)

// stockMapper is client-go's mapper of what s serves now.
func stockMapper(t *testing.T, s *apiServer) meta.RESTMapper {
	t.Helper()
	client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}

// questions are what a mapper can be asked, with answers as they print.
func questions(m meta.RESTMapper) map[string]func() string {
	all := map[string]func() string{}
	say := func(answer any, err error) string {
		if err != nil {
			return fmt.Sprintf("no match: %v, ambiguous: %v", meta.IsNoMatchError(err), meta.IsAmbiguousError(err))
		}
		return fmt.Sprint(answer)
	}
	for _, gvr := range []schema.GroupVersionResource{
		pods, deployments, widgets, widgetsBeta, flanges, gizmos, crdBlocks, calicoBlocks, reviews,
		{Resource: "pods"},
		{Resource: "pod"},
		{Resource: "Pods"},
		{Resource: "widgets"},
		{Resource: "ipamblocks"},
		{Resource: "unicorns"},
		{Group: "example.com", Resource: "widgets"},
		{Group: "crd.projectcalico.org", Resource: "ipamblock"},
		{Group: "example.com", Version: "v7", Resource: "widgets"},
		{Version: "v1beta1", Resource: "widgets"},
		{Group: "nobody", Resource: "pods"},
	} {
		all["KindFor "+gvr.String()] = func() string { return say(m.KindFor(gvr)) }
		all["KindsFor "+gvr.String()] = func() string { return say(m.KindsFor(gvr)) }
		all["ResourceFor "+gvr.String()] = func() string { return say(m.ResourceFor(gvr)) }
		all["ResourcesFor "+gvr.String()] = func() string { return say(m.ResourcesFor(gvr)) }
	}
	for _, tc := range []struct {
		gk       schema.GroupKind
		versions []string
	}{
		{schema.GroupKind{Kind: "Pod"}, nil},
		{schema.GroupKind{Kind: "Pod"}, []string{"v1"}},
		{schema.GroupKind{Kind: "Pod"}, []string{"v2"}},
		{schema.GroupKind{Kind: "Pod"}, []string{"v2", "v1"}},
		{schema.GroupKind{Group: "example.com", Kind: "Widget"}, nil},
		{schema.GroupKind{Group: "example.com", Kind: "Widget"}, []string{"v1beta1"}},
		{schema.GroupKind{Group: "example.com", Kind: "Widget"}, []string{""}},
		{schema.GroupKind{Group: "example.com", Kind: "Flange"}, nil},
		{schema.GroupKind{Group: "example.com", Kind: "Flange"}, []string{"v1"}},
		{schema.GroupKind{Group: "acme.io", Kind: "Gizmo"}, nil},
		{schema.GroupKind{Group: "acme.io", Kind: "gizmo"}, nil},
		{schema.GroupKind{Kind: "Widget"}, nil},
		{schema.GroupKind{Group: "nobody", Kind: "Widget"}, nil},
	} {
		all[fmt.Sprintf("RESTMapping %v %v", tc.gk, tc.versions)] = func() string {
			mapping, err := m.RESTMapping(tc.gk, tc.versions...)
			return say(toldMapping(mapping), err)
		}
		all[fmt.Sprintf("RESTMappings %v %v", tc.gk, tc.versions)] = func() string {
			mappings, err := m.RESTMappings(tc.gk, tc.versions...)
			var told []string
			for _, mapping := range mappings {
				told = append(told, toldMapping(mapping))
			}
			return say(told, err)
		}
	}
	for _, resource := range []string{"pods", "widgets", "deployments"} {
		all["ResourceSingularizer "+resource] = func() string { return say(m.ResourceSingularizer(resource)) }
	}
	return all
}

func toldMapping(mapping *meta.RESTMapping) string {
	if mapping == nil {
		return "none"
	}
	return fmt.Sprint(mapping.Resource, mapping.GroupVersionKind, mapping.Scope.Name())
}

// For ambiguous and absent kinds, only the kind of the error is the same. Every server lists the preferred
// version first.
func TestRESTMapper_AnswersLikeClientGos(t *testing.T) {
	groups := everything()
	for i := range groups {
		groups[i].versions = slices.Clone(groups[i].versions)
		slices.SortStableFunc(groups[i].versions, func(a, b version) int { return groups[i].rank(a) - groups[i].rank(b) })
	}
	for _, f := range formats {
		s := newServer(t, f, groups...)
		stock := questions(stockMapper(t, s))
		for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
			t.Run(string(f)+" "+name, func(t *testing.T) {
				for question, ask := range questions(r.RESTMapper()) {
					if diff := cmp.Diff(stock[question](), ask()); diff != "" {
						t.Errorf("%s (-client-go +ours):\n%s", question, diff)
					}
				}
			})
		}
	}
}

func TestRESTMapper_FollowsChanges(t *testing.T) {
	s, crds := crdServer(t)
	r := run(t, s, never())
	m := r.RESTMapper()
	l := listen(t, r)
	gadget := schema.GroupKind{Group: "example.org", Kind: "Gadget"}
	if _, err := m.RESTMapping(gadget); !meta.IsNoMatchError(err) {
		t.Errorf("before the CRD: %v", err)
	}
	d := define(gadgetsCRD, "1")
	crds.put(d.object())
	l.wants("Added gadgets.v1.example.org")
	if got, err := m.RESTMapping(gadget); err != nil || got.Resource != gadgets || got.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("with the CRD: %v, %v", got, err)
	}
	d.scope, d.versions, d.served["v2"] = "Cluster", []string{"v1", "v2"}, true
	crds.put(d.object())
	l.wants("Changed gadgets.v2.example.org [Versions Scope]")
	if got, err := m.RESTMapping(gadget); err != nil || got.Resource.Version != "v2" || got.Scope.Name() != meta.RESTScopeNameRoot {
		t.Errorf("another version and scope: %v, %v", got, err)
	}
	d.served["v2"] = false
	crds.put(d.object())
	l.wants("Changed gadgets.v1.example.org [Versions]")
	if _, err := m.RESTMapping(gadget, "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("of a version that is gone: %v", err)
	}
	crds.remove(gadgetsCRD)
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
	if _, err := m.RESTMapping(gadget); !meta.IsNoMatchError(err) {
		t.Errorf("without the CRD: %v", err)
	}
}

func TestRESTMapper_KnownTypesNeedNoRequest(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	m := run(t, s, never()).RESTMapper()
	s.paths()
	for range 1000 {
		if _, err := m.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

func TestRESTMapper_AnAbsentKindNeedsOneRequest(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	s.paths()
	for range 100 {
		if _, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Unicorn"}); !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
	if got := s.paths(); len(got) > 2 {
		t.Errorf("requests: %v", got)
	}
}

// client-go's mapper returns a no-match error.
func TestRESTMapper_AFailedGroupIsNotAbsent(t *testing.T) {
	for _, f := range formats {
		s := newServer(t, f, coreGroup, stale(calicoGroup, "v3"))
		for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
			t.Run(string(f)+" "+name, func(t *testing.T) {
				m := r.RESTMapper()
				_, err := m.RESTMapping(schema.GroupKind{Group: "projectcalico.org", Kind: "IPAMBlock"})
				checkKind(t, err, discovery.ErrInconclusive)
				if meta.IsNoMatchError(err) {
					t.Errorf("to apimachinery it matches nothing: %v", err)
				}
				_, err = m.ResourceFor(schema.GroupVersionResource{Group: "projectcalico.org", Resource: "ipamblocks"})
				checkKind(t, err, discovery.ErrInconclusive)
				if _, err := m.RESTMapping(schema.GroupKind{Kind: "Pod"}); err != nil {
					t.Errorf("of a healthy group: %v", err)
				}
			})
		}
	}
}

func TestRESTMapper_AnUnreachableServerIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	s.answer("*", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	_, err := s.resolver(t).RESTMapper().RESTMapping(schema.GroupKind{Kind: "Pod"})
	checkKind(t, err, discovery.ErrInconclusive)
}

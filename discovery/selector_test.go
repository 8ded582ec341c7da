package discovery_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

func refs(resources []discovery.Resource) string {
	var out []string
	for _, res := range resources {
		out = append(out, discovery.RefOf(res.GVR).String())
	}
	return strings.Join(out, " ")
}

func TestResolveAll_SelectsInTheServersOrder(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
				for _, tc := range []struct {
					name     string
					selector discovery.Selector
					want     string
				}{
					{"groups", discovery.Selector{Groups: []string{"example.com", ""}}, "pods.v1 componentstatuses.v1 widgets.v1.example.com flanges.v1beta1.example.com"},
					{"every version", discovery.Selector{Groups: []string{"example.com"}, Versions: discovery.EveryVersion()}, "widgets.v1.example.com widgets.v1beta1.example.com flanges.v1beta1.example.com"},
					{"the first of several versions", discovery.Selector{Groups: []string{"example.com"}, Versions: discovery.FirstOf("v2", "v1beta1", "v1")}, "widgets.v1beta1.example.com flanges.v1beta1.example.com"},
					{"none of several versions", discovery.Selector{Groups: []string{"example.com"}, Versions: discovery.FirstOf("v2")}, ""},
					{"category", discovery.Selector{Categories: []string{"all", "none"}}, "pods.v1"},
					{"verbs", discovery.Selector{Groups: []string{"", "authentication.k8s.io"}, Verbs: []string{"list", "get"}}, "pods.v1 componentstatuses.v1"},
					{"cluster scope", discovery.Selector{Groups: []string{"", "apps", "acme.io"}, Scope: discovery.ClusterScoped}, "componentstatuses.v1 gizmos.stable.acme.io"},
					{"namespaces", discovery.Selector{Groups: []string{"", "apps"}, Scope: discovery.NamespaceScoped}, "pods.v1 deployments.v1.apps"},
					{"resources", discovery.Selector{Resources: []schema.GroupResource{{Group: "example.com", Resource: "flanges"}, {Resource: "pods"}, {Group: "acme.io", Resource: "pods"}}}, "pods.v1 flanges.v1beta1.example.com"},
					{"each resource of a group", discovery.Selector{Resources: []schema.GroupResource{{Group: "example.com", Resource: "*"}}}, "widgets.v1.example.com flanges.v1beta1.example.com"},
					{"exceptions", discovery.Selector{Groups: []string{"example.com", ""}, Except: []schema.GroupResource{{Group: "example.com", Resource: "widgets"}, {Resource: "*"}}}, "flanges.v1beta1.example.com"},
					{"names", discovery.Selector{Names: []string{"po", "ipamblocks.crd", "example.com/v1beta1, Kind=Flange", "missing"}}, "pods.v1 flanges.v1beta1.example.com ipamblocks.v1.crd.projectcalico.org"},
					{"names and groups", discovery.Selector{Names: []string{"po", "Widget"}, Groups: []string{"example.com"}}, "widgets.v1.example.com"},
					{"nothing", discovery.Selector{Groups: []string{"nobody"}}, ""},
					{"everything", discovery.Selector{}, "pods.v1 componentstatuses.v1 deployments.v1.apps tokenreviews.v1.authentication.k8s.io widgets.v1.example.com " +
						"flanges.v1beta1.example.com gizmos.stable.acme.io sprockets.v2.v1.acme.io ipamblocks.v3.projectcalico.org ipamblocks.v1.crd.projectcalico.org"},
				} {
					got, err := r.ResolveAll(t.Context(), tc.selector)
					if err != nil || refs(got) != tc.want {
						t.Errorf("%s, %s = %s, %v; want %s", name, tc.name, refs(got), err, tc.want)
					}
				}
			}
		})
	}
}

func TestResolveAll_SelectsByCRDs(t *testing.T) {
	labelled := define("widgets.example.org", "2")
	labelled.labels = map[string]string{"team": "net"}
	s, _ := crdServer(t, define(gadgetsCRD, "1"), labelled)
	s.serve(coreGroup, group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "gadgets", Kind: "Gadget", Verbs: all}, {Name: "widgets", Kind: "Widget", Verbs: all},
	}}}})
	for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
		for _, tc := range []struct {
			selector discovery.Selector
			want     string
		}{
			{discovery.Selector{Backing: discovery.BackingCRD}, "gadgets.v1.example.org widgets.v1.example.org"},
			{discovery.Selector{CRDLabels: labels.SelectorFromSet(labels.Set{"team": "net"})}, "widgets.v1.example.org"},
			{discovery.Selector{CRDLabels: labels.Everything(), Groups: []string{""}}, ""},
		} {
			got, err := r.ResolveAll(t.Context(), tc.selector)
			if err != nil || refs(got) != tc.want {
				t.Errorf("%s: %+v = %s, %v; want %s", name, tc.selector, refs(got), err, tc.want)
			}
		}
	}
}

func TestResolveAll_ReturnsTheRestIfAGroupFails(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, stale(calicoGroup, "v3"))
	r := s.resolver(t)
	got, err := r.ResolveAll(t.Context(), discovery.Selector{Verbs: []string{"watch"}})
	inconclusive := asType[*discovery.InconclusiveError](t, err, discovery.ErrInconclusive)
	if refs(got) != "pods.v1" || len(inconclusive.Failed) != 1 || inconclusive.Failed[0].String() != "projectcalico.org/v3" {
		t.Errorf("ResolveAll = %s, %v", refs(got), err)
	}
	if _, err := r.ResolveAll(t.Context(), discovery.Selector{Groups: []string{""}}); err != nil {
		t.Errorf("of a healthy group: %v", err)
	}
	if got, err := r.ResolveAll(t.Context(), discovery.Selector{Resources: []schema.GroupResource{{Resource: "pods"}}}); err != nil || refs(got) != "pods.v1" {
		t.Errorf("of a resource in a healthy group: %s, %v", refs(got), err)
	}
	s.answer("*", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	if _, err := s.resolver(t).ResolveAll(t.Context(), discovery.Selector{}); !errors.Is(err, discovery.ErrInconclusive) {
		t.Errorf("of a group that does not exist: %v", err)
	}
}

func TestResolveAll_CRDsThatCannotBeListedAreInconclusive(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	_, err := s.resolver(t).ResolveAll(t.Context(), discovery.Selector{Backing: discovery.BackingCRD})
	checkKind(t, err, discovery.ErrInconclusive)
	const want = "*: discovery can't tell whether there are more resources: the CustomResourceDefinitions can't be listed: " +
		"Forbidden says the server; allow the user to list customresourcedefinitions.apiextensions.k8s.io"
	if err.Error() != want {
		t.Errorf("text = %q, want %q", err, want)
	}
}

// The response NotFound to the list of CRDs may be that of a proxy, or of a server that starts.
func TestResolveAll_CRDsThatAreNotFoundAreNoneOnlyIfDocumentsLackThem(t *testing.T) {
	for name, selector := range map[string]discovery.Selector{"backing": {Backing: discovery.BackingCRD}, "labels": {CRDLabels: labels.Everything()}} {
		for _, runs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, runs=%v", name, runs), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
					t.Helper()
					w.update(func() {
						w.setCRD(gadget("v1"))
						w.fault["crds.list"] = "404"
					})
					sleep(3 * time.Second)
					if runs {
						runFor(t, r)
						sleep(time.Second)
					}
					got, err := r.ResolveAll(t.Context(), selector)
					if !errors.Is(err, discovery.ErrInconclusive) {
						t.Errorf("documents list CRDs: %s, %v", refs(got), err)
					}
					w.update(func() { w.dropAPI("v1.apiextensions.k8s.io") })
					sleep(5 * time.Minute)
					if got, err := r.ResolveAll(t.Context(), selector); err != nil || len(got) > 0 {
						t.Errorf("documents lack CRDs: %s, %v", refs(got), err)
					}
				})
			})
		}
	}
}

func TestSelector_Validate(t *testing.T) {
	for field, s := range map[string]discovery.Selector{
		"":           {Groups: []string{"", "example.com"}, Categories: []string{"all"}, Verbs: []string{"list"}, Scope: discovery.ClusterScoped, Backing: discovery.BackingCRD, Versions: discovery.EveryVersion()},
		"Groups":     {Groups: []string{"example.com", "Example com"}},
		"Resources":  {Resources: []schema.GroupResource{{Group: "example.com", Resource: "*"}, {}}},
		"Except":     {Resources: []schema.GroupResource{{Resource: "pods"}}, Except: []schema.GroupResource{{Group: "Example com", Resource: "*"}}},
		"Names":      {Names: []string{"po", "pods/log/of/what"}},
		"Categories": {Categories: []string{"all", ""}},
		"Verbs":      {Verbs: []string{""}},
		"Scope":      {Scope: "Galaxy"},
		"Backing":    {Backing: "Etcd"},
	} {
		err := s.Validate()
		if field == "" {
			if err != nil {
				t.Errorf("valid: %v", err)
			}
			continue
		}
		bad, is := errors.AsType[*discovery.SelectorError](err)
		if !is || bad.Field != field || !errors.Is(err, discovery.ErrInvalidSelector) {
			t.Errorf("wrong %s: %v", field, err)
		}
	}
}

func ofTeam(team string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"team": team})
}

func TestSelects_UsesTheRunsKnowledge(t *testing.T) {
	labelled := define(gadgetsCRD, "1")
	labelled.labels = map[string]string{"team": "net"}
	s, crds := crdServer(t, labelled)
	r := run(t, s, never())
	l := listen(t, r, discovery.WithLabelChanges())
	gadget, err := r.ResolveGVR(t.Context(), gadgets)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := r.Resolve(t.Context(), "pods")
	if err != nil {
		t.Fatal(err)
	}
	net := discovery.Selector{CRDLabels: ofTeam("net")}
	unknownBacking := gadget
	unknownBacking.Backing = discovery.BackingUnknown
	for _, tc := range []struct {
		name     string
		selector discovery.Selector
		res      discovery.Resource
		want     bool
	}{
		{"label", net, gadget, true},
		{"another label", discovery.Selector{CRDLabels: ofTeam("other")}, gadget, false},
		{"label and group", discovery.Selector{CRDLabels: ofTeam("net"), Groups: []string{"other"}}, gadget, false},
		{"label and backing", discovery.Selector{CRDLabels: ofTeam("net"), Backing: discovery.BackingBuiltIn}, gadget, false},
		{"label of no CRD", net, pod, false},
		{"backing", discovery.Selector{Backing: discovery.BackingCRD}, gadget, true},
		{"backing of no CRD", discovery.Selector{Backing: discovery.BackingCRD}, pod, false},
		{"built in", discovery.Selector{Backing: discovery.BackingBuiltIn}, pod, true},
		{"not built in, as is known since", discovery.Selector{Backing: discovery.BackingBuiltIn}, unknownBacking, false},
		{"everything", discovery.Selector{}, pod, true},
	} {
		if got, err := r.Selects(tc.selector, tc.res); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}

	labelled.labels = map[string]string{"team": "other"}
	crds.put(labelled.object())
	l.wants("Changed gadgets.v1.example.org [Labels]")
	if got, err := r.Selects(net, gadget); err != nil || got {
		t.Errorf("after the change: %v, %v", got, err)
	}

	labelled.uid = "2"
	crds.put(labelled.object())
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org")
	_, err = r.Selects(net, gadget) // of the first
	checkKind(t, err, discovery.ErrInconclusive)
	crds.remove(gadgetsCRD)
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
	_, err = r.Selects(net, gadget)
	checkKind(t, err, discovery.ErrInconclusive)
}

// An ambiguous name selects nothing. For the types that it may mean, that is an error; for others it is not.
func TestSelects_Names(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := run(t, s, never())
	names := []string{"ipamblocks", "po", "Widget"} // the first is in two groups
	for ref, want := range map[string]string{
		"pods": "true <nil>", "widgets.v1beta1.example.com": "true <nil>", "deployments": "false <nil>",
		"ipamblocks.crd.projectcalico.org": "ambiguous", "ipamblocks.projectcalico.org": "ambiguous",
	} {
		res, err := r.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		selects, err := r.Selects(discovery.Selector{Names: names, Versions: discovery.EveryVersion()}, res)
		got := fmt.Sprint(selects, " ", err)
		if errors.Is(err, discovery.ErrAmbiguous) {
			got = "ambiguous"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
	got, err := r.ResolveAll(t.Context(), discovery.Selector{Names: names})
	if !errors.Is(err, discovery.ErrAmbiguous) || refs(got) != "pods.v1 widgets.v1.example.com" {
		t.Errorf("ResolveAll = %s, %v", refs(got), err)
	}
}

func TestSelects_IsInconclusiveWithoutKnowledge(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	res := discovery.Resource{GVR: gadgets}
	byLabel, byBacking := discovery.Selector{CRDLabels: labels.Everything()}, discovery.Selector{Backing: discovery.BackingAggregated}
	for _, selector := range []discovery.Selector{byLabel, byBacking, {Names: []string{"gadgets"}}} {
		_, err := s.resolver(t).Selects(selector, res)
		checkKind(t, err, discovery.ErrInconclusive)
		if !strings.Contains(err.Error(), "while Run runs") {
			t.Errorf("without a run: %v", err)
		}
	}
	s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	r := run(t, s, never())
	for _, selector := range []discovery.Selector{byLabel, byBacking} {
		_, err := r.Selects(selector, res)
		checkKind(t, err, discovery.ErrInconclusive)
		if strings.Contains(err.Error(), "while Run runs") {
			t.Errorf("during a run: %v", err)
		}
	}
	_, err := s.resolver(t).Selects(discovery.Selector{Names: []string{"gadgets"}}, res)
	if err == nil || strings.Contains(err.Error(), "what serves a type") {
		t.Errorf("by name: %v", err)
	}
	if got, err := r.Selects(discovery.Selector{Groups: []string{gadgets.Group}}, res); err != nil || !got {
		t.Errorf("by group: %v, %v", got, err)
	}
}

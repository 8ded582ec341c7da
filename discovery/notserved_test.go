package discovery_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// notServed is what a NotServedError says, but for the reference.
type notServed struct {
	versions string
	near     string
	text     string
}

func TestResolve_NotServedErrorHasVersionsAndSuggestions(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			r := s.resolver(t)
			for _, tc := range []struct {
				why, ref string
				want     notServed
			}{
				{"one other version", "pods.v2", notServed{
					"v1", "pods", "pods.v2: not served by the API server in version v2; it is served in v1",
				}},
				{"several other versions", "widgets.v2.example.com", notServed{
					"v1 v1beta1", "widgets.example.com",
					"widgets.v2.example.com: not served by the API server in version v2; it is served in v1, v1beta1",
				}},
				{"one version of the group has it", "flanges.v1.example.com", notServed{
					"v1beta1", "flanges.example.com",
					"flanges.v1.example.com: not served by the API server in version v1; it is served in v1beta1",
				}},
				{"the version is the first label of a group", "widgets.wrong.example.com", notServed{
					"", "widgets.example.com", "widgets.wrong.example.com: not served by the API server; did you mean widgets.example.com?",
				}},
				{"another group has it", "deployments.extensions", notServed{
					"", "deployments.apps", "deployments.extensions: not served by the API server; did you mean deployments.apps?",
				}},
				{"two other groups have it", "ipamblocks.calico.org", notServed{
					"", "ipamblocks.projectcalico.org ipamblocks.crd.projectcalico.org",
					"ipamblocks.calico.org: not served by the API server; " +
						"did you mean ipamblocks.projectcalico.org or ipamblocks.crd.projectcalico.org?",
				}},
				{"another group has it in that version", "deployments.v1", notServed{
					"", "deployments.apps", "deployments.v1: not served by the API server; did you mean deployments.apps?",
				}},
				{"another group has the kind", "ComponentStatus.apps", notServed{
					"", "componentstatuses", "ComponentStatus.apps: not served by the API server; did you mean componentstatuses?",
				}},
				{"typo", "widgzts", notServed{
					"", "widgets.example.com",
					"widgzts: not served by the API server; did you mean widgets.example.com?",
				}},
				{"letter too many", "sprockettts", notServed{
					"", "sprockets.v1.acme.io", "sprockettts: not served by the API server; did you mean sprockets.v1.acme.io?",
				}},
				{"nothing near", "unicorns", notServed{
					"", "", "unicorns: not served by the API server; is its CustomResourceDefinition installed?",
				}},
				{"nothing near in a full reference", "unicorns.v1.example.com", notServed{
					"", "", "unicorns.v1.example.com: not served by the API server; is its CustomResourceDefinition installed?",
				}},
				{"subresources are not near", "podslog", notServed{
					"", "", "podslog: not served by the API server; is its CustomResourceDefinition installed?",
				}},
			} {
				t.Run(tc.why, func(t *testing.T) {
					got, err := r.Resolve(t.Context(), tc.ref)
					checkNotServed(t, err, tc.ref, tc.want)
					if diff := cmp.Diff(discovery.Resource{}, got); diff != "" {
						t.Errorf("Resolve returned something besides the error:\n%s", diff)
					}
				})
			}
		})
	}
}

func checkNotServed(t *testing.T, err error, ref string, want notServed) {
	t.Helper()
	absent := asType[*discovery.NotServedError](t, err, discovery.ErrNotServed)
	if !meta.IsNoMatchError(err) || meta.IsAmbiguousError(err) {
		t.Error("to apimachinery it is not a resource that matches nothing")
	}
	if got := absent.Ref.String(); got != ref {
		t.Errorf("reference = %s, want %s", got, ref)
	}
	var near []string
	for _, ref := range absent.Suggestions() {
		near = append(near, ref.String())
	}
	got := notServed{strings.Join(absent.Versions, " "), strings.Join(near, " "), err.Error()}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(notServed{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", ref, diff)
	}
}

func TestNotServedError_UnwrapsToTheResource(t *testing.T) {
	_, err := newServer(t, aggregated, coreGroup).resolver(t).Resolve(t.Context(), "widgets.v1.example.com")
	unwrapped := asType[*meta.NoResourceMatchError](t, err, discovery.ErrNotServed)
	if diff := cmp.Diff(&meta.NoResourceMatchError{PartialResource: widgets}, unwrapped); diff != "" {
		t.Errorf("unwrapped (-want +got):\n%s", diff)
	}
}

// served makes a group of one version with resources of these names.
func served(groupName string, names ...string) group {
	v := version{name: "v1"}
	for _, name := range names {
		v.resources = append(v.resources, metav1.APIResource{Name: name, Kind: "Irrelevant", Verbs: all})
	}
	return group{name: groupName, versions: []version{v}}
}

func TestSuggestions_AreThreeAtMostAndBestFirst(t *testing.T) {
	s := newServer(t, aggregated,
		served("a.com", "blocxx", "blockss", "sockets"), // two wrong letters, one too many, too many wrong
		served("b.com", "block", "clocks", "blocks"),
	)
	_, err := s.resolver(t).Resolve(t.Context(), "blocks.c.com")
	checkNotServed(t, err, "blocks.c.com", notServed{
		"", "blocks.b.com block.b.com blockss.a.com",
		"blocks.c.com: not served by the API server; did you mean blocks.b.com or block.b.com or blockss.a.com?",
	})
}

// A kind instead of the plural is the usual mistake in a GVR: similar names are not meant.
func TestSuggestions_OfAKindAreOnlyItsResource(t *testing.T) {
	g := group{name: "a.com", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "gadgets", Kind: "Gadget", Verbs: all}, {Name: "widgets", Kind: "Widget", Verbs: all},
	}}}}
	_, err := newServer(t, aggregated, g).resolver(t).Validate(t.Context(), schema.GroupVersionResource{Group: "a.com", Version: "v1", Resource: "Widget"})
	checkNotServed(t, err, "Widget.v1.a.com", notServed{
		"", "widgets.a.com", "Widget.v1.a.com: not served by the API server; did you mean widgets.a.com?",
	})
}

func TestSuggestions_DifferByAThirdAtMost(t *testing.T) {
	for _, tc := range []struct{ ref, served, near string }{
		{"po", "pod", "pod.a.com"}, // of a short name, one
		{"po", "pods", ""},
		{"p", "unicorns", ""}, // nor is the singular that the server does not tell
		{"blocks", "blxxks", "blxxks.a.com"},
		{"blocks", "bxxxks", ""},
		{"ipamblocks", "ipamxxxcks", "ipamxxxcks.a.com"},
		{"ipamblocks", "ipamxxxxks", ""},
		{"ipamblocks", "ipamblocksxxx", "ipamblocksxxx.a.com"},
		{"ipamblocks", "ipamblo", "ipamblo.a.com"},
	} {
		_, err := newServer(t, aggregated, served("a.com", tc.served)).resolver(t).Resolve(t.Context(), tc.ref)
		var got []string
		for _, ref := range asType[*discovery.NotServedError](t, err, discovery.ErrNotServed).Suggestions() {
			got = append(got, ref.String())
		}
		if strings.Join(got, " ") != tc.near {
			t.Errorf("%s near %s = %v, want %q", tc.served, tc.ref, got, tc.near)
		}
	}
}

func TestSuggestions_AreFoundByEachNameForm(t *testing.T) {
	s := newServer(t, aggregated, group{name: "a.com", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "sheep", SingularName: "ewe", Kind: "BGPRule", Verbs: all, ShortNames: []string{"unrelated", "fw"}},
	}}}})
	r := s.resolver(t)
	for _, ref := range []string{"sheep.b.com", "Sheep.b.com", "ewe.b.com", "EWE.b.com", "BGPRule.b.com", "bgprules", "unrelated.b.com", "fw.b.com"} {
		_, err := r.Resolve(t.Context(), ref)
		checkNotServed(t, err, ref, notServed{
			"", "sheep.a.com", ref + ": not served by the API server; did you mean sheep.a.com?",
		})
	}
}

// A resource in many versions is one suggestion, with the distance of its most similar name.
func TestSuggestions_HaveEachResourceOnce(t *testing.T) {
	_, err := newServer(t, legacy, served("a.com", "fidget"), exampleGroup).resolver(t).Resolve(t.Context(), "Widgert")
	checkNotServed(t, err, "Widgert", notServed{
		"", "widgets.example.com fidget.a.com",
		"Widgert: not served by the API server; did you mean widgets.example.com or fidget.a.com?",
	})
}

// An invalid entry may be the resource of the question. The valid entries are served.
func TestResolve_EntriesWithoutANameMakeTheirGroupVersionInconclusive(t *testing.T) {
	spoilt := group{name: "example.com", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Kind: "Gizmo", Verbs: all},
		{Name: "widgets", Kind: "Widget", Verbs: all},
		{Name: "gadgets", Verbs: all},
	}}}}
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			r := newServer(t, f, coreGroup, spoilt).resolver(t)
			_, err := r.Resolve(t.Context(), "gizmo")
			failed := checkInconclusive(t, err, "gizmo", nil)
			if diff := cmp.Diff([]schema.GroupVersion{widgets.GroupVersion()}, failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if got, err := r.Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
				t.Errorf("Resolve of a whole entry = %v, %v", got.GVR, err)
			}
		})
	}
}

// A group version that can't tell all its resources has the valid ones.
func TestValidate_AnEntryBesideInvalidOnesIsServed(t *testing.T) {
	spoilt := group{name: "example.com", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Verbs: all},
		{Name: "gadgets", Verbs: all},
	}}}}
	for name, resolver := range map[string]func(t *testing.T) *discovery.Resolver{
		"without a run": func(t *testing.T) *discovery.Resolver {
			t.Helper()
			return newServer(t, aggregated, coreGroup, spoilt).resolver(t)
		},
		"with a run that does not know it yet": func(t *testing.T) *discovery.Resolver {
			t.Helper()
			s := newServer(t, aggregated, coreGroup)
			r := run(t, s, never())
			s.serve(coreGroup, spoilt)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolver(t)
			if got, err := r.ResolveGVR(t.Context(), widgets); err != nil || got.GVR != widgets {
				t.Errorf("ResolveGVR = %v, %v", got.GVR, err)
			}
			gadgets := widgets.GroupVersion().WithResource("gadgets")
			_, err := r.ResolveGVR(t.Context(), gadgets)
			checkInconclusive(t, err, discovery.RefOf(gadgets).String(), nil)
		})
	}
}

// KubeVirt's server lists expand-vm-spec so.
func TestResolve_AnEntryWithoutKindAndVerbsIsNoResource(t *testing.T) {
	virt := group{name: "subresources.kubevirt.io", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "expand-vm-spec", Namespaced: true}, {Name: "virtualmachines/start", Namespaced: true},
	}}}}
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			r := newServer(t, f, coreGroup, exampleGroup, virt).resolver(t)
			for _, ref := range []string{"unicorns", "expand-vm-spec"} {
				_, err := r.Resolve(t.Context(), ref)
				checkKind(t, err, discovery.ErrNotServed)
			}
			if _, err := r.ResolveAll(t.Context(), discovery.Selector{}); err != nil {
				t.Errorf("ResolveAll: %v", err)
			}
		})
	}
}

func TestResolve_ServerWithoutCoreGroupIsNoError(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, exampleGroup)
			if got, err := s.resolver(t).Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
				t.Errorf("Resolve = %v, %v", got.GVR, err)
			}
			_, err := s.resolver(t).Resolve(t.Context(), "pods")
			checkKind(t, err, discovery.ErrNotServed)
		})
	}
}

func TestResolve_GroupWithoutVersionsIsNoError(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, group{name: "empty.example.com"}, exampleGroup)
			if got, err := s.resolver(t).Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
				t.Errorf("Resolve = %v, %v", got.GVR, err)
			}
		})
	}
}

func TestSuggestions_PreferSimilarGroups(t *testing.T) {
	_, err := newServer(t, aggregated, calicoGroup, crdCalicoGroup).resolver(t).Resolve(t.Context(), "ipamblcks.projectcalico.org")
	if got := asType[*discovery.NotServedError](t, err, discovery.ErrNotServed).Suggestions()[0].String(); got != "ipamblocks.projectcalico.org" {
		t.Errorf("first suggestion = %s", got)
	}
}

package discovery_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestResolve_FindsTheResourceOfAReference(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			r := s.resolver(t)
			for _, tc := range []struct {
				ref  string
				want schema.GroupVersionResource
			}{
				{"pods", pods},
				{"pods.v1", pods},
				{"pods.v1.", pods},
				{"deployments", deployments},
				{"deployments.apps", deployments},
				{"deployments.v1.apps", deployments},
				{"ipamblocks.crd.projectcalico.org", crdBlocks},
				{"ipamblocks.projectcalico.org", calicoBlocks},
				{"ipamblocks.v1.crd.projectcalico.org", crdBlocks},
				// The preferred version wins, and flanges are only in the other.
				{"widgets", widgets},
				{"widgets.example.com", widgets},
				{"widgets.v1beta1.example.com", widgetsBeta},
				{"flanges", flanges},
				{"flanges.example.com", flanges},
				// A version with a name of its own, and a group that begins like a version.
				{"gizmos", gizmos},
				{"gizmos.acme.io", gizmos},
				{"gizmos.stable.acme.io", gizmos},
				{"sprockets", sprockets},
				{"sprockets.v1.acme.io", sprockets},
				{"sprockets.v2.v1.acme.io", sprockets},
				// What manifests and client-go's types print.
				{"crd.projectcalico.org/v1/ipamblocks", crdBlocks},
				{"crd.projectcalico.org/v1, Kind=IPAMBlock", crdBlocks},
				{crdBlocks.String(), crdBlocks},
				{"example.com/v1beta1/widgets", widgetsBeta},
				{"example.com/v1beta1, Kind=Widget", widgetsBeta},
				{"acme.io/stable/gizmos", gizmos},
				{"acme.io/stable, Kind=Gizmo", gizmos},
				{"v1.acme.io/v2/Sprocket", sprockets},
				{"v1/pods", pods},
				{"v1/po", pods},
				{"v1, Kind=Pod", pods},
				{"/v1, Kind=Pod", pods},
				// Every name, in any case, in every form.
				{"pod", pods},
				{"PODS", pods},
				{"Pod", pods},
				{"po", pods},
				{"pod.v1", pods},
				{"Pod.v1.", pods},
				{"deploy", deployments},
				{"Deployment.apps", deployments},
				{"deploy.v1.apps", deployments},
				{"gizmo", gizmos},
				{"Gizmo.stable.acme.io", gizmos},
				{"Sprocket.v2.v1.acme.io", sprockets},
				{"IPAMBlock.crd.projectcalico.org", crdBlocks},
				{"IPAMBlock.v1.crd.projectcalico.org", crdBlocks},
				{"ipamblock.projectcalico.org", calicoBlocks},
			} {
				t.Run(tc.ref, func(t *testing.T) {
					got, err := r.Resolve(t.Context(), tc.ref)
					if err != nil {
						t.Fatalf("Resolve: %v", err)
					}
					if got.GVR != tc.want {
						t.Errorf("Resolve = %v, want %v", got.GVR, tc.want)
					}
				})
			}
		})
	}
}

func TestResolve_FormsWithASlashAreExact(t *testing.T) {
	r := newServer(t, aggregated, everything()...).resolver(t)
	for _, ref := range []string{
		"example.com/v2/widgets",
		"com/v1/widgets",
		"/v1/widgets",                                  // of the core group, not of any
		"acme.io/v2/sprockets",                         // acme.io is not v1.acme.io
		"crd.projectcalico.org/v1, Kind=ipamblock",     // capitals count in a kind
		"crd.projectcalico.org/v1, Kind=ipamblocks",    // a plural is no kind
		"example.com/v1, Kind=Widgets",                 // nor is this one
		"projectcalico.org/v1, Resource=ipamblocks",    // there it is v3
		"crd.projectcalico.org/v3, Resource=ipamblock", // and here it is v1
	} {
		got, err := r.Resolve(t.Context(), ref)
		checkKind(t, err, discovery.ErrNotServed)
		if err == nil {
			t.Errorf("Resolve(%s) = %v", ref, got.GVR)
		}
	}
	_, err := r.Resolve(t.Context(), "example.com/v1, Kind=Unicorn")
	if noMatch := asType[*meta.NoKindMatchError](t, err, discovery.ErrNotServed); noMatch.GroupKind != (schema.GroupKind{Group: "example.com", Kind: "Unicorn"}) {
		t.Errorf("to apimachinery it is %v", noMatch)
	}
}

func TestResolve_ReturnsTheFieldsOfTheServer(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			got, err := s.resolver(t).Resolve(t.Context(), "pods")
			if err != nil {
				t.Fatalf("Resolve: %v", err)
			}
			want := discovery.Resource{
				GVR:        pods,
				GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
				Singular:   "pod",
				ShortNames: []string{"po"},
				Categories: []string{"all"},
				Namespaced: true,
				Verbs:      []string{"watch", "list", "get", "create"},

				Subresources: []string{"log"},
				Versions:     []string{"v1"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Resolve (-want +got):\n%s", diff)
			}
			got, err = s.resolver(t).Resolve(t.Context(), "gizmos")
			if err != nil {
				t.Fatalf("Resolve: %v", err)
			}
			if got.Namespaced {
				t.Error("a cluster-scoped resource is said to be namespaced")
			}
			if !got.Supports("watch") || got.Supports("delete") || got.Supports("") {
				t.Errorf("Supports does not tell the verbs %v", got.Verbs)
			}
		})
	}
}

// For example, Scale of autoscaling was a kind in extensions.
func TestResolve_KindMayBeOfAnotherGroup(t *testing.T) {
	s := newServer(t, legacy, group{name: "example.com", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "scales", Group: "autoscaling", Version: "v2", Kind: "Scale", Verbs: all},
	}}}})
	got, err := s.resolver(t).Resolve(t.Context(), "scales")
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	if want := (schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "Scale"}); got.GVK != want {
		t.Errorf("kind = %v, want %v", got.GVK, want)
	}
	if want := (schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "scales"}); got.GVR != want {
		t.Errorf("resource = %v, want %v", got.GVR, want)
	}
}

// "widgets.v1.acme.io" may be v1 of acme.io, or any version of v1.acme.io. Both are served in this test.
func TestResolve_VersionAndGroupComeBeforeTheWholeAsGroup(t *testing.T) {
	served := []metav1.APIResource{{Name: "widgets", Kind: "Widget", Verbs: all}}
	groups := []group{
		{name: "v1.acme.io", versions: []version{{name: "v2", resources: served}}},
		{name: "acme.io", versions: []version{{name: "v1", resources: served}}},
		{name: "stable.acme.io", versions: []version{{name: "v1", resources: served}}},
		{name: "acme.io", versions: []version{{name: "stable", resources: served}}},
	}
	for _, tc := range []struct {
		ref    string
		groups []group
		want   schema.GroupVersionResource
	}{
		{"widgets.v1.acme.io", groups[:2], schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "widgets"}},
		{"widgets.stable.acme.io", groups[2:], schema.GroupVersionResource{Group: "acme.io", Version: "stable", Resource: "widgets"}},
	} {
		got, err := newServer(t, aggregated, tc.groups...).resolver(t).Resolve(t.Context(), tc.ref)
		if err != nil || got.GVR != tc.want {
			t.Errorf("Resolve(%s) = %v, %v; want %v", tc.ref, got.GVR, err, tc.want)
		}
	}
}

func TestResolve_SeveralGroupsAreAmbiguous(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			got, err := s.resolver(t).Resolve(t.Context(), "ipamblocks")
			ambiguous := asType[*discovery.AmbiguousError](t, err, discovery.ErrAmbiguous)
			if !meta.IsAmbiguousError(err) || meta.IsNoMatchError(err) {
				t.Error("to apimachinery it is not an ambiguity")
			}
			var candidates []schema.GroupVersionResource
			for _, res := range ambiguous.Candidates {
				candidates = append(candidates, res.GVR)
			}
			// The server's order, which is not the alphabet's.
			want := []schema.GroupVersionResource{calicoBlocks, crdBlocks}
			if diff := cmp.Diff(want, candidates); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
			if want := (discovery.Ref{Resource: "ipamblocks"}); ambiguous.Ref != want {
				t.Errorf("reference = %+v, want %+v", ambiguous.Ref, want)
			}
			const text = "ipamblocks: served by several groups; say which one: " +
				"ipamblocks.v3.projectcalico.org or ipamblocks.v1.crd.projectcalico.org"
			if err.Error() != text {
				t.Errorf("error = %q, want %q", err, text)
			}
			if diff := cmp.Diff(discovery.Resource{}, got); diff != "" {
				t.Errorf("Resolve returned something besides the error:\n%s", diff)
			}
		})
	}
}

func TestAmbiguousError_UnwrapsToTheCandidates(t *testing.T) {
	_, err := newServer(t, aggregated, everything()...).resolver(t).Resolve(t.Context(), "ipamblocks")
	unwrapped := asType[*meta.AmbiguousResourceError](t, err, discovery.ErrAmbiguous)
	want := &meta.AmbiguousResourceError{
		PartialResource:   schema.GroupVersionResource{Resource: "ipamblocks"},
		MatchingResources: []schema.GroupVersionResource{calicoBlocks, crdBlocks},
		MatchingKinds: []schema.GroupVersionKind{
			calicoBlocks.GroupVersion().WithKind("IPAMBlock"), crdBlocks.GroupVersion().WithKind("IPAMBlock"),
		},
	}
	if diff := cmp.Diff(want, unwrapped); diff != "" {
		t.Errorf("unwrapped (-want +got):\n%s", diff)
	}
}

func TestResolve_AmbiguityIsAboutPreferredVersionsOnly(t *testing.T) {
	// Several versions of one group are not several groups.
	twice := group{name: "other.example.com", preferred: "v2", versions: []version{
		{name: "v1", resources: exampleGroup.versions[1].resources},
		{name: "v2", resources: exampleGroup.versions[1].resources},
	}}
	_, err := newServer(t, legacy, exampleGroup, twice).resolver(t).Resolve(t.Context(), "widgets")
	var got []string
	for _, res := range asType[*discovery.AmbiguousError](t, err, discovery.ErrAmbiguous).Candidates {
		got = append(got, discovery.RefOf(res.GVR).String())
	}
	if diff := cmp.Diff([]string{"widgets.v1.example.com", "widgets.v2.other.example.com"}, got); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

func TestResolve_InvalidReferenceSendsNoRequest(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	_, err := s.resolver(t).Resolve(t.Context(), "pods/log")
	checkKind(t, err, discovery.ErrInvalidRef)
	if got := s.paths(); got != nil {
		t.Errorf("requests = %v, want none", got)
	}
}

func TestResolve_SendsTwoRequestsIfAggregated(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	for range 2 { // the second time too: nothing is kept
		if _, err := r.Resolve(t.Context(), "pods"); err != nil {
			t.Fatalf("Resolve: %v", err)
		}
		if diff := cmp.Diff([]string{"/api", "/apis"}, slices.Sorted(slices.Values(s.paths()))); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

// A group version that fails is requested once. client-go's method requests it twice.
func TestResolve_SendsOneRequestPerGroupVersionIfLegacy(t *testing.T) {
	s := newServer(t, legacy, coreGroup, stale(exampleGroup, "v1beta1"))
	if _, err := s.resolver(t).Resolve(t.Context(), "pods"); err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	counts := map[string]int{}
	for _, path := range s.paths() {
		counts[path]++
	}
	want := map[string]int{"/api": 1, "/apis": 1, "/api/v1": 1, "/apis/example.com/v1": 1, "/apis/example.com/v1beta1": 1}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestResolve_AnswersAreCurrent(t *testing.T) {
	cluster := fakecluster.New(fakecluster.Type{GVR: widgets.GroupVersion().WithResource("gadgets"), Kind: "Gadget"})
	r := fromCluster(t, cluster)
	_, err := r.Resolve(t.Context(), "widgets")
	checkKind(t, err, discovery.ErrNotServed)
	cluster.Serve(fakecluster.Type{GVR: widgets, Kind: "Widget"})
	if got, err := r.Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
		t.Errorf("Resolve after the type came = %v, %v", got.GVR, err)
	}
}

// The race detector checks this test.
func TestResolver_IsSafeForConcurrentUse(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			r := s.resolver(t)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if got, err := r.Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
						t.Errorf("Resolve = %v, %v", got.GVR, err)
					}
				})
				wg.Go(func() {
					if got, err := r.Validate(t.Context(), gizmos); err != nil || got.GVR != gizmos {
						t.Errorf("Validate = %v, %v", got.GVR, err)
					}
				})
				wg.Go(func() {
					if _, err := r.Resolve(t.Context(), "widgzts"); !errors.Is(err, discovery.ErrNotServed) {
						t.Errorf("Resolve of nothing: %v", err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestResolve_AGroupMayBeAPrefix(t *testing.T) {
	blocks := func(groupName string, versions ...string) group {
		g := blocksGroup(groupName, versions[0])
		for _, name := range versions[1:] {
			g.versions = append(g.versions, version{name: name, resources: g.versions[0].resources})
		}
		return g
	}
	s := newServer(t, aggregated, coreGroup, appsGroup, blocks("config.example.com", "v1", "v1beta1"), blocks("config.example.net", "v2"),
		blocks("v1.acme.io", "v3"), blocks("net", "v1"), blocks("net.example.com", "v1"), stale(blocks("down.example.com", "v1"), "v1"))
	for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
		t.Run(name, func(t *testing.T) {
			for ref, want := range map[string]string{
				"deployments.ap":                     "deployments.v1.apps",
				"deploy.app":                         "deployments.v1.apps",
				"Deployment.a":                       "deployments.v1.apps",
				"ipamblocks.config.example.c":        "ipamblocks.v1.config.example.com",
				"ipamblocks.v1beta1.config":          "ipamblocks.v1beta1.config.example.com", // the only one of that version
				"ipamblock.v1.ac":                    "ipamblocks.v3.v1.acme.io",              // a group that begins like a version
				"ipamblocks.net":                     "ipamblocks.v1.net",                     // all of a name comes before a part of one
				"ipamblocks.net.":                    "invalid",
				"ipamblocks.config":                  "ambiguous",
				"ipamblocks.down":                    "inconclusive",
				"ipamblocks.example.com":             "not served", // a part at the end
				"ipamblocks.v2.config.example.com":   "not served",
				"ipamblocks.config.example.com.more": "not served",
				"deployments.v1":                     "not served", // of the core group
				"ap/v1/deployments":                  "not served", // exact
			} {
				got, err := r.Resolve(t.Context(), ref)
				outcome := discovery.RefOf(got.GVR).String()
				for sentinel, text := range map[error]string{
					discovery.ErrNotServed: "not served", discovery.ErrAmbiguous: "ambiguous",
					discovery.ErrInconclusive: "inconclusive", discovery.ErrInvalidRef: "invalid",
				} {
					if errors.Is(err, sentinel) {
						outcome = text
					}
				}
				if outcome != want {
					t.Errorf("Resolve(%s) = %s (%v), want %s", ref, outcome, err, want)
				}
			}
			// What a program gives in parts is never cut short.
			_, err := r.ResolveGR(t.Context(), schema.GroupResource{Group: "ap", Resource: "deployments"})
			checkKind(t, err, discovery.ErrNotServed)
			_, err = r.ResolveGK(t.Context(), schema.GroupKind{Group: "ap", Kind: "Deployment"})
			checkKind(t, err, discovery.ErrNotServed)
		})
	}
}

package discovery_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/gvrkit/gvrkit/discovery"
)

var kubectlSeed = flag.Uint64("kubectl.seed", 0, "run TestResolve_ChoosesAsKubectl with this seed alone")

// kubectl finds a resource as kubectl get does: with client-go's expander of short names.
type kubectl struct{ mapper meta.RESTMapper }

func newKubectl(t *testing.T, s *apiServer) kubectl {
	t.Helper()
	client, err := clientdiscovery.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return kubectl{restmapper.NewShortcutExpander(stockMapper(t, s), memory.NewMemCacheClient(client), nil)}
}

// find is mappingFor of k8s.io/cli-runtime's resource.Builder.
func (k kubectl) find(arg string) (schema.GroupVersionResource, error) {
	var gvk schema.GroupVersionKind
	gvr, gr := schema.ParseResourceArg(arg)
	if gvr != nil {
		gvk, _ = k.mapper.KindFor(*gvr)
	}
	if gvk.Empty() {
		gvk, _ = k.mapper.KindFor(gr.WithVersion(""))
	}
	full, gk := schema.ParseKindArg(arg)
	switch {
	case !gvk.Empty():
	case full != nil:
		if mapping, err := k.mapper.RESTMapping(full.GroupKind(), full.Version); err == nil {
			return mapping.Resource, nil
		}
		fallthrough
	default:
		gvk = gk.WithVersion("")
	}
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// kinds are few, with the plurals that their authors have chosen.
var kinds = map[string][]string{
	"Proxy": {"proxies", "proxys"}, "HTTPProxy": {"httpproxies"}, "Route": {"routes"}, "Sheep": {"sheep"}, "Pod": {"pods"}, "Deployment": {"deployments"},
}

// shortNames are some that nothing else has, and some that are the plural or singular of a type of
// another group.
var shortNames = []string{"px", "ro", "po", "deploy", "proxy", "proxies", "route", "sheep"}

// overlappingGroups returns groups of types. A name is that of one type of its group, as an API
// server demands of CRDs.
func overlappingGroups(random *rand.Rand) []group {
	groups := []group{coreGroup, appsGroup}
	for _, name := range []string{"config.example.com", "config.example.net", "configs.io", "proxy.io", "route.example.org"} {
		if random.IntN(3) == 0 {
			continue
		}
		g, taken := group{name: name}, map[string]bool{}
		free := func(names ...string) bool {
			if slices.ContainsFunc(names, func(name string) bool { return taken[name] }) {
				return false
			}
			for _, name := range names {
				taken[name] = true
			}
			return true
		}
		var resources []metav1.APIResource
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			plural, singular := kinds[kind][random.IntN(len(kinds[kind]))], strings.ToLower(kind)
			if random.IntN(2) == 0 || !free(plural, singular) {
				continue
			}
			res := metav1.APIResource{Name: plural, SingularName: singular, Kind: kind, Namespaced: true, Verbs: all}
			resources = append(resources, res)
		}
		for i := range resources {
			if short := shortNames[random.IntN(len(shortNames))]; free(short) {
				resources[i].ShortNames = []string{short}
			}
		}
		for _, v := range []string{"v2", "v1", "v1beta1"}[random.IntN(3):] { // the preferred version first
			of := resources
			if random.IntN(3) == 0 {
				of = resources[len(resources)/2:]
			}
			g.versions = append(g.versions, version{name: v, resources: of})
		}
		groups = append(groups, g)
	}
	random.Shuffle(len(groups)-2, func(i, j int) { groups[i+2], groups[j+2] = groups[j+2], groups[i+2] })
	return groups
}

// reference is a name alone, or with a version, a group or the beginning of a group.
type reference struct {
	name, version, group string
	cut                  bool // it is the beginning of a group
}

func (r reference) String() string {
	return strings.Join(slices.DeleteFunc([]string{r.name, r.version, r.group}, func(part string) bool { return part == "" }), ".")
}

func references(random *rand.Rand, groups []group) []reference {
	names := append(slices.Clone(shortNames), "HTTPProxy", "Pod", "httpproxy", "pod", "deployment")
	for _, plurals := range kinds {
		names = append(names, plurals...)
	}
	var refs []reference
	for _, name := range names {
		refs = append(refs, reference{name: name})
		for _, g := range groups[1:] { // kubectl's core group has no name
			refs = append(refs, reference{name: name, group: g.name}, reference{name: name, version: "v1", group: g.name})
			begin := g.name[:1+random.IntN(len(g.name))]
			if !strings.HasSuffix(begin, ".") {
				refs = append(refs, reference{name: name, group: begin, cut: true})
			}
		}
	}
	return refs
}

// Resolve finds what kubectl finds, or says that there is a choice, and one of the candidates is
// kubectl's. What kubectl does not find is not served.
func TestResolve_ChoosesAsKubectl(t *testing.T) {
	seeds := []uint64{*kubectlSeed}
	if *kubectlSeed == 0 {
		seeds = nil
		for seed := range uint64(8) {
			seeds = append(seeds, seed+1)
		}
	}
	var found, ambiguous, refusals, odd int
	for _, seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 19))
		groups := overlappingGroups(random)
		// client-go's expander knows the order of groups only without aggregated discovery.
		r, oracle := run(t, newServer(t, aggregated, groups...), never()), newKubectl(t, newServer(t, legacy, groups...))
		for _, ref := range references(random, groups) {
			want, refused := oracle.find(ref.String())
			got, err := r.Resolve(t.Context(), ref.String())
			candidates := []discovery.Resource{got}
			if choice := (&discovery.AmbiguousError{}); errors.As(err, &choice) {
				candidates, err = choice.Candidates, nil
			}
			switch {
			case refused != nil && errors.Is(err, discovery.ErrNotServed):
				refusals++
			case refused == nil && err == nil && got.GVR == want:
				found++
			case refused == nil && err == nil && slices.ContainsFunc(candidates, func(res discovery.Resource) bool { return res.GVR == want }):
				ambiguous++
			case ref.kubectlDiffers(want, candidates):
				odd++
			default:
				t.Errorf("seed %d: Resolve(%s) = %v, %v; kubectl: %v, %v\n%s", seed, ref, got.GVR, err, want, refused, toldGroups(groups))
			}
		}
	}
	if *kubectlSeed == 0 && (found < 500 || ambiguous < 50 || refusals < 1000 || odd > 60) {
		t.Errorf("%d found, %d ambiguous, %d refused, %d where kubectl differs", found, ambiguous, refusals, odd)
	}
}

// kubectlDiffers reports whether kubectl finds want, and not one of candidates, by a rule that
// Resolve does not have: kubectl forgets the version of a short name, and with the beginning of a
// group it takes a short name before a plural or singular.
func (r reference) kubectlDiffers(want schema.GroupVersionResource, candidates []discovery.Resource) bool {
	return slices.ContainsFunc(candidates, func(res discovery.Resource) bool {
		if r.version != "" {
			return want.Version != r.version && (res.GVR.Empty() || res.GVR == want.GroupResource().WithVersion(r.version))
		}
		return r.cut && (res.GVR.Resource == r.name || res.Singular == r.name)
	})
}

// toldGroups prints groups for a failure.
func toldGroups(groups []group) string {
	var text strings.Builder
	for _, g := range groups[2:] {
		for _, v := range g.versions {
			for _, res := range v.resources {
				fmt.Fprintf(&text, "  %s/%s: %s %s %s %v\n", g.name, v.name, res.Name, res.SingularName, res.Kind, res.ShortNames)
			}
		}
	}
	return text.String()
}

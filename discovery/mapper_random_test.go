package discovery_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

var (
	firstDocuments = flag.Uint64("mapper.seed", 185, "the first seed of TestRESTMapper_RandomDocuments")
	documents      = flag.Uint64("mapper.count", 8, "how many seeds TestRESTMapper_RandomDocuments has")
)

// The names are few, so that many are in several groups, versions and forms.
var (
	mappedGroups   = []string{"", "apps", "a.io", "a.io.x", "b.a.io", "v1.a.io", "v1"}
	mappedVersions = []string{"v1", "v2", "v1beta1", "stable"}
	mappedPlurals  = []string{"proxies", "proxys", "routes", "sheep", "pods", "statuses", "widget", "widgets", "s"}
	mappedKinds    = []string{"Proxy", "Route", "Sheep", "Pod", "Status", "Widget", "Widgets", "WidgetList", "S"}
)

func oneOf[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// documentsAtRandom returns the groups of a server. The preferred version is the first one.
func documentsAtRandom(random *rand.Rand) []group {
	var groups []group
	for _, name := range mappedGroups {
		g := group{name: name}
		count := 1 + random.IntN(3)
		if name == "" {
			count = 1
		}
		for _, i := range random.Perm(len(mappedVersions))[:count] {
			v := version{name: mappedVersions[i], resources: []metav1.APIResource{}}
			if name == "" {
				v.name = "v1"
			}
			for _, p := range random.Perm(len(mappedPlurals))[:random.IntN(5)] {
				k := oneOf(random, mappedKinds...)
				res := metav1.APIResource{
					Name: mappedPlurals[p], Kind: k, Namespaced: random.IntN(2) == 0, Verbs: all,
					SingularName: oneOf(random, "", strings.ToLower(k), oneOf(random, mappedPlurals...)),
				}
				if random.IntN(12) == 0 {
					res.Group, res.Version = oneOf(random, mappedGroups...), oneOf(random, mappedVersions...)
				}
				v.resources = append(v.resources, res)
				if random.IntN(4) == 0 {
					v.resources = append(v.resources, metav1.APIResource{Name: res.Name + "/status", Kind: k, Namespaced: res.Namespaced, Verbs: metav1.Verbs{"get"}})
				}
			}
			g.versions = append(g.versions, v)
		}
		groups = append(groups, g)
	}
	random.Shuffle(len(groups)-1, func(i, j int) { groups[i+1], groups[j+1] = groups[j+1], groups[i+1] })
	return groups
}

// mapperQuestion is a call of a method of a mapper.
type mapperQuestion struct {
	text string
	ask  func(meta.RESTMapper) (any, error)
}

func questionAtRandom(random *rand.Rand) mapperQuestion {
	group := oneOf(random, "", oneOf(random, mappedGroups...), oneOf(random, "absent.example.com", "a", "b"))
	gvr := schema.GroupVersionResource{
		Group: group, Version: oneOf(random, "", oneOf(random, mappedVersions...), "v9", "__internal"),
		Resource: oneOf(random, oneOf(random, mappedPlurals...), oneOf(random, mappedKinds...), oneOf(random, "unicorns", "pods/status", "PODS", "")),
	}
	gk := schema.GroupKind{Group: group, Kind: oneOf(random, oneOf(random, mappedKinds...), oneOf(random, mappedKinds...), "Unicorn", "proxy")}
	var versions []string
	for range random.IntN(4) {
		versions = append(versions, oneOf(random, oneOf(random, mappedVersions...), oneOf(random, mappedVersions...), "", "v9", "__internal"))
	}
	switch random.IntN(8) {
	case 0:
		return mapperQuestion{fmt.Sprint("KindFor ", gvr), func(m meta.RESTMapper) (any, error) { return m.KindFor(gvr) }}
	case 1:
		return mapperQuestion{fmt.Sprint("KindsFor ", gvr), func(m meta.RESTMapper) (any, error) { return m.KindsFor(gvr) }}
	case 2:
		return mapperQuestion{fmt.Sprint("ResourceFor ", gvr), func(m meta.RESTMapper) (any, error) { return m.ResourceFor(gvr) }}
	case 3:
		return mapperQuestion{fmt.Sprint("ResourcesFor ", gvr), func(m meta.RESTMapper) (any, error) { return m.ResourcesFor(gvr) }}
	case 4:
		return mapperQuestion{"ResourceSingularizer " + gvr.Resource, func(m meta.RESTMapper) (any, error) {
			singular, err := m.ResourceSingularizer(gvr.Resource)
			if err != nil {
				return "not known: " + singular, nil // client-go returns the error of the last version
			}
			return singular, nil
		}}
	case 5:
		return mapperQuestion{fmt.Sprintf("RESTMappings %v %q", gk, versions), func(m meta.RESTMapper) (any, error) {
			mappings, err := m.RESTMappings(gk, versions...)
			if err == nil && len(mappings) == 0 {
				err = &meta.NoKindMatchError{}
			}
			var told []string
			for _, mapping := range mappings {
				told = append(told, toldMapping(mapping))
			}
			return told, err
		}}
	default:
		return mapperQuestion{fmt.Sprintf("RESTMapping %v %q", gk, versions), func(m meta.RESTMapper) (any, error) {
			mapping, err := m.RESTMapping(gk, versions...)
			return toldMapping(mapping), err
		}}
	}
}

func (q mapperQuestion) answer(m meta.RESTMapper) string {
	answer, err := q.ask(m)
	if err != nil {
		return fmt.Sprintf("no match: %v, ambiguous: %v", meta.IsNoMatchError(err), meta.IsAmbiguousError(err))
	}
	return fmt.Sprint(answer)
}

// Before, during and without Run.
func TestRESTMapper_RandomDocuments(t *testing.T) {
	for seed := *firstDocuments; seed < *firstDocuments+*documents; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			groups := documentsAtRandom(random)
			s := newServer(t, formats[random.IntN(len(formats))], groups...)
			stock, resting, running := stockMapper(t, s), s.resolver(t), run(t, s, never())
			wrong := func(q mapperQuestion, r *discovery.Resolver) {
				t.Helper()
				got, want := q.answer(r.RESTMapper()), ""
				for range 300 { // client-go's order of singulars is random
					if want = q.answer(stock); got == want {
						return
					}
				}
				t.Errorf("%s:\n got %s\nwant %s\n in %+v", q.text, got, want, groups)
			}
			for i := range 200 {
				q := questionAtRandom(random)
				wrong(q, running)
				if i%10 == 0 {
					wrong(q, resting)
				}
			}
		})
	}
}

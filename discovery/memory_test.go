package discovery_test

import (
	"context"
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

	"github.com/gvrkit/gvrkit/discovery"
)

var resolveSeed = flag.Uint64("resolve.seed", 0, "run TestResolver_StoredRefusalsDoNotChangeAnswers with this seed alone")

// collidingGroups are groups whose names mean something else to each of the methods.
func collidingGroups() []group {
	entry := func(plural, singular, kind string, short ...string) metav1.APIResource {
		return metav1.APIResource{Name: plural, SingularName: singular, Kind: kind, ShortNames: short, Namespaced: true, Verbs: all}
	}
	return []group{
		coreGroup, appsGroup, reviewGroup,
		{name: "example.com", versions: []version{
			{name: "v1", resources: []metav1.APIResource{entry("widgets", "widget", "Widget", "wi"), entry("gadgetlists", "gadgetlist", "GadgetList")}},
			{name: "v1beta1", resources: []metav1.APIResource{entry("widgets", "widget", "Widget", "wi"), entry("flanges", "flange", "Flange", "po")}},
		}},
		{name: "example.net", versions: []version{{name: "v2", resources: []metav1.APIResource{
			entry("gadgets", "gadget", "Gadget", "widget"), entry("proxies", "proxy", "Proxy"), entry("httpproxies", "httpproxy", "HTTPProxy", "proxy"),
			{Name: "mirrors", SingularName: "mirror", Group: "example.com", Version: "v1", Kind: "Widget", Verbs: all}, // widgets are of that kind, too
			{Name: "prints", SingularName: "print", Group: "example.com", Version: "v1", Kind: "Print", Verbs: all},
		}}}},
		{name: "v1.acme.io", versions: []version{{name: "v2", resources: []metav1.APIResource{entry("widgets", "widget", "widget")}}}},
		acmeGroup, calicoGroup, crdCalicoGroup,
	}
}

// inquiry is one call of one method. Its answer is a text: what was found, or the kind of
// the error and what it says.
type inquiry struct {
	name string
	ask  func(ctx context.Context, r *discovery.Resolver) string
	// stock asks client-go's mapper; nil where that has no such method.
	stock func(m meta.RESTMapper) string
}

func outcome(answer any, err error) string {
	switch {
	case err == nil:
		return fmt.Sprint(answer)
	case errors.Is(err, discovery.ErrInconclusive):
		return "inconclusive: " + err.Error()
	case meta.IsAmbiguousError(err):
		return "ambiguous"
	case meta.IsNoMatchError(err):
		return "no match: " + err.Error()
	}
	return "error: " + err.Error()
}

// inquiries returns all calls about a few names, so that many are about the same.
func inquiries(random *rand.Rand) []inquiry {
	few := func(count int, of ...string) []string {
		random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		return of[:count]
	}
	var out []inquiry
	resolving := func(name string, ask func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error)) {
		out = append(out, inquiry{name: name, ask: func(ctx context.Context, r *discovery.Resolver) string {
			res, err := ask(ctx, r)
			return outcome(fmt.Sprint(res.GVR, res.GVK), err)
		}})
	}
	mapping := func(name string, ask func(m meta.RESTMapper) (any, error)) {
		stock := func(m meta.RESTMapper) string { return outcome(ask(m)) }
		out = append(out, inquiry{name: name, stock: stock, ask: func(_ context.Context, r *discovery.Resolver) string { return stock(r.RESTMapper()) }})
	}
	names := few(3, "po", "pod", "pods", "widgets", "widget", "wi", "gadget", "gadgetlist", "proxy", "ipamblocks", "unicorns", "flanges")
	groups := append(few(2, "example.com", "example.net", "v1", "v1.acme.io", "nobody.example"), few(1, "exam", "acme.io")...)
	groups = append(groups, "")
	versions := append([]string{""}, few(2, "v1", "v2", "v1beta1", "v7")...)
	for _, name := range names {
		mapping("ResourceSingularizer "+name, func(m meta.RESTMapper) (any, error) { return m.ResourceSingularizer(name) })
		for _, groupName := range groups {
			gr := schema.GroupResource{Group: groupName, Resource: name}
			resolving("Resolve "+gr.String(), func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
				return r.Resolve(ctx, gr.String())
			})
			resolving("ResolveGR "+gr.String(), func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
				return r.ResolveGR(ctx, gr)
			})
			for _, versionName := range versions {
				gvr := gr.WithVersion(versionName)
				mapping("KindFor "+gvr.String(), func(m meta.RESTMapper) (any, error) { return m.KindFor(gvr) })
				mapping("KindsFor "+gvr.String(), func(m meta.RESTMapper) (any, error) { return m.KindsFor(gvr) })
				mapping("ResourceFor "+gvr.String(), func(m meta.RESTMapper) (any, error) { return m.ResourceFor(gvr) })
				mapping("ResourcesFor "+gvr.String(), func(m meta.RESTMapper) (any, error) { return m.ResourcesFor(gvr) })
				if versionName == "" {
					continue
				}
				ref := discovery.RefOf(gvr).String()
				resolving("Resolve "+ref, func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
					return r.Resolve(ctx, ref)
				})
				resolving("Resolve "+gvr.String(), func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
					return r.Resolve(ctx, gvr.String())
				})
				resolving("ResolveGVR "+ref, func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
					return r.ResolveGVR(ctx, gvr)
				})
				resolving("Validate "+ref, func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
					return r.Validate(ctx, gvr, "watch")
				})
			}
		}
	}
	for _, kind := range few(3, "Pod", "Widget", "widget", "WidgetList", "GadgetList", "List", "Unicorn", "IPAMBlock", "Print") {
		for _, groupName := range groups {
			gk := schema.GroupKind{Group: groupName, Kind: kind}
			resolving("ResolveGK "+gk.String(), func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
				return r.ResolveGK(ctx, gk)
			})
			for _, versionName := range versions[1:] {
				gvk := gk.WithVersion(versionName)
				resolving("ResolveGVK "+gvk.String(), func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
					return r.ResolveGVK(ctx, gvk)
				})
				resolving("Resolve "+gvk.String(), func(ctx context.Context, r *discovery.Resolver) (discovery.Resource, error) {
					return r.Resolve(ctx, gvk.String())
				})
			}
			for _, wanted := range [][]string{nil, {"v1"}, {"v2", "v3"}, {"v2", "v1"}, {"v7", "v8"}, {"v7", "v1beta1"}, {""}} {
				args := fmt.Sprint(gk, wanted)
				mapping("RESTMapping "+args, func(m meta.RESTMapper) (any, error) {
					found, err := m.RESTMapping(gk, wanted...)
					return toldMapping(found), err
				})
				mapping("RESTMappings "+args, func(m meta.RESTMapper) (any, error) {
					var told []string
					found, err := m.RESTMappings(gk, wanted...)
					for _, one := range found {
						told = append(told, toldMapping(one))
					}
					return told, err
				})
			}
		}
	}
	for name, s := range map[string]discovery.Selector{
		"everything": {}, "a group": {Groups: []string{"example.com"}}, "no group": {Groups: []string{"exam"}}, "each version": {Versions: discovery.EveryVersion()},
	} {
		out = append(out, inquiry{name: "ResolveAll " + name, ask: func(ctx context.Context, r *discovery.Resolver) string {
			var told []string
			found, err := r.ResolveAll(ctx, s)
			for _, res := range found {
				told = append(told, res.GVR.String())
			}
			return outcome(told, err)
		}})
	}
	slices.SortFunc(out, func(a, b inquiry) int { return strings.Compare(a.name, b.name) })
	return out
}

// alone returns what each method answers on a resolver that has been asked nothing before.
func alone(t *testing.T, s *apiServer, all []inquiry) map[string]string {
	t.Helper()
	want := map[string]string{}
	for _, each := range all {
		want[each.name] = each.ask(t.Context(), s.resolver(t))
	}
	return want
}

// A running resolver stores refusals. They must not change the answer of any method.
func TestResolver_StoredRefusalsDoNotChangeAnswers(t *testing.T) {
	seed := *resolveSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-resolve.seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // replayable
	s := newServer(t, aggregated, collidingGroups()...)
	all := inquiries(random)
	want := alone(t, s, all)
	// Of an error, only its kind is client-go's.
	withoutText := func(answer string) string {
		if kind, _, isError := strings.Cut(answer, ": "); isError && kind == "no match" {
			return kind
		}
		return answer
	}
	stock := stockMapper(t, s)
	for _, each := range all {
		if each.stock == nil {
			continue
		}
		if theirs, ours := withoutText(each.stock(stock)), withoutText(want[each.name]); theirs != ours {
			t.Errorf("%s: %s; client-go's mapper: %s", each.name, ours, theirs)
		}
	}
	if t.Failed() {
		return
	}
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	var before []string
	for range 2 { // in the second round, from memory where there is one
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, each := range all {
			if got := each.ask(t.Context(), r); got != want[each.name] {
				t.Errorf("%s: %s; alone: %s; asked before: %d calls, of them about the same:\n%s",
					each.name, got, want[each.name], len(before), strings.Join(about(each.name, before), "\n"))
			}
			before = append(before, each.name)
			if len(before) > 20 && t.Failed() {
				return
			}
		}
	}
	if counts := r.Status(); counts.Requests > uint64(len(all))*2 {
		t.Errorf("%d calls cost %d requests: nothing was remembered", len(before), counts.Requests)
	}
}

// about returns those of calls that have a word of name but for the method.
func about(name string, calls []string) []string {
	words := map[string]bool{}
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,/=[].", r) })
	}
	for _, word := range split(name)[1:] {
		words[strings.ToLower(word)] = true
	}
	maps.DeleteFunc(words, func(word string, _ bool) bool {
		return slices.Contains([]string{"resource", "kind", "com", "io"}, word)
	})
	var out []string
	for _, call := range calls {
		if slices.ContainsFunc(split(call)[1:], func(word string) bool { return words[strings.ToLower(word)] }) {
			out = append(out, call)
		}
	}
	return out
}

func TestResolver_ARefusalIsStoredForOneMethodAndItsArguments(t *testing.T) {
	s := newServer(t, aggregated, collidingGroups()...)
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	m := r.RESTMapper()
	refused := func(what string, err error) {
		t.Helper()
		if !meta.IsNoMatchError(err) {
			t.Errorf("%s: %v, want no match", what, err)
		}
	}
	served := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v, want an answer", what, err)
		}
	}
	_, err := m.ResourceFor(schema.GroupVersionResource{Resource: "wi"})
	refused("a short name is nothing to a mapper", err)
	_, err = r.Resolve(t.Context(), "wi")
	served("a short name", err)

	widget := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	_, err = m.RESTMapping(widget, "v2", "v3")
	refused("versions that are not served", err)
	_, err = m.RESTMapping(widget, "v2", "v1")
	served("one that is", err)
	_, err = m.RESTMappings(widget, "v1", "v2")
	served("one that is, of several", err)

	_, err = r.Resolve(t.Context(), "gadgets.v2")
	refused("the core group has no gadgets", err)
	_, err = m.ResourceFor(schema.GroupVersionResource{Version: "v2", Resource: "gadgets"})
	served("to a mapper an empty group is any", err)

	_, err = r.ResolveGR(t.Context(), schema.GroupResource{Group: "exam", Resource: "widgets"})
	refused("a group in parts is whole", err)
	_, err = m.ResourceFor(schema.GroupVersionResource{Group: "exam", Resource: "widgets"})
	served("to a mapper it may be cut short", err)

	list := schema.GroupKind{Group: "example.com", Kind: "WidgetList"}
	_, err = r.ResolveGK(t.Context(), list)
	refused("a list is no resource", err)
	_, err = m.RESTMapping(list)
	served("to a mapper it is", err)
}

func TestRESTMapper_ARefusalHasAllVersionsOfTheQuestion(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
		t.Run(name, func(t *testing.T) {
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v2", "v3")
			const want = "Widget.example.com: not served by the API server in version v2 or v3; it is served in v1, v1beta1"
			if err == nil || err.Error() != want {
				t.Errorf("error = %v, want %s", err, want)
			}
			noMatch := asType[*meta.NoKindMatchError](t, err, discovery.ErrNotServed)
			if got := strings.Join(noMatch.SearchedVersions, " "); got != "v2 v3" {
				t.Errorf("to apimachinery the versions are %q", got)
			}
		})
	}
}

// A failed group may serve the resource that the mapper does not find.
func TestRESTMapper_AFailedGroupIsNotAbsentInAnyForm(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, stale(calicoGroup, "v3"))
	m := s.resolver(t).RESTMapper()
	for _, gvr := range []schema.GroupVersionResource{
		{Resource: "ipamblocks"},
		{Version: "v3", Resource: "ipamblocks"},
		{Group: "project", Resource: "ipamblocks"},
	} {
		_, err := m.ResourceFor(gvr)
		checkKind(t, err, discovery.ErrInconclusive)
	}
	for _, gvr := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "ipamblocks"},
		{Group: "calico", Resource: "ipamblocks"},
		{Group: "project", Version: "v3", Resource: "ipamblocks"},
	} {
		_, err := m.ResourceFor(gvr)
		checkKind(t, err, discovery.ErrNotServed)
	}
	for versions, sentinel := range map[string]error{"v1 v3": discovery.ErrInconclusive, "v1 v2": discovery.ErrNotServed} {
		_, err := m.RESTMapping(schema.GroupKind{Group: "projectcalico.org", Kind: "IPAMBlock"}, strings.Fields(versions)...)
		checkKind(t, err, sentinel)
	}
}

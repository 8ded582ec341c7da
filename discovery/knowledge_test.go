package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// nodes is a resource of an aggregated API.
var nodes = Resource{GVR: schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}}

func metricsDoc() *document {
	return &document{named: root{groups: []groupDoc{{name: nodes.GVR.Group, versions: []versionDoc{
		{name: nodes.GVR.Version, resources: []Resource{nodes}},
	}}}}}
}

func metricsAPI() *apiService {
	item := apiServiceOf(&slimMeta{Name: "v1beta1.metrics.k8s.io", UID: "1"})
	item.Spec.Service = &struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}{"kube-system", "metrics-server"}
	return item
}

// An APIService that is replaced is absent for a moment, and a document of that moment may arrive later.
func TestKnowledge_ARecreatedAPIServiceIsNotDropped(t *testing.T) {
	for name, back := range map[string]bool{"back": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			k := knowledge{apisRule: true, apisCurrent: true, doubtFor: time.Hour}
			now := time.Now()
			api := metricsAPI()
			k.replaceAPIs([]*slimMeta{&api.Metadata})
			k.readAPI(api)
			k.addDocument(metricsDoc(), request{1, now}, now)
			before := k.snapshot(nil, now)
			k.forgetAPI(&api.Metadata)
			if back {
				k.putAPI(&api.Metadata)
			}
			k.addDocument(&document{}, request{2, now}, now)
			c := k.snapshot(before, now)
			if served := c.served(nodes.GVR) != nil; served != back {
				t.Errorf("served = %v, want %v", served, back)
			}
		})
	}
}

// An APIService is deleted, and the API server creates its own one for a CRD: the resources of the other server are gone.
func TestKnowledge_AnAPIServiceOfTheServerEndsTheResourcesOfAnother(t *testing.T) {
	for name, own := range map[string]string{"of a CRD": "true", "built in": "onstart"} {
		t.Run(name, func(t *testing.T) {
			k := knowledge{apisRule: true, apisCurrent: true, crdsRule: true, crdsCurrent: true, doubtFor: time.Hour}
			now, api := time.Now(), metricsAPI()
			k.replaceAPIs([]*slimMeta{&api.Metadata})
			k.readAPI(api)
			k.addDocument(metricsDoc(), request{1, now}, now)
			before := k.snapshot(nil, now)
			k.forgetAPI(&api.Metadata)
			between := k.snapshot(before, now)
			k.putAPI(&slimMeta{Name: api.Metadata.Name, UID: "2", Labels: map[string]string{automanaged: own}})
			k.addDocument(&document{}, request{2, now}, now)
			if after := k.snapshot(between, now); between.served(nodes.GVR) == nil || after.served(nodes.GVR) != nil {
				t.Errorf("served after the deletion: %v, and after another one was created: %v", between.served(nodes.GVR), after.served(nodes.GVR))
			}
		})
	}
}

// An APIService may be deleted and created again while it is read.
func TestKnowledge_AnAPIServiceWithAnotherUIDIsIgnored(t *testing.T) {
	k := knowledge{apisRule: true, apisCurrent: true}
	api := metricsAPI()
	k.replaceAPIs([]*slimMeta{&api.Metadata})
	other := metricsAPI()
	other.Metadata.UID = "2"
	gv := nodes.GVR.GroupVersion()
	if k.readAPI(other); k.backing(gv) != BackingUnknown || !k.undecided(gv) {
		t.Errorf("by another APIService: backing %q, undecided %v", k.backing(gv), k.undecided(gv))
	}
	if k.readAPI(api); k.backing(gv) != BackingAggregated || k.undecided(gv) {
		t.Errorf("by the one that is known: backing %q, undecided %v", k.backing(gv), k.undecided(gv))
	}
}

// A response may have been on its way while the watch has shown a change.
func TestKnowledge_AnOlderAPIServiceIsIgnored(t *testing.T) {
	k := knowledge{apisRule: true, apisCurrent: true}
	api, own := metricsAPI(), *metricsAPI()
	api.Metadata.ResourceVersion, own.Metadata.ResourceVersion = "7", "8"
	own.Metadata.Labels = map[string]string{automanaged: "onstart"}
	k.replaceAPIs([]*slimMeta{&api.Metadata})
	k.putAPI(&own.Metadata)
	gv := nodes.GVR.GroupVersion()
	now := k.backing(gv)
	if k.readAPI(api); k.backing(gv) != now || now == BackingAggregated {
		t.Errorf("backing %q, and %q after an older response", now, k.backing(gv))
	}
	api.Metadata.ResourceVersion = "9"
	if k.readAPI(api); k.backing(gv) != BackingAggregated {
		t.Errorf("backing %q after a later response", k.backing(gv))
	}
}

var gadgetGR = schema.GroupResource{Group: "example.org", Resource: "gadgets"}

// gadgetMeta is the metadata of a CRD.
func gadgetMeta(uid types.UID) *slimMeta {
	return &slimMeta{Name: "gadgets.example.org", UID: uid, Generation: 1, ResourceVersion: "7"}
}

// gadgetCRD is an established CRD.
func gadgetCRD(uid types.UID) *crd {
	item := &crd{Metadata: *gadgetMeta(uid)}
	item.Spec.Group, item.Spec.Names.Plural = "example.org", "gadgets"
	item.Spec.Versions = []crdVersion{{Name: "v1", Served: true}}
	item.Status.Conditions = []condition{{Type: established, Status: "True"}, {Type: namesAccepted, Status: "True"}}
	item.Status.AcceptedNames = item.Spec.Names
	return item
}

func gadgetDoc() *document {
	return &document{named: root{groups: []groupDoc{{name: "example.org", versions: []versionDoc{
		{name: "v1", resources: []Resource{{GVR: gadgetGR.WithVersion("v1")}}},
	}}}}}
}

// The event of the CRD before it may be late.
func TestKnowledge_TheDeletionOfAnotherCRDHasNoEffect(t *testing.T) {
	k := knowledge{crdsRule: true, crdsCurrent: true}
	now := time.Now()
	k.putCRD(gadgetMeta("2"), 0, now)
	if k.forgetCRD(gadgetMeta("1"), 0, now) || k.crd(gadgetGR).meta == nil {
		t.Error("the end of CRD 1 ended CRD 2")
	}
	if !k.forgetCRD(gadgetMeta("2"), 0, now) {
		t.Error("its own end did not")
	}
}

// A restore of etcd has an earlier generation of a CRD. The CRD as it was read before says nothing about it.
func TestKnowledge_ARestoredCRDIsNotTheOneThatWasRead(t *testing.T) {
	now := time.Now()
	k := knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}
	k.addDocument(gadgetDoc(), request{0, now}, now)
	later, read := gadgetMeta("1"), gadgetCRD("1")
	later.Generation, read.Metadata.Generation = 2, 2
	read.Spec.Versions = append(read.Spec.Versions, crdVersion{Name: "v2", Served: true})
	k.replaceCRDs(metaList{items: []*slimMeta{later}}, 1, now)
	k.read(read)
	before := k.snapshot(nil, now)
	if before.served(gadgetGR.WithVersion("v2")) == nil {
		t.Fatal("v2 is not served")
	}
	k.replaceCRDs(metaList{items: []*slimMeta{gadgetMeta("1")}}, 2, now)
	k.addDocument(gadgetDoc(), request{3, now}, now)
	doubted := k.snapshot(before, now)
	k.addDocument(gadgetDoc(), request{4, now.Add(2 * doubtFor)}, now.Add(2*doubtFor))
	after := k.snapshot(doubted, now.Add(2*doubtFor))
	if after.served(gadgetGR.WithVersion("v2")) != nil || after.served(gadgetGR.WithVersion("v1")) == nil {
		t.Errorf("served in v2: %v, in v1: %v", after.served(gadgetGR.WithVersion("v2")), after.served(gadgetGR.WithVersion("v1")))
	}
}

// The response with a CRD may have been on its way while etcd was restored.
func TestKnowledge_ACRDThatWasReadBeforeARestoreIsIgnored(t *testing.T) {
	for name, test := range map[string]struct {
		generation int64
		version    string
		counts     bool
	}{
		"older":                             {2, "6", false},
		"of the same version":               {1, "7", true},
		"later: the watch is behind":        {2, "8", true},
		"older, of the generation":          {1, "6", true}, // only its status is older
		"of versions that are not numbers":  {2, "x", true},
		"later, though of the generation 1": {1, "8", true},
	} {
		k, read := knowledge{crdsRule: true, crdsCurrent: true}, gadgetCRD("1")
		k.putCRD(gadgetMeta("1"), 1, time.Now())
		read.Metadata.Generation, read.Metadata.ResourceVersion = test.generation, test.version
		if k.read(read) != test.counts {
			t.Errorf("%s: counts: %v", name, !test.counts)
		}
	}
}

// While CRDs are watched, documents that do not list the type of a CRD that was read are of a server that is behind. While CRDs can't
// be watched, the CRD may have been deleted since it was read.
func TestKnowledge_DocumentsDecideSoonWhileCRDsCannotBeWatched(t *testing.T) {
	for current, want := range map[bool]time.Duration{true: staleFor, false: doubtFor} {
		now := time.Now()
		k := knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}
		k.addDocument(gadgetDoc(), request{0, now}, now)
		k.replaceCRDs(metaList{items: []*slimMeta{gadgetMeta("1")}}, 1, now)
		k.read(gadgetCRD("1"))
		k.addDocument(gadgetDoc(), request{2, now}, now)
		view := k.snapshot(nil, now)
		k.crdsCurrent = current
		var lasted time.Duration
		for number := uint64(3); view.served(gadgetGR.WithVersion("v1")) != nil && lasted < time.Hour; number++ {
			lasted += time.Second
			k.addDocument(&document{}, request{number, now.Add(lasted)}, now.Add(lasted))
			view = k.snapshot(view, now.Add(lasted))
		}
		if lasted < want || lasted > want+3*time.Second {
			t.Errorf("CRDs are watched: %v: the type is served for %v, want %v", current, lasted, want)
		}
	}
}

// Documents describe the deleted CRD until the new one was read, until a document does not list it, or
// until enough time has passed.
func TestKnowledge_ARecreatedCRDIsServedOnceASourceHasIt(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		tell func(k *knowledge)
		want types.UID
	}{
		"nothing":        {func(*knowledge) {}, ""},
		"an older one":   {func(k *knowledge) { k.addDocument(gadgetDoc(), request{2, now}, now) }, ""},
		"read":           {func(k *knowledge) { k.read(gadgetCRD("2")) }, "2"},
		"another's read": {func(k *knowledge) { k.read(gadgetCRD("1")) }, ""},
		"left out, and listed": {func(k *knowledge) {
			k.addDocument(&document{}, request{3, now}, now)
			k.addDocument(gadgetDoc(), request{4, now}, now)
		}, "2"},
		"left out before": {func(k *knowledge) {
			k.addDocument(&document{}, request{1, now}, now)
			k.addDocument(gadgetDoc(), request{4, now}, now)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}
			k.addDocument(gadgetDoc(), request{0, now}, now)
			k.replaceCRDs(metaList{items: []*slimMeta{gadgetMeta("1")}}, 0, now)
			before := k.snapshot(nil, now)
			if got := before.served(gadgetGR.WithVersion("v1")); got == nil || got.CRDUID != "1" {
				t.Fatalf("at first: %+v", got)
			}
			k.putCRD(gadgetMeta("2"), 1, now)
			c := k.snapshot(before, now)
			events := k.events(before, c, now)
			if len(events) != 1 || events[0].Type != Removed || events[0].Evidence.CRDUID != "1" {
				t.Fatalf("events: %v", events)
			}
			tc.tell(&k)
			var got types.UID
			if res := k.snapshot(c, now).served(gadgetGR.WithVersion("v1")); res != nil {
				got = res.CRDUID
			}
			if got != tc.want {
				t.Errorf("served is CRD %q, want %q", got, tc.want)
			}
		})
	}
}

// A document may be long on its way, and describe the CRD that was deleted meanwhile.
func TestKnowledge_ADocumentOlderThanARecreatedCRDDoesNotDescribeIt(t *testing.T) {
	now := time.Now()
	k := knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}
	k.addDocument(gadgetDoc(), request{0, now}, now)
	k.replaceCRDs(metaList{items: []*slimMeta{gadgetMeta("1")}}, 0, now)
	c := k.snapshot(nil, now)
	created := now.Add(time.Second)
	k.putCRD(gadgetMeta("2"), 5, created)
	k.unread[objectRef{crdPath, "gadgets.example.org"}].failures = 1
	c = k.snapshot(c, created)
	for _, tc := range []struct {
		asked request
		want  bool
	}{
		{request{5, created.Add(-time.Second / 2)}, false},
		{request{6, created.Add(doubtFor - time.Second)}, false},
		{request{7, created.Add(doubtFor)}, true},
	} {
		received := created.Add(2 * doubtFor)
		k.addDocument(gadgetDoc(), tc.asked, received)
		c = k.snapshot(c, received)
		if res := c.served(gadgetGR.WithVersion("v1")); (res != nil) != tc.want {
			t.Errorf("after the document of request %d: %+v, want served %v", tc.asked.number, res, tc.want)
		}
	}
}

// A version that is stale has the last known resources: here those of the CRD before.
func TestKnowledge_AStaleVersionDoesNotDescribeARecreatedCRD(t *testing.T) {
	now := time.Now()
	k := knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}
	k.addDocument(gadgetDoc(), request{0, now}, now)
	k.replaceCRDs(metaList{items: []*slimMeta{gadgetMeta("1")}}, 0, now)
	c := k.snapshot(nil, now)
	other, changed := gadgetCRD("2"), gadgetMeta("2")
	other.Spec.Scope, changed.Generation = "Namespaced", 2
	k.putCRD(gadgetMeta("2"), 1, now)
	k.read(other)
	k.putCRD(changed, 2, now)
	number := uint64(2)
	for _, tc := range []struct {
		err  error
		want bool
	}{{errors.New("stale"), true}, {errMalformed, false}, {errors.New("stale"), true}, {nil, false}} {
		number++
		doc := gadgetDoc()
		doc.named.groups[0].versions[0].err = tc.err
		k.addDocument(doc, request{number, now}, now)
		c = k.snapshot(c, now)
		if res := c.served(gadgetGR.WithVersion("v1")); res == nil || res.Namespaced != tc.want {
			t.Errorf("after the document of request %d: %+v, want namespaced %v", number, res, tc.want)
		}
		if _, needed := k.needed(objectRef{crdPath, changed.Name}, func(schema.GroupResource) bool { return false }, time.Second, now); needed != tc.want {
			t.Errorf("after the document of request %d, the CRD must be read: %v, want %v", number, needed, tc.want)
		}
	}
}

// After a restore of etcd, the same CRD may return between two snapshots.
func TestKnowledge_ACRDThatReturnsWithItsUIDIsAnother(t *testing.T) {
	k := knowledge{crdsRule: true, crdsCurrent: true}
	now := time.Now()
	k.addDocument(gadgetDoc(), request{0, now}, now)
	k.replaceCRDs(metaList{items: []*slimMeta{gadgetMeta("1")}}, 0, now)
	k.read(gadgetCRD("1"))
	before := k.snapshot(nil, now)
	k.forgetCRD(gadgetMeta("1"), 0, now)
	k.putCRD(gadgetMeta("1"), 0, now)
	k.read(gadgetCRD("1"))
	events := k.events(before, k.snapshot(before, now), now)
	if len(events) != 2 || events[0].Type != Removed || events[0].Evidence.Kind != CRDDeleted || events[1].Type != Added {
		t.Errorf("events: %v", events)
	}
}

func TestKnowledge_ChangesHaveTheResultOfAFullComputation(t *testing.T) {
	seeds := uint64(80)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		r, now := rand.New(rand.NewPCG(seed, 0)), time.Now() //nolint:gosec // a test
		k := knowledge{crdsRule: true, crdsCurrent: true, apisRule: seed%2 == 0, apisCurrent: seed%4 == 0, doubtFor: doubtFor}
		items, body := manyCRDs(40)
		var (
			groups []groupDoc
			last   *snapshot
		)
		for number := range uint64(60) {
			switch r.IntN(8) {
			case 6:
				now = now.Add(time.Duration(r.IntN(10)) * time.Second)
			case 7:
				var err error
				changed := bytes.ReplaceAll(body, fmt.Appendf(nil, "Widget%d", r.IntN(40)), fmt.Appendf(nil, "Gadget%d", r.IntN(40)))
				if groups, err = parseProtobuf(changed, groups); err != nil {
					continue // other lengths: no document
				}
				from, to := r.IntN(len(groups)+1), r.IntN(len(groups)+1)
				k.addDocument(&document{named: root{groups: slices.Clone(groups[min(from, to):max(from, to)])}}, request{number + 1, now}, now)
			default:
				hear(r, &k, *items[r.IntN(len(items))], number, now)
			}
			if k.doc == nil {
				continue
			}
			c := k.snapshot(last, now)
			k.events(last, c, now)
			k.all, k.regroup = true, true
			whole := k.snapshot(c, now)
			if c != whole && !c.same(whole) || c.types != whole.types {
				t.Fatalf("seed %d, step %d: %d types in %d groups by difference, %d in %d anew", seed, number, c.types, len(c.groups), whole.types, len(whole.groups))
			}
			for i, view := range newSnapshot(c.groups, nil, nil).byName {
				if c.byName[i] != view {
					t.Fatalf("seed %d, step %d: group %s is not found", seed, number, view.name)
				}
			}
			last = c
		}
	}
}

// hear lets k hear something about the CRD of that name, or its APIService.
func hear(r *rand.Rand, k *knowledge, item slimMeta, number uint64, now time.Time) {
	gr := groupResourceOf(item.Name)
	switch r.IntN(5) {
	case 0:
		item.UID, item.Generation = types.UID(fmt.Sprint(r.IntN(2))), int64(r.IntN(3))
		k.putCRD(&item, number, now)
	case 1:
		if state := k.crd(gr); state != nil && state.meta != nil {
			k.forgetCRD(state.meta, number, now)
		}
	case 2:
		definition := gadgetCRD(types.UID(fmt.Sprint(r.IntN(2))))
		definition.Metadata.Name, definition.Spec.Group = item.Name, gr.Group
		definition.Spec.Names.Plural, definition.Status.AcceptedNames.Plural = gr.Resource, gr.Resource
		k.read(definition)
	case 3:
		k.putAPI(&slimMeta{Name: "v1." + gr.Group, UID: "1", Labels: map[string]string{automanaged: "true"}})
	default:
		k.forgetAPI(&slimMeta{Name: "v1." + gr.Group, UID: "1"})
	}
}

// manyCRDs returns n CRDs, ten to a group, and the document that lists them, in protobuf.
func manyCRDs(n int) (items []*slimMeta, body []byte) {
	var list apidiscovery.APIGroupDiscoveryList
	for i := range n {
		group := fmt.Sprintf("group%d.example.com", i/10)
		plural := fmt.Sprintf("widget%ds", i)
		items = append(items, &slimMeta{Name: plural + "." + group, UID: types.UID(fmt.Sprint(i)), Generation: 1, ResourceVersion: "1"})
		if i%10 == 0 {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscovery.APIVersionDiscovery{{Version: "v1", Freshness: "Current"}},
			})
		}
		version := &list.Items[i/10].Versions[0]
		version.Resources = append(version.Resources, apidiscovery.APIResourceDiscovery{
			Resource: plural, ResponseKind: &metav1.GroupVersionKind{Group: group, Version: "v1", Kind: fmt.Sprintf("Widget%d", i)},
			Scope: apidiscovery.ScopeNamespace, SingularResource: plural[:len(plural)-1], Verbs: crdVerbs,
		})
	}
	return items, protobufDoc(&list)
}

// protobufDoc returns list as a server sends it.
func protobufDoc(list *apidiscovery.APIGroupDiscoveryList) []byte {
	raw, err := list.Marshal()
	if err != nil {
		panic(err)
	}
	envelope := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: aggregatedKind}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), body...)
}

// crowd is the knowledge of a run on a server with many CRDs.
type crowd struct {
	knowledge
	items []*slimMeta
	body  []byte // of the document
	last  *snapshot
	now   time.Time
}

func newCrowd(tb testing.TB, crds int) *crowd {
	tb.Helper()
	items, body := manyCRDs(crds)
	groups, err := parseProtobuf(body, nil)
	if err != nil {
		tb.Fatal(err)
	}
	c := &crowd{knowledge: knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}, items: items, body: body, now: time.Now()}
	c.addDocument(&document{named: root{groups: groups}}, request{1, c.now}, c.now)
	c.replaceCRDs(metaList{items: items}, 1, c.now)
	c.publish(tb, crds)
	return c
}

// publish computes the events for subscribers, and fails the test unless their number is want.
func (c *crowd) publish(tb testing.TB, want int) {
	tb.Helper()
	now := c.snapshot(c.last, c.now)
	if got := len(c.events(c.last, now, c.now)); got != want {
		tb.Fatalf("%d events, want %d", got, want)
	}
	c.last = now
}

// change is the i-th write of the first CRD.
func (c *crowd) change(i int) *slimMeta {
	item := *c.items[0]
	item.ResourceVersion = fmt.Sprint(i)
	return &item
}

// relabel learns of another label of the first CRD.
func (c *crowd) relabel(tb testing.TB, i int) {
	tb.Helper()
	item := c.change(i)
	item.Labels = map[string]string{"i": fmt.Sprint(i)}
	c.putCRD(item, 1, c.now)
	c.publish(tb, 1)
}

// The cost of an event of one of many CRDs, from the watch to the subscribers, and of a document that
// differs in one group.
func BenchmarkKnowledge(b *testing.B) {
	for _, crds := range []int{100, 1000, 5000} {
		c := newCrowd(b, crds)
		b.Run(fmt.Sprintf("event/crds=%d", crds), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				c.relabel(b, i)
			}
		})
		b.Run(fmt.Sprintf("document/crds=%d", crds), func(b *testing.B) {
			b.ReportAllocs()
			changed := [][]byte{c.body, bytes.Replace(c.body, []byte("Widget7"), []byte("Gadget7"), 1)}
			groups, number := c.doc.named.groups, uint64(1)
			for b.Loop() {
				number++
				var err error
				if groups, err = parseProtobuf(changed[(number+1)%2], groups); err != nil {
					b.Fatal(err)
				}
				c.addDocument(&document{named: root{groups: groups}}, request{number, c.now}, c.now)
				c.publish(b, 1)
			}
		})
	}
}

// The work for an event, counted in allocations and their bytes, does not depend on how many
// types there are, except that a snapshot has two pointers to each group.
func TestKnowledge_AnEventCostsTheSameAmongManyTypes(t *testing.T) {
	const small, rounds = 100, 50
	for name, event := range map[string]func(t *testing.T, c *crowd, i int){
		"another label": func(t *testing.T, c *crowd, i int) { t.Helper(); c.relabel(t, i) },
		"another status": func(t *testing.T, c *crowd, i int) {
			t.Helper()
			c.putCRD(c.change(i), 1, c.now)
			c.publish(t, 0)
		},
		"another generation": func(t *testing.T, c *crowd, i int) {
			t.Helper()
			item := c.change(i)
			item.Generation = int64(i)
			c.putCRD(item, 1, c.now)
			c.publish(t, 0)
		},
		"another APIService": func(t *testing.T, c *crowd, i int) {
			t.Helper()
			c.putAPI(&slimMeta{Name: "v1.group0.example.com", UID: types.UID(fmt.Sprint(i))})
			c.publish(t, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(crds int) (allocs, bytes float64) {
				c, i := newCrowd(t, crds), 0
				once := func() { i++; event(t, c, i) }
				once()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				allocs = testing.AllocsPerRun(rounds, once)
				runtime.ReadMemStats(&after)
				return allocs, float64(after.TotalAlloc-before.TotalAlloc) / (rounds + 1)
			}
			allocs, bytes := cost(small)
			for _, crds := range []int{1000, 5000} {
				manyAllocs, manyBytes := cost(crds)
				if manyAllocs > 1.1*allocs+5 || manyBytes > 1.1*bytes+2000+20*float64(crds)/10 {
					t.Errorf("an event costs %.0f allocations and %.0f bytes with %d types, %.0f and %.0f with %d", manyAllocs, manyBytes, crds, allocs, bytes, small)
				}
			}
		})
	}
}

// Of a document, only the groups that have changed are computed again.
func TestKnowledge_UnchangedGroupsAreNotComputedAgain(t *testing.T) {
	_, body := manyCRDs(100)
	for name, test := range map[string]struct {
		body []byte
		want []string
	}{
		"the same document":      {body, nil},
		"another kind in group0": {bytes.Replace(body, []byte("Widget7"), []byte("Gadget7"), 1), []string{"group0.example.com"}},
	} {
		c := newCrowd(t, 100)
		groups, err := parseProtobuf(test.body, c.doc.named.groups)
		if err != nil {
			t.Fatal(err)
		}
		c.addDocument(&document{named: root{groups: groups}}, request{2, c.now}, c.now)
		if got := slices.Sorted(maps.Keys(c.dirty)); !slices.Equal(got, test.want) {
			t.Errorf("%s: computes %q, want %q", name, got, test.want)
		}
	}
}

// After a list, the resourceVersions of the server may be lower than that of a CRD that was read before.
func TestKnowledge_AListEndsWhatWasLearned(t *testing.T) {
	k := &knowledge{}
	k.putCRD(gadgetMeta("2"), 1, time.Now())
	k.crd(gadgetGR).learned = "9"
	former := gadgetMeta("1")
	if former.ResourceVersion = "8"; !k.isBehind(former) {
		t.Error("an event before the read has an effect")
	}
	if former.ResourceVersion = "10"; k.isBehind(former) {
		t.Error("an event after the read has no effect")
	}
	k.replaceCRDs(metaList{[]*slimMeta{gadgetMeta("2")}, "5", time.Now()}, 2, time.Now())
	if former.ResourceVersion = "8"; k.isBehind(former) {
		t.Error("an event after the list has no effect")
	}
}

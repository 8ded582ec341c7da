package discovery

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzDocument feeds what a server may send to all who read it: nothing panics, and
// what is not served is an error of one of the kinds that there are.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `"x"`, `{"kind":"Status","status":"Failure"}`,
		`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a.b"},"versions":[{"version":"v1","resources":[
			{"resource":"xs","responseKind":{"group":"a.b","version":"v1","kind":"X"},"scope":"Cluster","verbs":["list"],"subresources":[{"subresource":"status"}]},
			{"resource":"xs"},{"resource":""},{"resource":"a/b"},{"resource":"ys","responseKind":{},"verbs":["get"]}]},
			{"version":"","resources":null},{"version":"v2","freshness":"Stale"}]},{"versions":[{"version":"v1"}]}]}`,
		`{"kind":"APIGroupDiscoveryList","items":[null,{"metadata":null,"versions":[null]}]}`,
		`{"kind":"APIVersions","versions":["v1","","v1"]}`,
		`{"kind":"APIGroupList","groups":[{"name":"a.b","versions":[{"version":"v1"},{"version":"v2"}],"preferredVersion":{"version":"v2"}},{"name":""}]}`,
		`{"kind":"APIResourceList","groupVersion":"a.b/v1","resources":[{"name":"xs","kind":"X"},{"name":"xs/status"},{"name":"/"},{"name":"xs","kind":"Y"}]}`,
		`{"metadata":{"name":"xs.a.b","uid":"1"},"spec":{"group":"a.b","scope":"Cluster","names":{"plural":"xs","kind":"X"},"versions":[{"name":"v1","served":true},{"name":""}]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	_, whole := manyCRDs(11)
	f.Add(whole)
	gv := schema.GroupVersion{Group: "a.b", Version: "v1"}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc := &document{}
		if groups, err := parseAggregated(body); err == nil {
			doc.named.groups = groups
		}
		if groups, err := parseProtobuf(body, nil); err == nil {
			doc.named.groups = groups
			again, err := parseProtobuf(body, groups)
			if err != nil || len(again) != len(groups) {
				t.Errorf("read again: %d groups, %v, of %d", len(again), err, len(groups))
			}
		}
		if groups, err := parseGroups(body); err == nil && doc.named.groups == nil {
			doc.named.groups = groups
		}
		if groups, err := parseCore(body); err == nil {
			doc.core.groups = groups
		}
		if version, err := parseList(gv, body); err == nil {
			doc.named.groups = append(doc.named.groups, groupDoc{name: gv.Group, versions: []versionDoc{version}})
		}
		definition, service := &crd{}, &apiService{}
		_ = json.Unmarshal(body, definition) // a part of it may be there all the same
		_ = json.Unmarshal(body, service)

		known := knowledge{crdsRule: true, apisRule: true, doubtFor: time.Second}
		now := time.Now()
		known.addDocument(doc, request{1, now}, now)
		known.replaceCRDs(metaList{items: []*slimMeta{&definition.Metadata}}, 1, now)
		known.replaceAPIs([]*slimMeta{&service.Metadata})
		known.read(definition)
		known.readAPI(service)
		first := known.snapshot(nil, now)
		checkSnapshot(t, first)
		known.forgetCRD(&definition.Metadata, 1, now)
		known.addDocument((&document{}).withLastKnown(doc), request{2, now}, now)
		c := known.snapshot(first, now)
		checkSnapshot(t, c)
		known.events(first, c, now)
	})
}

func checkSnapshot(t *testing.T, c *snapshot) {
	t.Helper()
	c.mapper()
	for res := range c.all() {
		if got, err := c.answer(questionOfGVR(res.GVR)); err != nil && res.GVR.Version != "" {
			t.Errorf("%v is listed as %v, and the answer is %v", res.GVR, got.GVR, err)
		}
	}
	for _, ref := range []Ref{{Resource: "xs"}, {Resource: "x", Group: "a.b"}, {Resource: "X", Version: "v1", Group: "a.b"}} {
		_, err := c.answer(question{ref: ref, form: anyForm})
		if err != nil && !errors.Is(err, ErrNotServed) && !errors.Is(err, ErrAmbiguous) && !errors.Is(err, ErrInconclusive) {
			t.Errorf("%v: %v", ref, err)
		}
	}
}

// The two formats of a document say the same, whatever was known before.
func TestDocument_ProtobufSaysWhatJSONSays(t *testing.T) {
	kind := &metav1.GroupVersionKind{Group: "a.b", Version: "v1", Kind: "X"}
	list := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: aggregatedKind},
		Items: []apidiscovery.APIGroupDiscovery{
			{ObjectMeta: metav1.ObjectMeta{Name: "a.b"}, Versions: []apidiscovery.APIVersionDiscovery{
				{Version: "v1", Freshness: apidiscovery.DiscoveryFreshnessCurrent, Resources: []apidiscovery.APIResourceDiscovery{
					{
						Resource: "xs", ResponseKind: kind, Scope: apidiscovery.ScopeNamespace, SingularResource: "x", Verbs: []string{"list"},
						ShortNames: []string{"s"}, Categories: []string{"c"}, Subresources: []apidiscovery.APISubresourceDiscovery{{Subresource: "status"}},
					},
					{Resource: "spoilt", ResponseKind: kind},
				}},
				{Version: "v2", Freshness: apidiscovery.DiscoveryFreshnessStale},
			}},
			{ObjectMeta: metav1.ObjectMeta{Name: "c.d"}, Versions: []apidiscovery.APIVersionDiscovery{{Version: "v1", Resources: []apidiscovery.APIResourceDiscovery{
				{Resource: "ys", ResponseKind: kind, Scope: apidiscovery.ScopeCluster},
			}}}},
		},
	}
	asJSON, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseAggregated(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	var got []groupDoc
	for round := range 2 {
		if got, err = parseProtobuf(protobufDoc(list), got); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].raw == "" {
			t.Fatalf("round %d: %+v", round, got)
		}
		plain := slices.Clone(got)
		for i := range plain {
			plain[i].raw = ""
		}
		if !reflect.DeepEqual(want, plain) {
			t.Errorf("round %d: protobuf says\n%+v\nJSON says\n%+v", round, plain, want)
		}
	}
	for _, body := range []string{"", "k8s", "k8s\x00", "k8s\x00\x0a\xff", string(protobufDoc(list)[:40]), string(asJSON)} {
		if groups, err := parseProtobuf([]byte(body), got); !errors.Is(err, errNoList) {
			t.Errorf("%q: %d groups, %v", body, len(groups), err)
		}
	}
}

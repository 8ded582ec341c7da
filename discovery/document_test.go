package discovery

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

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
	gv := schema.GroupVersion{Group: "a.b", Version: "v1"}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc := &document{}
		if groups, err := parseAggregated(body); err == nil {
			doc.named.groups = groups
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
		known.learn(doc, 1, now)
		known.learnCRDs([]*slimMeta{&definition.Metadata}, 1, now)
		known.learnAPIs([]*slimMeta{&service.Metadata})
		known.read(definition)
		known.readAPI(service)
		first := known.catalogue(nil, now)
		checkCatalogue(t, first)
		known.forgetCRD(&definition.Metadata, 1, now)
		known.learn((&document{}).withLastKnown(doc), 2, now)
		c := known.catalogue(first, now)
		checkCatalogue(t, c)
		known.events(first, c, now)
	})
}

func checkCatalogue(t *testing.T, c *catalogue) {
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

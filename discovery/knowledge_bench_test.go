package discovery

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

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
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: aggregatedKind}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), body...)
}

// What an event about one of many CRDs costs, from the watch until subscribers are told, and
// what a document costs that differs in one group.
func BenchmarkKnowledge(b *testing.B) {
	for _, crds := range []int{100, 1000, 5000} {
		items, body := manyCRDs(crds)
		changed := [][]byte{body, bytes.Replace(body, []byte("Widget7"), []byte("Gadget7"), 1)}
		groups, err := parseProtobuf(body, nil)
		if err != nil {
			b.Fatal(err)
		}
		now := time.Now()
		k := knowledge{crdsRule: true, crdsCurrent: true, doubtFor: doubtFor}
		k.learn(&document{named: root{groups: groups}}, 1, now)
		k.learnCRDs(items, 1, now)
		last := k.snapshot(nil, now)
		k.events(nil, last, now)
		publish := func(want int) {
			c := k.snapshot(last, now)
			if got := len(k.events(last, c, now)); got != want {
				b.Fatalf("%d events, want %d", got, want)
			}
			last = c
		}
		b.Run(fmt.Sprintf("event/crds=%d", crds), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				k.learnCRD(&slimMeta{
					Name: items[0].Name, UID: items[0].UID, Generation: 1, ResourceVersion: fmt.Sprint(i),
					Labels: map[string]string{"i": fmt.Sprint(i)},
				}, 1, now)
				publish(1)
			}
		})
		b.Run(fmt.Sprintf("document/crds=%d", crds), func(b *testing.B) {
			b.ReportAllocs()
			number := uint64(1)
			for b.Loop() {
				number++
				if groups, err = parseProtobuf(changed[(number+1)%2], groups); err != nil {
					b.Fatal(err)
				}
				k.learn(&document{named: root{groups: groups}}, number, now)
				publish(1)
			}
		})
	}
}

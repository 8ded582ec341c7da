package discovery

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/watch"
)

// memory returns the bytes of live objects, and of all that were ever allocated.
func memory() (live, total int64) {
	runtime.GC()
	runtime.GC() // what the first has found free, it may still sweep
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.TotalAlloc)
}

// crdWithSchema is the JSON of a CRD. The schema is not copied into it.
func crdWithSchema(name, schema string) io.Reader {
	return io.MultiReader(
		strings.NewReader(fmt.Sprintf(`{"kind":"CustomResourceDefinition","metadata":{"name":%q,"uid":"u-%s","resourceVersion":"7",
			"annotations":{"last-applied":%q},"managedFields":[{"manager":"x"}]},
			"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget","shortNames":["w"]},
			"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":`, name, name, strings.Repeat("y", 500))),
		strings.NewReader(schema),
		strings.NewReader(`}]},"status":{"acceptedNames":{"plural":"widgets","kind":"Widget"},"conditions":[{"type":"Established","status":"True"}]}}`),
	)
}

// openAPI returns a schema of about that many bytes.
func openAPI(size int) string {
	const property = `{"type":"object","description":"One of many.","properties":{"a":{"type":"string"}}}`
	var b strings.Builder
	b.WriteString(`{"openAPIV3Schema":{"properties":{"z":{}`)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `,"p%d":%s`, i, property)
	}
	b.WriteString(`}}}`)
	return b.String()
}

func TestFeed_KeepsNoSchemasOfAList(t *testing.T) {
	const crds, size = 300, 200_000
	schema := openAPI(size)
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		var kept []*crd
		ft.feed.list = func(items []*crd) { kept = items }
		before, allocatedBefore := memory()
		for from := 0; from < crds; from += pageLimit {
			parts := []io.Reader{strings.NewReader(`{"items":[`)}
			for i := range pageLimit {
				if i > 0 {
					parts = append(parts, strings.NewReader(","))
				}
				parts = append(parts, crdWithSchema(fmt.Sprintf("crd-%d", from+i), schema))
			}
			next := fmt.Sprintf("from-%d", from+pageLimit)
			if from+pageLimit >= crds {
				next = ""
			}
			parts = append(parts, strings.NewReader(fmt.Sprintf(`],"metadata":{"resourceVersion":"7","continue":%q}}`, next)))
			ft.next("list").reply(http.StatusOK, io.MultiReader(parts...))
		}
		ft.next("watch").stream()
		synctest.Wait()
		after, allocated := memory()
		if len(kept) != crds || !kept[crds-1].isEstablished() {
			t.Fatalf("%d CRDs were listed, want %d", len(kept), crds)
		}
		if got := (after - before) / crds; got > 4<<10 {
			t.Errorf("%d bytes are kept of each CRD", got)
		}
		// No document is ever in memory as a whole: a page has 20 MB.
		if got := allocated - allocatedBefore; got > 20<<20 {
			t.Errorf("%d bytes were allocated for the list", got)
		}
		runtime.KeepAlive(kept)
	})
}

func TestFeed_KeepsNothingOfALargeEvent(t *testing.T) {
	schema := openAPI(1_600_000)
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		var kept []*crd
		ft.feed.event = func(_ watch.EventType, item *crd) { kept = append(kept, item) }
		s := ft.begin()
		before, _ := memory()
		for i := range 3 {
			s.write(`{"type":"ADDED","object":`)
			if _, err := io.Copy(s, crdWithSchema(fmt.Sprintf("crd-%d", i), schema)); err != nil {
				t.Fatal(err)
			}
			s.write("}\n")
		}
		synctest.Wait() // it reads on
		after, _ := memory()
		if len(kept) != 3 {
			t.Fatalf("%d events, want 3", len(kept))
		}
		if got := after - before; got > 256<<10 {
			t.Errorf("%d bytes are kept of three events", got)
		}
		runtime.KeepAlive(kept)
		s.send("DELETED", crdNamed("crd-0", "8"))
		synctest.Wait()
		if len(kept) != 4 {
			t.Errorf("%d events, want another", len(kept))
		}
	})
}

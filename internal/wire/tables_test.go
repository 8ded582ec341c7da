package wire

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// Limits of memory, as documented by dynamicclient.New and WithSharing.
const (
	ownLimit    = 13 << 20
	sharedLimit = 100 << 20
)

// The objects have more of the longest interned strings than the tables have slots, and
// subtrees that need the most memory for each byte of JSON: their keys are short, and their maps have just grown.
func TestTables_TakeNoMoreMemoryThanDocumented(t *testing.T) {
	whole(t)
	for _, test := range []struct {
		sharing Sharing
		limit   uint64
	}{{Own, ownLimit}, {Shared, sharedLimit}} {
		tables := NewTables(test.sharing)
		settings := &Settings{Tables: tables, Sharing: test.sharing}
		for batch := range 20 {
			data := worst(batch)
			for range sightings {
				if !settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok }) {
					t.Fatal("not decoded")
				}
			}
		}
		with := heap()
		runtime.KeepAlive(settings) // the tables can be collected from here on
		used := with - heap()
		t.Logf("sharing %v: %.1f MB", bool(test.sharing), float64(used)/(1<<20))
		if used > test.limit || used < test.limit/2 {
			t.Errorf("sharing %v: the tables use %d bytes, want at most %d, and at least half of that", bool(test.sharing), used, test.limit)
		}
	}
}

// A program that reads little has small tables.
func TestTables_GrowWithWhatIsRead(t *testing.T) {
	settings := &Settings{Tables: NewTables(Shared), Sharing: Shared}
	read := func(size int) *tables {
		data := fmt.Appendf(nil, `{"spec":{"text":%q}}`, strings.Repeat("x", size))
		if !settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok }) {
			t.Fatal("not decoded")
		}
		return settings.Tables.current.Load()
	}
	first := read(smallFor / 2)
	if got := read(smallFor / 4); got != first || len(got.strings.slots) != smallSizes.strings {
		t.Errorf("after some bytes there are %d slots for strings, want %d, the same", len(got.strings.slots), smallSizes.strings)
	}
	grown := read(smallFor)
	if got := read(smallFor); got != grown || len(got.strings.slots) != largeSizes.strings {
		t.Errorf("after more bytes there are %d slots for strings, want %d, the same", len(got.strings.slots), largeSizes.strings)
	}
}

// An event of a stream counts once, although more events are in the buffer.
func TestTables_GrowWithTheEventsThatAreRead(t *testing.T) {
	settings := &Settings{Tables: NewTables(Own)}
	event := []byte(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"A","spec":"` + strings.Repeat("x", 1000) + `"}}` + "\n")
	read := func(size int) int {
		stream := bytes.Repeat(event, size/len(event))
		f := &frameReader{settings: settings, body: io.NopCloser(bytes.NewReader(stream)), bypass: &bypass{}, batch: batch{pause: len(stream)}}
		for f.advance() == nil {
		}
		return len(settings.Tables.current.Load().strings.slots)
	}
	if got := read(smallFor / 2); got != smallSizes.strings {
		t.Errorf("after some events there are %d slots for strings, want %d", got, smallSizes.strings)
	}
	if got := read(smallFor); got != largeSizes.strings {
		t.Errorf("after more events there are %d slots for strings, want %d", got, largeSizes.strings)
	}
}

// A program that keeps a few texts of each object, as a transform can do, keeps nothing else of the response.
func TestDecode_ATextDoesNotKeepTheResponseAlive(t *testing.T) {
	whole(t)
	const objects, limit = 2000, 512 << 10 // the responses are 32 times as large
	for _, sharing := range []Sharing{Own, Shared} {
		before := heap()
		kept := shortTexts(t, objects, &Settings{Tables: NewTables(sharing), Sharing: sharing})
		if after := heap(); after > before+limit {
			t.Errorf("sharing %v: %d bytes of heap for %d short texts, want at most %d", bool(sharing), after-before, len(kept), limit)
		}
		if len(kept) != 6*objects {
			t.Errorf("%d texts, want %d", len(kept), 6*objects)
		}
		runtime.KeepAlive(kept)
	}
}

// shortTexts decodes n events of 4 KB, and a list of n objects of 4 KB, and returns three texts of each.
func shortTexts(t *testing.T, n int, settings *Settings) (kept []string) {
	t.Helper()
	keep := func(of kruntime.Object) {
		u := of.(*unstructured.Unstructured)
		escaped, _, _ := unstructured.NestedString(u.Object, "spec", "escaped")
		kept = append(kept, u.GetName(), u.GetResourceVersion(), escaped)
	}
	var events, items strings.Builder
	for i := range n {
		object := fmt.Sprintf(`{"apiVersion":"v1","kind":"A","metadata":{"name":"n-%d","resourceVersion":"%d"},"spec":{"escaped":"\n%d","other":"%04096d"}}`, i, i, i, i)
		fmt.Fprintf(&events, `{"type":"ADDED","object":%s}`+"\n", object)
		fmt.Fprintf(&items, ",%s", object)
	}
	f := &frameReader{settings: settings, body: io.NopCloser(strings.NewReader(events.String())), bypass: &bypass{}}
	for f.advance() == nil {
		keep(f.bypass.object)
	}
	var list unstructured.UnstructuredList
	data := []byte(`{"apiVersion":"v1","kind":"AList","metadata":{},"items":[` + items.String()[1:] + `]}`)
	if !settings.decode(data, func(b *builder) bool { return b.list(&list) }) {
		t.Fatal("not decoded")
	}
	for i := range list.Items {
		keep(&list.Items[i])
	}
	return kept
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// worst returns one of a series of objects that fill the tables.
func worst(batch int) []byte {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"v1","kind":"A","spec":{`)
	for i := range 2000 {
		long := fmt.Sprintf("%0*d", maxInterned, batch*2000+i)
		fmt.Fprintf(&b, `"%s":"x%s",`, long, long[1:])
		if i%2 == 0 {
			fmt.Fprintf(&b, `"s%d":%s,`, i, subtreeWith(113, batch*2000+i))
		}
	}
	b.WriteString(`"end":1}}`)
	return []byte(b.String())
}

// subtreeWith returns an object with n members, one of which is number.
func subtreeWith(n, number int) string {
	var b strings.Builder
	for member := range n - 1 {
		fmt.Fprintf(&b, `"%c`, 'a'+member%26)
		if member >= 26 {
			fmt.Fprintf(&b, "%c", 'a'+member/26)
		}
		b.WriteString(`":1,`)
	}
	return fmt.Sprintf(`{%s"A":%d}`, &b, number)
}

// collision returns two texts of equal length whose hashes have equal marks.
func collision(t *testing.T, seed maphash.Seed) (a, b string) {
	t.Helper()
	texts := map[uint32]string{}
	for i := range 1_000_000 {
		text := fmt.Sprintf("%08d", i)
		mark := markOf(hashOf(seed, []byte(text)))
		if other, there := texts[mark]; there {
			return other, text
		}
		texts[mark] = text
	}
	t.Fatal("no texts have equal marks")
	return "", ""
}

func TestParts_EqualMarksAreNotEqualContents(t *testing.T) {
	const slots = 2 // each text can be in each slot
	texts := NewTexts(slots)
	a, b := collision(t, texts.seed)
	for _, text := range []string{a, a, b, b} {
		if got := texts.Text([]byte(text)); got != text {
			t.Errorf("Text(%q) = %q", text, got)
		}
	}
	parts := NewParts[string](slots)
	a, b = collision(t, parts.seed)
	for _, text := range []string{a, a, b, b} {
		got, ok := parts.Get([]byte(text), func(content []byte) (string, bool) { return string(content), true })
		if got != text || !ok {
			t.Errorf("Get(%q) = %q, %v", text, got, ok)
		}
	}
}

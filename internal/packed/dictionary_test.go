package packed

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// Texts with one hash are different entries.
func TestEntries_EqualHashesAreNotEqualTexts(t *testing.T) {
	e := newEntries()
	collide := func(string) uint64 { return 7 }
	for i := range 500 {
		text := fmt.Sprint("text ", i)
		if number, found := e.find([]byte(text), 7); found {
			t.Fatalf("%q is not there, but has number %d", text, number)
		}
		if number := e.add(text, collide); number != i {
			t.Fatalf("%q has number %d, want %d", text, number, i)
		}
	}
	for i := range 500 {
		if number, found := e.find([]byte(fmt.Sprint("text ", i)), 7); !found || number != i {
			t.Errorf("text %d has number %d, %v", i, number, found)
		}
	}
}

// An object of many distinct keys and strings takes no more than twice its JSON, with the dictionary.
func TestDictionary_IsBounded(t *testing.T) {
	whole(t)
	for name, entry := range map[string]func(i int) string{
		"keys":    func(i int) string { return fmt.Sprintf(`"key-%d":%d`, i, i) },
		"strings": func(i int) string { return fmt.Sprintf(`"k%d":"a value with some text %d"`, i, i) },
		"repeated": func(i int) string {
			return fmt.Sprintf(`"a%d":[{"key-%d":1},{"key-%d":2},{"key-%d":3},{"key-%d":4}]`, i, i, i, i, i)
		},
		"objects": func(i int) string { return fmt.Sprintf(`"k%d":{"name":"object-%d","ports":[1000,2000,%d]}`, i, i, i) },
	} {
		t.Run(name, func(t *testing.T) {
			n := 70_000
			if name == "repeated" {
				n = maxWords + 1000
			}
			var b strings.Builder
			b.WriteString(`{"metadata":{"name":"x"},"spec":{"a":0`)
			for i := range n {
				b.WriteString("," + entry(i))
			}
			b.WriteString("}}")
			data := []byte(b.String())
			p := NewPacker()
			for range 3 {
				tape, ok := p.FromJSON(data, nil)
				if size := tape.Size() + p.Dictionary().Size(); !ok || size > 2*len(data) {
					t.Fatalf("%d bytes of %d bytes of JSON, packed: %v", size, len(data), ok)
				}
			}
			want, err := decoded(data)
			if tape, ok := p.FromJSON(data, nil); !ok || err != nil || !same(tape.Content(), want) {
				t.Error("the content is another")
			}
			if d := p.Dictionary(); len(d.words.boxed) > maxWords || len(d.shapes.boxed) > maxShapes || len(d.values.boxed) > maxValues || d.bytes > maxBytes || name == "repeated" && len(d.words.boxed) < maxWords {
				t.Errorf("%d words, %d shapes, %d values, %d bytes", len(d.words.boxed), len(d.shapes.boxed), len(d.values.boxed), d.bytes)
			}
		})
	}
}

// In a month, each object is replaced some times a day, and what objects have in common changes each day. The
// dictionary does not keep what was.
func TestPacker_AMonthOfChanges(t *testing.T) {
	whole(t)
	const objects, days, perDay = 400, 30, 1200
	p := NewPacker()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // test data
	live := make([]Tape, objects)
	object := func(day int) []byte {
		spec := map[string]any{}
		for range 8 {
			spec[fmt.Sprintf("field-%d-%d", day, r.IntN(60))] = fmt.Sprintf("a word of day %d: %d", day, r.IntN(100))
		}
		return encode(t, map[string]any{"kind": "A", "apiVersion": "g/v1", "metadata": map[string]any{"name": uuid(r)}, "spec": spec})
	}
	size := func(p *Packer, tapes []Tape) int {
		all := p.Dictionary().Size()
		for _, tape := range tapes {
			all += tape.Size()
		}
		return all
	}
	renewed := 0
	for day := range days {
		for range perDay {
			tape, ok := p.FromJSON(object(day), nil)
			if !ok {
				t.Fatal("an object is not packed")
			}
			live[r.IntN(objects)] = tape
		}
		if p.Renew(slices.Values(live)) {
			renewed++
			for i, tape := range live {
				before := tape.Content()
				live[i] = p.Repack(tape)
				if !tape.IsZero() && live[i].dict != p.Dictionary() {
					t.Fatal("a tape has the old dictionary")
				}
				if !same(live[i].Content(), before) {
					t.Fatal("the content is another")
				}
			}
		}
	}
	fresh, again := NewPacker(), make([]Tape, objects)
	for range 2 {
		for i, tape := range live {
			again[i] = fresh.Repack(tape)
		}
	}
	now, least := size(p, live), size(fresh, again)
	t.Logf("%d bytes after %d days and %d dictionaries, %d with a dictionary of these objects alone", now, days, renewed+1, least)
	if renewed == 0 || now > 2*least {
		t.Errorf("%d bytes after %d days and %d dictionaries, want at most twice %d", now, days, renewed+1, least)
	}
}

// Tapes that use most of a dictionary keep it.
func TestPacker_RenewKeepsADictionaryThatIsUsed(t *testing.T) {
	p := NewPacker()
	var live []Tape
	for range 2 {
		live = live[:0]
		for i := range 300 {
			content := block(i)
			for n := range 6 {
				content["spec"].(map[string]any)[fmt.Sprintf("key-%d-%d", i, n)] = n
			}
			tape, _ := p.FromJSON(encode(t, content), nil)
			live = append(live, tape)
		}
	}
	used, all := p.Dictionary().used(slices.Values(live))
	if all < renewFrom || used < all*9/10 || p.Renew(slices.Values(live)) {
		t.Errorf("%d of %d entries are used, dictionary renewed: %v", used, all, p.Renew(slices.Values(live)))
	}
	if used, _ := p.Dictionary().used(slices.Values(live[:1])); used == 0 || used > all/2 {
		t.Errorf("one tape uses %d of %d entries", used, all)
	}
}

// A text of a tape may consist of a word of the dictionary and a rest.
func TestDictionary_WordsOfPrefixesAreUsed(t *testing.T) {
	p := NewPacker()
	var tape Tape
	for i := range 200 {
		tape, _ = p.FromContent(map[string]any{"metadata": map[string]any{"name": "a"}, "image": fmt.Sprintf("registry.example.com/Image%d", i)})
	}
	const prefix = "registry.example.com/"
	number, found := p.Dictionary().words.find([]byte(prefix), maphash.String(p.Dictionary().seed, prefix))
	if !found {
		t.Fatal("the prefix is not in the dictionary")
	}
	u := usage{make([]bool, maxWords), make([]bool, maxShapes), make([]bool, maxValues)}
	if tape.use(&u); !u.words[number] {
		t.Error("the word of a prefix has no mark")
	}
}

// Several goroutines pack and unpack at the same time.
func TestPacker_IsSafeForConcurrentUse(t *testing.T) {
	p := NewPacker()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 100 {
				content := block((i + 25*worker) % 100)
				tape, ok := p.FromJSON(encode(t, content), nil)
				if !ok || len(tape.Content()) != len(content) || tape.Name() == "" {
					t.Error("an object is not packed")
				}
				if i%10 == 0 {
					p.Renew(maps.Keys(map[Tape]bool{tape: true}))
					p.Repack(tape)
				}
			}
		})
	}
	all.Wait()
}

// Fields are left out as package wire leaves them out.
func TestFromJSON_DropsAsWire(t *testing.T) {
	for _, paths := range [][]string{
		{"spec"},
		{"metadata"},
		{"metadata.managedFields", "metadata.labels"},
		{"metadata.name", "kind"},
		{"spec.a.b", "status"},
		{"x"},
		{"only spec.a", "only metadata.labels"},
		{"only metadata", "metadata.managedFields"},
		{"only x"},
	} {
		drop := &wire.Drop{}
		var keep [][]string
		for _, path := range paths {
			if only, is := strings.CutPrefix(path, "only "); is {
				keep = append(keep, strings.Split(only, "."))
			}
		}
		if len(keep) > 0 {
			drop.Keep(keep...)
		}
		for _, path := range paths[len(keep):] {
			drop.Add(strings.Split(path, ".")...)
		}
		stock := wire.Negotiated(dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer, wire.Settings{Tables: wire.NewTables(wire.Own), Drop: drop})
		info, _ := runtime.SerializerInfoForMediaType(stock.SupportedMediaTypes(), runtime.ContentTypeJSON)
		p := NewPacker()
		all := corpus()
		for i := range 3 * len(all) {
			data := []byte(all[i%len(all)])
			tape, ok := p.FromJSON(data, drop)
			object := &unstructured.Unstructured{}
			if _, _, err := info.Serializer.Decode(data, nil, object); err != nil {
				continue
			}
			if ok && !same(tape.Content(), object.Object) {
				t.Errorf("without %v, %.200q is\n%v, want\n%v", paths, data, tape.Content(), object.Object)
			}
		}
	}
}

// Contents that no decoder returns are refused, and nothing panics.
func TestFromContent_RefusesOtherTypes(t *testing.T) {
	p := NewPacker()
	for name, value := range map[string]any{"int": 1, "struct": struct{}{}, "nil map": map[string]any(nil), "nil slice": []any(nil), "string map": map[string]string{"a": "b"}, "in a slice": []any{[]any{uint8(1)}}} {
		if _, ok := p.FromContent(map[string]any{"metadata": map[string]any{"name": "x"}, "spec": value}); ok {
			t.Errorf("%s is packed", name)
		}
	}
	if _, ok := p.FromContent(nil); ok {
		t.Error("nil content is packed")
	}
}

// A zero tape is no object.
func TestTape_Zero(t *testing.T) {
	var zero Tape
	if zero.Content() != nil || zero.Name() != "" || zero.Size() != 0 || !zero.IsZero() {
		t.Error("a zero tape has content")
	}
	if _, found := zero.Field("a"); found {
		t.Error("a zero tape has a field")
	}
	if _, found := zero.Label("a"); found || zero.LabelMap() != nil || zero.Texts() != nil || zero.Text() != "" {
		t.Error("a zero tape has labels")
	}
	if _, found := zero.OwnerReferences(); found {
		t.Error("a zero tape has owners")
	}
}

// Strings of an unpacked object don't keep its tape in memory, so that a program may keep them.
func TestTape_StringsAreCopies(t *testing.T) {
	p := NewPacker()
	tape, _ := p.FromJSON(encode(t, block(1)), nil)
	if n := testing.AllocsPerRun(100, func() { _ = tape.Name() }); n != 1 {
		t.Errorf("a name takes %v allocations, want a copy", n)
	}
}

func TestTape_WordsOfEachWidth(t *testing.T) {
	whole(t)
	p := NewPacker()
	const words = nearWords + 300
	pack := func(i int) Tape {
		word := fmt.Sprintf("word-%05d-and-so-on", i)
		tape, ok := p.FromContent(map[string]any{"kind": "A", "spec": map[string]any{"array": []any{word, word + ".rest-of-it"}, "word": word}})
		if !ok {
			t.Fatal(i)
		}
		return tape
	}
	enters := func(i int) (number int, ok bool) {
		word := fmt.Sprintf("word-%05d-and-so-on", i)
		return p.Dictionary().words.find([]byte(word), maphash.String(p.Dictionary().seed, word))
	}
	for i := range words {
		for n := range 100 { // another word may displace its mark
			if pack(i); n >= 3 {
				if _, ok := enters(i); ok {
					break
				}
			}
		}
	}
	for i := range words {
		tape := pack(i)
		word := fmt.Sprintf("word-%05d-and-so-on", i)
		if got, _ := tape.Field("spec", "word"); got != word {
			t.Fatalf("word %d is %v", i, got)
		}
		if got, _ := tape.Field("spec", "array"); !same(got, []any{word, word + ".rest-of-it"}) {
			t.Fatalf("array %d is %v", i, got)
		}
		number, ok := enters(i)
		if !ok {
			t.Fatalf("word %d is not in the dictionary", i)
		}
		u := usage{make([]bool, maxWords), make([]bool, maxShapes), make([]bool, maxValues)}
		if tape.use(&u); !u.words[number] {
			t.Fatalf("word %d, which is in use, has no mark", number)
		}
	}
}

func TestTape_IntegersOfEachWidth(t *testing.T) {
	p := NewPacker()
	integers := []any{int64(math.MaxInt64), int64(math.MinInt64)}
	for bit := range 63 {
		for _, i := range []int64{1 << bit, -1 << bit, 1<<bit - 1, 1 - 1<<bit} {
			integers = append(integers, i, "text", -i)
		}
	}
	content := map[string]any{"kind": "A", "spec": map[string]any{"integers": integers, "last": "here"}}
	tape, ok := p.FromContent(content)
	last, _ := tape.Field("spec", "last")
	if got := tape.Content(); !ok || !same(got, content) || last != "here" {
		t.Errorf("%v, last %v", got, last)
	}
}

func TestDictionary_HasNoTimesAndNumbers(t *testing.T) {
	p := NewPacker()
	for range 20 {
		p.FromContent(map[string]any{"a": "2026-01-02T03:04:05Z", "b": "1700000000", "c": "word-of-these"})
	}
	if got, _ := p.Dictionary().words.find([]byte("word-of-these"), maphash.String(p.Dictionary().seed, "word-of-these")); len(p.Dictionary().words.boxed) != 1 || got != 0 {
		t.Errorf("%v", p.Dictionary().words.boxed)
	}
}

// Two texts whose marks have the same place are both counted.
func TestDictionary_CountsTextsThatAlternate(t *testing.T) {
	d := NewDictionary()
	const place = 5
	for _, hash := range []uint64{place | 1<<40, place | 2<<40} {
		met := 0
		for enough := false; !enough; met++ { // it fails by the timeout of the test
			d.again(place|3<<40, 100)
			enough, _ = d.again(hash, 5)
		}
		if met < 4 {
			t.Errorf("enough after %d times", met)
		}
	}
	if _, fresh := d.again(7|1<<40, 5); !fresh {
		t.Error("a text that is met for the first time is not fresh")
	}
	if _, fresh := d.again(7|1<<40, 5); fresh {
		t.Error("a text that is met for the second time is fresh")
	}
}

// Several goroutines may find room for one more entry at the same time.
func TestDictionary_EnterChecksAgainWhetherThereIsRoom(t *testing.T) {
	d := NewDictionary()
	enter := func(i int) (number int, ok bool) {
		text := fmt.Append(nil, "word ", i)
		return d.enter(&d.words, text, maphash.Bytes(d.seed, text), 2)
	}
	for i := range 3 {
		if _, ok := enter(i); ok != (i < 2) {
			t.Errorf("entry %d: %t", i, ok)
		}
	}
	if number, ok := enter(1); !ok || number != 1 {
		t.Errorf("an entry that is there: %d, %t", number, ok)
	}
}

// A dictionary without room has no writers: these would wait for all tapes that are read.
func TestDictionary_HasNoWritersIfItIsFull(t *testing.T) {
	d := NewDictionary()
	text := []byte("a word")
	d.mu.RLock() // of a reader
	numbered := make(chan bool)
	go func() {
		d.mu.RLock()
		defer d.mu.RUnlock()
		ok := false
		for range 100 {
			_, ok, _ = d.number(&d.words, text, 0, 2)
		}
		numbered <- ok
	}()
	for waits := false; ; {
		select {
		case ok := <-numbered:
			if ok {
				t.Error("a text has a number, and there is no room for it")
			}
			return
		default:
		}
		if !waits && d.mu.TryRLock() { // false: a writer waits
			d.mu.RUnlock()
		} else if !waits {
			waits = true
			t.Error("a writer waits for the reader")
			d.mu.RUnlock()
		}
	}
}

package packed

import (
	"iter"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// Packer makes tapes of the objects of one type. It is safe for concurrent use.
type Packer struct {
	encoders sync.Pool

	mu       sync.Mutex // never held while a tape is made
	dict     *Dictionary
	observer func(object any)
}

// NewPacker returns a packer with an empty dictionary.
func NewPacker() *Packer {
	p := &Packer{dict: NewDictionary()}
	p.encoders.New = func() any { return &encoder{} }
	return p
}

// Dictionary returns the dictionary of the next tapes.
func (p *Packer) Dictionary() *Dictionary {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dict
}

// Read packs the object at the position of from, without the fields of drop, and moves the scanner past it. An object with neither
// kind nor apiVersion gets those of missing, if missing has a kind. Read returns false for an object that is not ordinary: client-go's
// decoder must decode it.
func (p *Packer) Read(from *wire.Scanner, drop *wire.Drop, missing metav1.TypeMeta) (t Tape, ok bool) {
	return p.pack(func(e *encoder) bool {
		e.scan, e.missing = from, missing
		return e.scan.Next() == '{' && e.value(wire.Root(drop))
	})
}

// FromContent packs the content of an unstructured object. It returns false if the content has values that no
// decoder returns. It does not change content.
func (p *Packer) FromContent(content map[string]any) (t Tape, ok bool) {
	return p.pack(func(e *encoder) bool { return e.content(content, wire.Root(nil)) })
}

// Renew begins another dictionary if the present one is large, and the live tapes use less than half of it. It
// reports whether it did: then each live tape should be replaced by [Packer.Repack] of it, so that nothing refers
// to the old dictionary. Renew reads all live tapes. The live tapes may change meanwhile.
func (p *Packer) Renew(live iter.Seq[Tape]) bool {
	d := p.Dictionary()
	if used, all := d.used(live); all < renewFrom || 2*used > all {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dict == d {
		p.dict = newObserved(p.observer)
	}
	return true
}

// Forget begins another dictionary. Tapes of the present one stay valid.
func (p *Packer) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dict = newObserved(p.observer)
}

// renewFrom is the number of entries from which a dictionary is large.
const renewFrom = 1 << 10

// Repack returns t with the packer's present dictionary.
func (p *Packer) Repack(t Tape) Tape {
	if t.IsZero() || t.dict == p.Dictionary() {
		return t
	}
	// A program that writes to unpacked objects, though they are read-only, does not change the tapes.
	if again, ok := p.FromContent(t.OwnContent()); ok {
		return again
	}
	return t
}

// pack makes a tape of the object that read encodes.
func (p *Packer) pack(read func(e *encoder) bool) (t Tape, ok bool) {
	d := p.Dictionary()
	d.begin()
	e := p.encoders.Get().(*encoder)
	defer p.encoders.Put(e)
	d.mu.RLock()
	defer d.mu.RUnlock()
	e.reset(d)
	defer e.release()
	if !read(e) {
		return Tape{}, false
	}
	return e.tape(), true
}

// value encodes the value at the scanner's position.
func (e *encoder) value(at wire.Place) bool {
	switch e.scan.Next() {
	case '"':
		content, ok := e.scan.Text()
		e.string(content)
		return ok
	case '{':
		return e.object(at)
	case '[':
		return e.array()
	case 't':
		e.out = append(e.out, tagTrue)
		return e.scan.Literal("true")
	case 'f':
		e.out = append(e.out, tagFalse)
		return e.scan.Literal("false")
	case 'n':
		e.out = append(e.out, tagNull)
		return e.scan.Literal("null")
	}
	integer, float, isInteger, ok := e.scan.Number()
	if isInteger {
		e.out = appendInt(e.out, integer)
	} else {
		e.out = appendFloat(e.out, float)
	}
	return ok
}

// object encodes the object at the scanner's position.
func (e *encoder) object(at wire.Place) bool {
	start, base, fresh := len(e.out), e.beginObject(), e.fresh
	again, ok := e.scan.Enter('}')
	for again && ok {
		if !e.member(at, base) {
			return false
		}
		again, ok = e.scan.More('}')
	}
	if !ok || at.IsRoot() && !e.complete(base) {
		return false
	}
	e.endObject(start, base)
	if !at.IsRoot() && !at.IsMetadata() {
		e.share(start, fresh)
	}
	return true
}

// complete adds the missing kind and apiVersion to an object with neither, whose keys begin at base. It returns false if one of them is empty:
// client-go's decoder sets that, too.
func (e *encoder) complete(base int) bool {
	switch {
	case e.missing.Kind == "":
		return true
	case e.empty:
		return false
	case e.named:
		return true
	}
	e.key([]byte("kind"), base)
	e.string([]byte(e.missing.Kind))
	e.key([]byte("apiVersion"), base)
	e.string([]byte(e.missing.APIVersion))
	return true
}

// member encodes the next member of the object at that place, whose keys begin at base.
func (e *encoder) member(at wire.Place, base int) bool {
	if e.scan.Next() != '"' {
		return false
	}
	name, ok := e.scan.Key()
	if !ok {
		return false
	}
	below := at.Below(name)
	if below.Dropped() {
		return (!at.IsRoot() || !wire.Misspelt(name)) && e.scan.Skip()
	}
	e.key(name, base)
	switch {
	case at.IsRoot():
		switch {
		case wire.Misspelt(name), string(name) == "items":
			return false
		case string(name) == "metadata":
			e.resetHead()
		case string(name) == "kind", string(name) == "apiVersion":
			if e.scan.Next() != '"' {
				return false
			}
			content, ok := e.scan.Text()
			e.named, e.empty = true, e.empty || len(content) == 0
			e.string(content)
			return ok
		}
	case at.IsMetadata():
		return e.metadataMember(name, below)
	}
	return e.value(below)
}

// metadataMember encodes the value of a member of the metadata.
func (e *encoder) metadataMember(name []byte, below wire.Place) bool {
	field, ok := headField(name)
	switch {
	case ok && e.scan.Next() == '"':
		content, ok := e.scan.Text()
		e.headValue(field, content)
		return ok
	case ok:
		e.head[field] = e.head[field][:0]
	}
	start, labels, owners := len(e.out), string(name) == "labels", string(name) == "ownerReferences"
	ok = e.value(below) // name is no longer valid
	e.position(start, labels, owners)
	return ok
}

// headValue encodes a field of the head.
func (e *encoder) headValue(field int, content []byte) {
	e.head[field] = append(e.head[field][:0], content...)
	e.out = append(e.out, tagHead+byte(field)) //nolint:gosec // it is small
}

// position records the position of a value to which the head refers. It is called after the value was encoded.
func (e *encoder) position(start int, labels, owners bool) {
	if labels {
		e.labels = start
	}
	if owners {
		e.owners = start
	}
}

// headField returns the number of a field of the head.
func headField(name []byte) (field int, ok bool) {
	switch string(name) {
	case "name":
		return headName, true
	case "namespace":
		return headNamespace, true
	case "uid":
		return headUID, true
	case "resourceVersion":
		return headVersion, true
	}
	return 0, false
}

// array encodes the array at the scanner's position.
func (e *encoder) array() bool {
	start, fresh, n := len(e.out), e.fresh, 0
	again, ok := e.scan.Enter(']')
	for again && ok {
		if !e.value(wire.Place{}) {
			return false
		}
		n++
		again, ok = e.scan.More(']')
	}
	if !ok {
		return false
	}
	e.endArray(start, n)
	e.share(start, fresh)
	return true
}

// content encodes a value of unstructured content. It returns false for a value of a type that no decoder returns.
func (e *encoder) content(value any, at wire.Place) bool {
	switch value := value.(type) {
	case nil:
		e.out = append(e.out, tagNull)
	case bool:
		if value {
			e.out = append(e.out, tagTrue)
		} else {
			e.out = append(e.out, tagFalse)
		}
	case int64:
		e.out = appendInt(e.out, value)
	case float64:
		e.out = appendFloat(e.out, value)
	case string:
		e.string([]byte(value))
	case []any:
		if value == nil {
			return false
		}
		start, fresh := len(e.out), e.fresh
		for _, element := range value {
			if !e.content(element, wire.Place{}) {
				return false
			}
		}
		e.endArray(start, len(value))
		e.share(start, fresh)
	case map[string]any:
		return value != nil && e.contentObject(value, at)
	default:
		return false
	}
	return true
}

// contentObject encodes an object of unstructured content.
func (e *encoder) contentObject(content map[string]any, at wire.Place) bool {
	start, base, fresh, inMetadata := len(e.out), e.beginObject(), e.fresh, at.IsMetadata()
	names := make([]string, 0, len(content))
	for name := range content {
		names = append(names, name)
	}
	slices.Sort(names) // equal objects have equal tapes
	for _, name := range names {
		e.key([]byte(name), base)
		below := at.Below([]byte(name))
		if inMetadata {
			if text, is := content[name].(string); is {
				if field, ok := headField([]byte(name)); ok {
					e.headValue(field, []byte(text))
					continue
				}
			}
		}
		at := len(e.out)
		if !e.content(content[name], below) {
			return false
		}
		e.position(at, inMetadata && name == "labels", inMetadata && name == "ownerReferences")
	}
	e.endObject(start, base)
	if !at.IsRoot() && !at.IsMetadata() {
		e.share(start, fresh)
	}
	return true
}

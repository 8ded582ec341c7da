package wire

import "strings"

// value consumes a value, which is at place at of its object.
func (b *builder) value(at place) (v value, ok bool) {
	switch b.next() {
	case '"':
		return b.string()
	case '{':
		return b.object(at)
	case '[':
		return b.array()
	case 't':
		return value{true, hashTrue}, b.literal("true")
	case 'f':
		return value{false, hashFalse}, b.literal("false")
	case 'n':
		return value{nil, hashNull}, b.literal("null")
	default:
		return b.numeric()
	}
}

func (b *builder) numeric() (v value, ok bool) {
	n, ok := b.number()
	if !ok {
		return v, false
	}
	b.memory += numberSize
	if i, ok := n.integer(b.data); ok {
		return value{i, mix(hashInt, uint64(i)<<1|1)}, true //nolint:gosec // a hash
	}
	// A number that is written in two ways has two hashes; then it is not shared.
	v.any, ok = n.any(b.data)
	v.hash = mix(hashFloat, hashOf(b.tables.seed, b.data[n.start:n.end]))
	return v, ok
}

// string consumes the string at pos.
func (b *builder) string() (v value, ok bool) {
	t, ok := b.text()
	if !ok {
		return v, false
	}
	content := b.content(t)
	b.memory += textSize + len(content)
	if len(content) > maxInterned {
		v.hash = hashOf(b.tables.seed, content)
	} else if in, hash := b.intern(content); in != nil {
		return value{in.boxed, hash}, true
	}
	v.any = string(content)
	return v, true
}

// name consumes a member's name and the colon.
func (b *builder) name() (name string, hash uint64, ok bool) {
	t, ok := b.key()
	if !ok {
		return "", 0, false
	}
	content := b.content(t)
	hash = hashOf(b.tables.seed, content)
	if len(content) <= maxInterned {
		if in := b.tables.keys.lookup(content, hash); in != nil {
			return in.text, hash, true
		}
		hash = unseen
	}
	return string(content), hash, true
}

// content returns the bytes of a string. They are valid until the next call.
func (b *builder) content(t text) []byte {
	raw := b.data[t.start:t.end]
	if t.plain {
		return raw
	}
	b.scratch = appendUnescaped(b.scratch[:0], raw)
	return b.scratch
}

// object consumes the object at pos.
func (b *builder) object(at place) (v value, ok bool) {
	start, base, before := b.pos, len(b.members), b.memory
	b.pos++
	if !b.descend() {
		return v, false
	}
	v.hash = hashObject
	again := !b.take('}')
	for again {
		if v.hash, ok = b.member(at, v.hash); !ok {
			return v, false
		}
		if again, ok = b.more('}'); !ok {
			return v, false
		}
	}
	b.ascend()
	members := b.members[base:]
	b.memory += objectSize(len(members))
	if b.pos-start > maxSharedText {
		v.hash = unseen
	}
	if bool(b.sharing) && at.shareable() {
		v.any = b.shareObject(v.hash, members, b.memory-before)
	} else {
		v.any = newObject(members)
	}
	clear(members) // an unused builder must not keep objects alive
	b.members = b.members[:base]
	return v, true
}

// member consumes a member of the object at place at. hash is that of the members
// before it; member returns the hash that includes it. A dropped member does not change
// the hash.
func (b *builder) member(at place, hash uint64) (_ uint64, ok bool) {
	name, nameHash, ok := b.name()
	if !ok {
		return 0, false
	}
	if at.own == ownRoot && misspelt(name) {
		return 0, false
	}
	below := at.below(name)
	if below.dropped() {
		return hash, b.skip()
	}
	b.lookups = b.tables.lookupsOf(nameHash)
	v, ok := b.value(below)
	if !ok || at.own == ownRoot && !fits(name, v.any) {
		return 0, false
	}
	b.members = append(b.members, member{name, v.any})
	b.memory += len(name)
	return mix(mix(hash, nameHash), v.hash), true
}

// misspelt reports whether name differs from kind or apiVersion only in case.
// client-go's decoder, which ignores case, would use it for the object's kind.
func misspelt(name string) bool {
	return name != "kind" && strings.EqualFold(name, "kind") ||
		name != "apiVersion" && strings.EqualFold(name, "apiVersion")
}

// fits reports whether client-go would accept v as the member called name of an object
// or a list. It checks every member of that name, not only the last one.
func fits(name string, v any) bool {
	if name != "kind" && name != "apiVersion" {
		return true
	}
	_, ok := v.(string)
	return ok
}

func newObject(members []member) map[string]any {
	object := make(map[string]any, len(members))
	for i := range members {
		object[members[i].key] = members[i].value
	}
	return object
}

// shareObject returns an object with members, which takes size bytes of memory.
func (b *builder) shareObject(hash uint64, members []member, size int) any {
	if len(members) == 0 {
		return b.tables.emptyObject
	}
	if hash == unseen {
		return newObject(members)
	}
	subtrees := b.tables.subtrees
	if shared := subtrees.object(hash, members); shared != nil {
		return shared
	}
	object := newObject(members)
	// If a key occurs twice, the object has fewer members.
	if subtrees.again(hash) && len(object) == len(members) {
		subtrees.offer(hash, &subtree{size: size, members: append([]member(nil), members...), value: object})
	}
	return object
}

// array consumes the array at pos.
func (b *builder) array() (v value, ok bool) {
	start, base, before := b.pos, len(b.elements), b.memory
	b.pos++
	if !b.descend() {
		return v, false
	}
	hash := hashArray
	again := !b.take(']')
	for again {
		if v, ok = b.value(place{}); !ok {
			return v, false
		}
		b.elements = append(b.elements, v.any)
		hash = mix(hash, v.hash)
		if again, ok = b.more(']'); !ok {
			return v, false
		}
	}
	b.ascend()
	elements := b.elements[base:]
	b.memory += arraySize(len(elements))
	if b.pos-start > maxSharedText {
		hash = unseen
	}
	v = value{hash: hash}
	if b.sharing {
		v.any = b.shareArray(hash, elements, b.memory-before)
	} else {
		v.any = newArray(elements)
	}
	clear(elements)
	b.elements = b.elements[:base]
	return v, true
}

func newArray(elements []any) []any {
	array := make([]any, len(elements))
	copy(array, elements)
	return array
}

// shareArray returns an array with elements, which takes size bytes of memory.
func (b *builder) shareArray(hash uint64, elements []any, size int) any {
	if len(elements) == 0 {
		return b.tables.emptyArray
	}
	if hash == unseen {
		return newArray(elements)
	}
	subtrees := b.tables.subtrees
	if shared := subtrees.array(hash, elements); shared != nil {
		return shared
	}
	var array any = newArray(elements)
	if subtrees.again(hash) {
		subtrees.offer(hash, &subtree{size: size, value: array})
	}
	return array
}

package packed

// ContentLike is Content for an object that is probably almost equal to that of like, whose content is tree: the results have
// equal parts in common, which are not decoded again. Both are read-only.
func (t Tape) ContentLike(like Tape, tree map[string]any) map[string]any {
	if t.IsZero() || t.dict != like.dict || tree == nil {
		return t.Content()
	}
	d := t.open()
	defer d.close()
	other := decoder{dict: like.dict, data: like.data}
	other.pos = like.root()
	content, _ := d.valueLike(&other, tree, rootParts).(map[string]any)
	return content
}

// root returns the position of the value of the tape.
func (t Tape) root() int {
	length, pos := uvarint(t.data, 0)
	d := decoder{dict: t.dict, data: t.data, pos: pos + length}
	for range headFields - headNamespace {
		d.skip()
	}
	d.number()
	d.number()
	return d.pos
}

// parts says which containers may refer to the head of a tape, so that equal bytes are not equal values.
type parts int

const (
	noParts   parts = iota // neither the value nor its parts
	headParts              // the parts of the value, which is the metadata
	rootParts              // the metadata among the parts of the value
)

// valueLike consumes a value. Tree is that of other, and is returned, whole or in parts, where the bytes of both are equal.
// Other need not be behind its value afterwards.
func (d *decoder) valueLike(other *decoder, tree any, of parts) any {
	if end := d.after(); of == noParts && d.data[d.pos:end] == other.data[other.pos:other.after()] {
		d.pos = end
		return tree
	}
	switch tree := tree.(type) {
	case map[string]any:
		return d.objectLike(other, tree, of)
	case []any:
		return d.arrayLike(other, tree)
	}
	return d.value()
}

// isHead reports whether a value with that tag is a field of the head.
func isHead(tag byte) bool { return tagHead <= tag && tag < tagHead+headFields }

// objectLike is valueLike if other's value is an object.
func (d *decoder) objectLike(other *decoder, tree map[string]any, of parts) any {
	begin := d.pos
	c, ok := d.container()
	theirs, same := other.container()
	if !ok || !same || !c.isObjectOf(theirs.n) || !theirs.isObjectOf(len(tree)) { // a member that occurs twice has one value
		d.pos = begin
		return d.value()
	}
	keys, theirKeys := d.keysOf(c), other.keysOf(theirs)
	object := make(map[string]any, c.n)
	for range c.n {
		name := keys.next()
		if other != nil && theirKeys.next() != name { // the rest has no counterpart
			other = nil
		}
		if other == nil || of == headParts && isHead(d.data[d.pos]) {
			object[name] = d.value()
			if other != nil {
				other.skip()
			}
			continue
		}
		below := noParts
		if of == rootParts && name == "metadata" {
			below = headParts
		}
		after := other.after()
		object[name] = d.valueLike(other, tree[name], below)
		other.pos = after
	}
	return object
}

// isObjectOf reports whether c is an object of n members.
func (c *container) isObjectOf(n int) bool { return c.object && c.n == n }

// arrayLike is valueLike if other's value is an array.
func (d *decoder) arrayLike(other *decoder, tree []any) any {
	begin := d.pos
	c, ok := d.container()
	theirs, same := other.container()
	if !ok || !same || c.object || theirs.object {
		d.pos = begin
		return d.value()
	}
	array := make([]any, c.n)
	for i := range array {
		if i >= min(len(tree), theirs.n) { // a program may have written to tree
			array[i] = d.value()
			continue
		}
		after := other.after()
		array[i] = d.valueLike(other, tree[i], noParts)
		other.pos = after
	}
	return array
}

// after returns the position after the value at pos.
func (d *decoder) after() (pos int) {
	begin := d.pos
	d.skip()
	pos, d.pos = d.pos, begin
	return pos
}

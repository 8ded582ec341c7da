package packed

// Label returns the value of the label called name, and whether there is one. As in unstructured objects, a null is an empty
// text, and an object has no labels if one of them has any other value that is no text. The result may keep the tape in memory.
func (t Tape) Label(name string) (value string, found bool) {
	if t.IsZero() {
		return "", false
	}
	d := t.open()
	defer d.close()
	if d.labels == 0 {
		return "", false
	}
	d.pos = d.labels
	if !d.eachText(func(int) {}, func(key, text string, _ bool) {
		if key == name { // if there are two, the last one counts
			value, found = text, true
		}
	}) {
		return "", false
	}
	return value, found
}

// LabelMap returns the labels as [Tape.Label] does; nil if there are none. The caller owns the map.
func (t Tape) LabelMap() map[string]string {
	if t.IsZero() {
		return nil
	}
	d := t.open()
	defer d.close()
	if d.labels == 0 {
		return nil
	}
	d.pos = d.labels
	return d.texts()
}

// Texts returns the object at a path of member names, as LabelMap returns the labels.
func (t Tape) Texts(path ...string) map[string]string {
	if t.IsZero() {
		return nil
	}
	d := t.open()
	defer d.close()
	if !d.enterAll(path) {
		return nil
	}
	return d.texts()
}

// Text returns the string at a path of member names. It is empty if there is none, or another value.
func (t Tape) Text(path ...string) string {
	if t.IsZero() {
		return ""
	}
	d := t.open()
	defer d.close()
	if !d.enterAll(path) || !d.isText() {
		return ""
	}
	return d.string()
}

// texts returns the members of an object of texts; nil for any other value.
func (d *decoder) texts() (texts map[string]string) {
	if !d.eachText(func(n int) { texts = make(map[string]string, n) }, func(key, text string, part bool) {
		if part {
			text = clone(text)
		}
		texts[clone(key)] = text
	}) {
		return nil
	}
	return texts
}

// eachText calls begin with the number of members of an object of texts, and each for each. Part says that the text is a part of
// the tape, as the key may be. EachText returns false if the value is no object, or has members that are neither texts nor null. If a key
// occurs twice, the last member counts, and there may be more calls than members.
func (d *decoder) eachText(begin func(n int), each func(key, text string, part bool)) bool {
	d.follow()
	start := d.pos
	c, ok := d.container()
	if !ok || !c.object {
		return false
	}
	begin(c.n)
	keys := decoder{dict: d.dict, data: d.data, pos: c.keys}
	for i := range c.n {
		key := keys.keyOf(&c, i)
		if !d.isText() {
			d.pos = start
			return d.eachLast(each)
		}
		text, part := d.view()
		each(key, text, part)
	}
	return true
}

// eachLast is eachText for an object with another value, which counts unless its key occurs again.
func (d *decoder) eachLast(each func(key, text string, part bool)) bool {
	for key, value := range d.value().(map[string]any) {
		text, is := value.(string)
		if !is && value != nil {
			return false
		}
		each(key, text, false)
	}
	return true
}

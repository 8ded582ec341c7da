package packed

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends the object as JSON, with the members in the order of the tape. A float has a point or an exponent, so that no
// decoder takes it for an integer. It returns false if a string is not valid UTF-8, or a float not finite: JSON has neither.
func (t Tape) AppendJSON(b []byte) ([]byte, bool) {
	if t.IsZero() {
		return b, false
	}
	d := t.open()
	defer d.close()
	return d.appendJSON(b)
}

// appendJSON consumes a value.
func (d *decoder) appendJSON(b []byte) (_ []byte, ok bool) {
	if c, is := d.container(); is {
		return d.appendContainer(b, &c)
	}
	if d.isText() {
		text, _ := d.view()
		return appendQuoted(b, text)
	}
	if d.data[d.pos] == tagValue {
		d.pos++
		return d.shared(d.number()).appendJSON(b)
	}
	switch value := d.value().(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		return strconv.AppendBool(b, value), true
	case int64:
		return strconv.AppendInt(b, value, 10), true
	case float64:
		return appendFloatJSON(b, value)
	}
	return b, false
}

func (d *decoder) appendContainer(b []byte, c *container) (_ []byte, ok bool) {
	opening, closing := byte('['), byte(']')
	if c.object {
		opening, closing = '{', '}'
	}
	b = append(b, opening)
	keys := decoder{dict: d.dict, data: d.data, pos: c.keys}
	for i := range c.n {
		if i > 0 {
			b = append(b, ',')
		}
		if c.object {
			if b, ok = appendQuoted(b, keys.keyOf(c, i)); !ok {
				return b, false
			}
			b = append(b, ':')
		}
		if b, ok = d.appendJSON(b); !ok {
			return b, false
		}
	}
	return append(b, closing), true
}

func appendFloatJSON(b []byte, f float64) (_ []byte, ok bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return b, false
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !bytes.ContainsAny(b[start:], ".e") {
		b = append(b, ".0"...)
	}
	return b, true
}

// appendQuoted appends a string of JSON.
func appendQuoted(b []byte, text string) (_ []byte, ok bool) {
	b = append(b, '"')
	from, ascii := 0, true
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '"' || c == '\\':
			b = append(append(b, text[from:i]...), '\\', c)
			from = i + 1
		case c < ' ':
			b = append(append(b, text[from:i]...), '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			from = i + 1
		}
	}
	b = append(append(b, text[from:]...), '"')
	return b, ascii || utf8.ValidString(text)
}

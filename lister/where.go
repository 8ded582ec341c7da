package lister

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// value is a scalar of an object, or of a query.
type value struct {
	text   string
	number number
	quoted bool // it is a string
}

// newValue returns false if v is not a scalar.
func newValue(v any) (value, bool) {
	switch v := v.(type) {
	case string:
		return value{v, quantity(v), true}, true
	case bool:
		return value{text: strconv.FormatBool(v)}, true
	case int64:
		return value{text: strconv.FormatInt(v, 10), number: number{is: true, whole: v}}, true
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		exact, is := new(big.Rat).SetString(text) // of 0.1, not of the float64 near it; none if v is infinite
		return value{text: text, number: number{is: is, exact: exact}}, true
	}
	return value{}, false
}

// equals reports whether v, a value of an object, equals a value of a query.
func (v value) equals(w value) bool {
	return v.text == w.text || !v.quoted && v.number.is && w.number.is && v.number.compare(w.number) == 0
}

// compare is the order of numbers before texts.
func (v value) compare(w value) int {
	switch {
	case v.number.is && w.number.is:
		return v.number.compare(w.number)
	case v.number.is:
		return -1
	case w.number.is:
		return 1
	}
	return strings.Compare(v.text, w.text)
}

// number is an exact number, or none.
type number struct {
	is    bool
	exact *big.Rat // nil: it is whole
	whole int64
}

func (n number) compare(m number) int {
	if n.exact == nil && m.exact == nil {
		return cmp.Compare(n.whole, m.whole)
	}
	return n.rat().Cmp(m.rat())
}

func (n number) rat() *big.Rat {
	if n.exact != nil {
		return n.exact
	}
	return new(big.Rat).SetInt64(n.whole)
}

// longest is the length of the longest text that can be a number. The exact text of a float64 is shorter.
const longest = 400

// units are the suffixes of quantities. That of a plain number is nil.
var units = func() map[string]*big.Rat {
	units := map[string]*big.Rat{"": nil}
	for n, suffix := range []string{"n", "u", "m"} {
		units[suffix] = big.NewRat(1, []int64{1e9, 1e6, 1e3}[n])
	}
	for n, suffix := range []string{"k", "M", "G", "T", "P", "E"} {
		units[suffix] = big.NewRat([]int64{1e3, 1e6, 1e9, 1e12, 1e15, 1e18}[n], 1)
	}
	for n, suffix := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} {
		units[suffix] = big.NewRat(1<<(10*(n+1)), 1)
	}
	return units
}()

// quantity returns the exact value of a number or a quantity; resource.ParseQuantity rounds. Texts with exponents are none: texts such
// as 12e5 are often hashes.
func quantity(text string) number {
	digits := strings.TrimRight(text, "EGKMPTikmnu")
	unit, known := units[text[len(digits):]]
	if !known || !isDecimal(digits) {
		return number{}
	}
	if whole, err := strconv.ParseInt(digits, 10, 64); err == nil && unit == nil {
		return number{is: true, whole: whole}
	}
	exact, is := new(big.Rat).SetString(digits)
	if is && unit != nil {
		exact.Mul(exact, unit)
	}
	return number{is: is, exact: exact}
}

// isDecimal reports whether text has the characters of a number without an exponent.
func isDecimal(text string) bool {
	return len(text) <= longest && strings.Trim(text, "+-.0123456789") == ""
}

// maxExponent is that of the smallest float64. A large exponent would cost much time.
const maxExponent = 324

// scientific returns the value of a number with an exponent, such as 12e5.
func scientific(text string) number {
	at := strings.IndexAny(text, "eE")
	if at < 0 || !isDecimal(text[:at]) {
		return number{}
	}
	exponent, err := strconv.Atoi(text[at+1:])
	if err != nil || exponent < -maxExponent || exponent > maxExponent {
		return number{}
	}
	exact, is := new(big.Rat).SetString(text)
	return number{is: is, exact: exact}
}

// operation is what a requirement does with the values at its path.
type operation int

const (
	exists operation = iota
	absent
	in // one of the values
	notIn
	above
	below
)

// operators has the tokens of operations, a longer one before its prefix.
var operators = []struct {
	token string
	op    operation
	list  bool // its values are in parentheses
}{
	{"==", in, false},
	{"=", in, false},
	{"!=", notIn, false},
	{">", above, false},
	{"<", below, false},
	{"in", in, true},
	{"notin", notIn, true},
}

// requirement is one requirement of Where.
type requirement struct {
	path   path
	op     operation
	values []value // one, except for in and notIn
}

func (r requirement) matches(object any) bool {
	found, there := r.path.find(object)
	switch r.op {
	case exists:
		return there
	case absent:
		return !there
	case in, notIn:
		equal := slices.ContainsFunc(found, func(v value) bool { return slices.ContainsFunc(r.values, v.equals) })
		return equal == (r.op == in)
	}
	limit := r.values[0]
	return slices.ContainsFunc(found, func(v value) bool {
		order := v.compare(limit)
		return v.number.is == limit.number.is && (r.op == above && order > 0 || r.op == below && order < 0)
	})
}

// parseWhere parses the field Where of a query.
func parseWhere(text string) (all []requirement, err error) {
	s := scanner{text: text}
	if s.space(); s.at == len(text) {
		return nil, nil
	}
	for {
		r, err := s.requirement()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		if s.space(); s.at == len(text) {
			return all, nil
		}
		if !s.take(",") {
			return nil, s.errorf("want an operator or a comma; values with special characters need double quotes")
		}
	}
}

// scanner reads a text from at on.
type scanner struct {
	text string
	at   int
}

const (
	spaces = " \t\r\n"
	// special ends paths and values.
	special = spaces + "=!,()<>\""
)

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("position %d: %w", s.at+1, fmt.Errorf(format, args...))
}

func (s *scanner) space() {
	s.at = len(s.text) - len(strings.TrimLeft(s.text[s.at:], spaces))
}

// take reads token after spaces, if it is next. A token that is a word must end there.
func (s *scanner) take(token string) bool {
	s.space()
	rest, found := strings.CutPrefix(s.text[s.at:], token)
	if word := !strings.Contains(special, token[:1]); !found || word && rest != "" && !strings.Contains(special, rest[:1]) {
		return false
	}
	s.at += len(token)
	return true
}

func (s *scanner) requirement() (r requirement, err error) {
	if s.take("!") {
		r.op = absent
	}
	s.space()
	if r.path, err = s.path(); err != nil || r.op == absent {
		return r, err
	}
	for _, o := range operators {
		if !s.take(o.token) {
			continue
		}
		r.op = o.op
		if o.list {
			r.values, err = s.list()
			return r, err
		}
		v, err := s.value()
		if r.values = []value{v}; err == nil && v.text == "" && (r.op == above || r.op == below) {
			err = s.errorf("want a value")
		}
		return r, err
	}
	return r, nil
}

// list reads values in parentheses.
func (s *scanner) list() (values []value, err error) {
	if !s.take("(") {
		return nil, s.errorf("want values in parentheses")
	}
	for {
		v, err := s.value()
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		if s.take(")") {
			return values, nil
		}
		if !s.take(",") {
			return nil, s.errorf("want a comma or a closing parenthesis")
		}
	}
}

// value reads a value, which may be empty.
func (s *scanner) value() (value, error) {
	s.space()
	text, rest := s.text[s.at:], ""
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return value{}, s.errorf("a string in double quotes is not valid or not terminated")
		}
		rest = text[len(quoted):]
		text, _ = strconv.Unquote(quoted) // it is valid
	} else if end := strings.IndexAny(text, special); end >= 0 {
		text, rest = text[:end], text[end:]
	}
	s.at = len(s.text) - len(rest)
	v, _ := newValue(text)
	if !v.number.is {
		v.number = scientific(text)
	}
	return v, nil
}

// path reads a path.
func (s *scanner) path() (path, error) {
	begin := *s
	if err := s.skipPath(); err != nil {
		return path{}, err
	}
	p, err := parsePath(s.text[begin.at:s.at])
	if err != nil {
		return path{}, begin.errorf("%w", err)
	}
	return p, nil
}

// skipPath moves to the end of a path: a special character outside of brackets. Brackets need not match, since
// jsonpath checks that.
func (s *scanner) skipPath() error {
	brackets, quote := 0, byte(0) // the quote of a string in brackets
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '{' || c == '}':
			return s.errorf("a path has no braces")
		case c == '\\' && s.at+1 < len(s.text):
			s.at++
		case c == quote:
			quote = 0
		case quote != 0:
		case brackets > 0 && strings.IndexByte("'\"", c) >= 0:
			quote = c
		case c == '[':
			brackets++
		case c == ']':
			brackets--
		case brackets <= 0 && strings.IndexByte(special, c) >= 0:
			return nil
		}
	}
	return nil
}

package stub

import (
	"math/rand/v2"
	"strings"
)

// newSchema returns a random schema of about size bytes of JSON. Most of them are
// descriptions of properties.
func newSchema(random *rand.Rand, size int) map[string]any {
	s := schemer{random}
	return map[string]any{
		"type": "object", "description": s.sentence(12),
		"properties": map[string]any{
			"apiVersion": map[string]any{"type": "string"},
			"kind":       map[string]any{"type": "string"},
			"metadata":   map[string]any{"type": "object"},
			"spec":       s.object(size*4/5, 0),
			"status":     s.object(size/5, 0),
		},
	}
}

type schemer struct{ *rand.Rand }

const (
	deepest  = 6   // levels of properties
	overhead = 60  // approximate bytes of a property without its description
	smallest = 400 // bytes of the smallest nested object
)

// object returns the schema of an object of about size bytes.
func (s schemer) object(size, depth int) map[string]any {
	text := s.sentence(3 + s.IntN(12))
	properties := map[string]any{}
	for size -= overhead + len(text); size > 0; {
		name := s.name()
		if size > 2*smallest && depth < deepest && s.IntN(5) == 0 {
			part := smallest + s.IntN(size-smallest)
			properties[name] = s.object(part, depth+1)
			size -= part
			continue
		}
		property, takes := s.property()
		properties[name] = property
		size -= takes + len(name)
	}
	return map[string]any{"type": "object", "description": text, "properties": properties}
}

// property returns the schema of a value, and its approximate size.
func (s schemer) property() (property map[string]any, takes int) {
	text := s.sentence(4 + s.IntN(40))
	property = map[string]any{"description": text}
	switch s.IntN(5) {
	case 0:
		property["type"], property["format"], property["minimum"] = "integer", "int32", s.IntN(100)
	case 1:
		property["type"] = "boolean"
	case 2:
		values := []any{s.word(), s.word(), s.word()}
		property["type"], property["enum"] = "string", values
	case 3:
		property["type"], property["items"] = "array", map[string]any{"type": "string"}
	default:
		property["type"], property["maxLength"] = "string", 1+s.IntN(1000)
	}
	return property, overhead + len(text)
}

// name returns the name of a property, which is unlikely to be there already.
func (s schemer) name() string {
	second := s.word()
	return s.word() + strings.ToUpper(second[:1]) + second[1:] + s.syllable()
}

func (s schemer) sentence(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.word())
	}
	b.WriteByte('.')
	return b.String()
}

func (s schemer) word() string {
	var b strings.Builder
	for range 1 + s.IntN(3) {
		b.WriteString(s.syllable())
	}
	return b.String()
}

func (s schemer) syllable() string {
	const (
		consonants = "bcdfghklmnprstvwz"
		vowels     = "aeiou"
	)
	return string([]byte{consonants[s.IntN(len(consonants))], vowels[s.IntN(len(vowels))], consonants[s.IntN(len(consonants))]}[:2+s.IntN(2)])
}

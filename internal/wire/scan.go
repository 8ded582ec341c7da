package wire

// Scanner reads the tokens of one JSON document, for packages that build other objects than this one. It accepts
// what the decoders of this package accept: if a method returns false, the document is not ordinary, and is left
// to client-go's decoder. The caller moves through the document: at a value, [Scanner.Next] returns its first
// byte, which determines the method that consumes it. A Scanner is not safe for concurrent use.
type Scanner struct {
	scanner
	scratch []byte // the current string without escapes, if it had any
}

// Reset begins a document. The Scanner refers to data until the next call.
func (s *Scanner) Reset(data []byte) { s.scanner = scanner{data: data} }

// Next moves to the next byte that is not white space, and returns it; zero at the end of the document.
func (s *Scanner) Next() byte { return s.next() }

// Text consumes the string at the present position, and returns its content. It is valid until the next call.
func (s *Scanner) Text() (content []byte, ok bool) {
	t, ok := s.text()
	return s.content(t), ok
}

// Key consumes the name of a member and the colon, and returns the name. It is valid until the next call.
func (s *Scanner) Key() (name []byte, ok bool) {
	t, ok := s.key()
	return s.content(t), ok
}

func (s *Scanner) content(t text) []byte {
	raw := s.data[t.start:max(t.start, t.end)]
	if t.plain {
		return raw
	}
	s.scratch = appendUnescaped(s.scratch[:0], raw)
	return s.scratch
}

// Literal consumes word, which is true, false or null.
func (s *Scanner) Literal(word string) bool { return s.literal(word) }

// Number consumes the number at the present position. It is an integer if it is written as one and fits in an
// int64, else the nearest float64.
func (s *Scanner) Number() (integer int64, float float64, isInteger, ok bool) {
	n, ok := s.number()
	if !ok {
		return 0, 0, false, false
	}
	if integer, isInteger = n.integer(s.data); isInteger {
		return integer, 0, true, true
	}
	float, ok = n.float(s.data)
	return 0, float, false, ok
}

// Enter consumes the opening bracket of an object or array, and the closing one if nothing is between. Again
// reports whether there is a first member or element.
func (s *Scanner) Enter(closing byte) (again, ok bool) {
	s.pos++
	if !s.descend() {
		return false, false
	}
	if s.take(closing) {
		s.ascend()
		return false, true
	}
	return true, true
}

// More consumes the token after a member or element. Again reports whether it is a comma; otherwise it is the
// closing bracket.
func (s *Scanner) More(closing byte) (again, ok bool) {
	if again, ok = s.more(closing); ok && !again {
		s.ascend()
	}
	return again, ok
}

// Skip consumes a value of any type.
func (s *Scanner) Skip() bool { return s.skip() }

// Done reports whether only white space is left.
func (s *Scanner) Done() bool { return s.done() }

// Place is the position of a value in an object, with the fields that are left out below it.
type Place struct{ place }

// Root returns the place of an object from which drop is left out; nil leaves out nothing.
func Root(drop *Drop) Place { return Place{root(drop)} }

// Below returns the place of the member called name.
func (p Place) Below(name []byte) Place {
	if p.drop == nil {
		if p.own == ownRoot && string(name) == "metadata" {
			return Place{place{own: ownMetadata}}
		}
		return Place{}
	}
	return Place{p.below(string(name))}
}

// Dropped reports whether the value is left out.
func (p Place) Dropped() bool { return p.dropped() }

// Leaves returns a function that reports whether the member called name is left out as a whole. It returns nil if nothing is left out below p,
// and if p is itself left out.
func (p Place) Leaves() func(name string) bool {
	if p.drop == nil || p.dropped() {
		return nil
	}
	return func(name string) bool { below := p.drop.at(name); return below != nil && below.here }
}

// IsRoot reports whether p is the place of the object itself.
func (p Place) IsRoot() bool { return p.own == ownRoot }

// IsMetadata reports whether p is the place of the metadata of the object.
func (p Place) IsMetadata() bool { return p.own == ownMetadata }

// Misspelt reports whether client-go's decoder would use the member called name, which is not "kind" or
// "apiVersion", for the kind of an object.
func Misspelt(name []byte) bool {
	switch len(name) {
	case len("kind"), len("\u212aind"), len("apiVersion"), len("apiVer\u017fion"):
		return misspelt(string(name))
	}
	return false
}

package objectsize

// Sample measures some objects of a cache, to estimate the memory of the whole cache. An allocation to which several sampled objects
// refer is assumed to be one that many objects of the cache share: it counts once. An allocation to which only one of them refers
// counts once for each object of the cache. A Sample keeps its objects in memory, so that equal addresses are the same
// allocation. It is not safe for concurrent use. Its zero value is empty.
type Sample struct {
	objects   []any
	seen      map[uintptr]part
	unique    float64 // bytes of what one object has
	shared    float64 // bytes of what several objects have, once
	estimated int     // the sum of Of
}

// part is an allocation.
type part struct {
	bytes  float64
	object int // the number of the first object that has it
	shared bool
}

// Add visits object, which must not be written to while the Sample is used. Estimated is the result of [Of] for it: another call may visit
// other parts, and have another result. An object that is [Packed] has no effect.
func (s *Sample) Add(object any, estimated int) {
	if _, is := object.(Packed); is || object == nil {
		return
	}
	if s.seen == nil {
		s.seen = map[uintptr]part{}
	}
	s.objects = append(s.objects, object)
	s.estimated += estimated
	w := walker{some: 64, most: 1 << 13, into: s}
	s.unique += boxOfWord // of the object itself
	w.object(object)
}

// note counts an allocation of the last object.
func (s *Sample) note(at uintptr, bytes float64) {
	known, again := s.seen[at]
	switch {
	case !again:
		s.seen[at] = part{bytes: bytes, object: len(s.objects)}
		s.unique += bytes
	case known.object != len(s.objects) && !known.shared:
		s.unique -= known.bytes
		s.shared += known.bytes
		known.shared = true
		s.seen[at] = known
	}
}

// Len returns the number of objects.
func (s *Sample) Len() int { return len(s.objects) }

// Estimated returns the sum of [Of] for the objects.
func (s *Sample) Estimated() int { return s.estimated }

// Result returns what the sample has shown.
func (s *Sample) Result() Result {
	return Result{objects: len(s.objects), unique: s.unique, shared: s.shared, estimated: float64(s.estimated)}
}

// Result is what a [Sample] has shown. Its zero value is that of an empty one.
type Result struct {
	objects                   int
	unique, shared, estimated float64
}

// Ratio returns the ratio of the memory of a cache of that many objects to the sum of [Of] for its objects.
func (r Result) Ratio(objects int) float64 {
	if r.estimated == 0 {
		return 1
	}
	return (r.unique + r.shared*float64(r.objects)/float64(max(objects, r.objects))) / r.estimated
}

// Len returns the number of objects.
func (r Result) Len() int { return r.objects }

// Maps returns the number of bytes of the maps and keys of an informer with that many objects, and slot bytes for each in
// a map of its own.
func Maps(objects, slot int) int64 {
	if objects == 0 {
		return 0
	}
	const (
		stored  = slotOfAny // in the store, by key
		indexed = 2 * word  // in the index by namespace
		keys    = 2 * 48    // the store and its source make each key
	)
	return mapSize(objects, stored) + mapSize(objects, indexed) + mapSize(objects, 2*word+slot) + int64(objects)*keys
}

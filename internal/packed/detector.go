package packed

import (
	"os"
	"strconv"
)

// DetectsMutations reports whether client-go checks for writes to cached objects. If objects had common parts, it would report many
// of them after a write to one.
func DetectsMutations() bool {
	detects, _ := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))
	return detects
}

// Observe makes the later objects of a packer of package packed call observer, once, with each object that is unpacked from
// them. Unpacked objects then share no parts. Package packed sets it during initialisation, and it must not be changed later.
var Observe func(packer any, observer func(object any))

// Observe is as the variable Observe, for tapes: see [Tape.Observer].
func (p *Packer) Observe(observer func(object any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.observer = observer
	p.dict = newObserved(observer)
}

func newObserved(observer func(object any)) *Dictionary {
	d := NewDictionary()
	d.observer = observer
	return d
}

// Observer returns the observer of the packer that has made the tape, or nil.
func (t Tape) Observer() func(object any) {
	if t.IsZero() {
		return nil
	}
	return t.dict.observer
}

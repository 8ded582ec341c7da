package discovery

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// maxNear is how many suggestions an error makes.
const maxNear = 3

// suggestions are the resources with names like that of ref. They are looked for when they
// are first asked for: most errors are never read.
type suggestions struct {
	ref Ref

	mu     sync.Mutex
	groups []*groupView // what was served when the error was made; nil once looked through
	found  []Ref
}

// list returns them, best first. On nil there are none.
func (s *suggestions) list() []Ref {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups != nil {
		s.found, s.groups = similar(s.groups, s.ref), nil
	}
	return slices.Clone(s.found)
}

// similar returns the resources of groups whose plural, singular, kind or short name is
// closest to that of ref, best first. The same name in another group is closest
// of all.
func similar(groups []*groupView, ref Ref) []Ref {
	type candidate struct {
		ref      Ref
		distance int
	}
	want := strings.ToLower(ref.Resource)
	limit := max(1, len(want)/3) // a third of the letters may be wrong, and one always
	var candidates []candidate
	for _, g := range groups {
		first := len(candidates)
		for i := range g.resources {
			res := &g.resources[i]
			best := limit + 1
			for _, name := range [...]string{res.GVR.Resource, res.Singular, res.GVK.Kind} {
				best = min(best, distanceOf(want, name, limit))
			}
			for _, name := range res.ShortNames {
				best = min(best, distanceOf(want, name, limit))
			}
			if best > limit {
				continue
			}
			at := slices.IndexFunc(candidates[first:], func(c candidate) bool { return c.ref.Resource == res.GVR.Resource })
			if at < 0 {
				candidates = append(candidates, candidate{Ref{Resource: res.GVR.Resource, Group: g.name}, best})
			} else {
				candidates[first+at].distance = min(candidates[first+at].distance, best)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		if ref.Group != "" { // a reference with a group means one like it
			if d := distance(ref.Group, a.ref.Group, math.MaxInt) - distance(ref.Group, b.ref.Group, math.MaxInt); d != 0 {
				return d
			}
		}
		return strings.Compare(a.ref.String(), b.ref.String())
	})
	var refs []Ref
	for _, cand := range candidates[:min(maxNear, len(candidates))] {
		refs = append(refs, cand.ref)
	}
	return refs
}

// distanceOf returns the distance between want and name in lower case, or more than limit.
func distanceOf(want, name string, limit int) int {
	if name == "" || max(len(want)-len(name), len(name)-len(want)) > limit {
		return limit + 1 // each letter more is one
	}
	return distance(want, strings.ToLower(name), limit)
}

// distance is Levenshtein's: the insertions, deletions and replacements of a byte
// that turn a into b. It is more than limit where that is certain before the end.
func distance(a, b string, limit int) int {
	var few [64]int
	row := few[:0]
	if len(b) >= len(few) {
		row = make([]int, 0, len(b)+1)
	}
	row = row[:len(b)+1]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return least
		}
	}
	return row[len(b)]
}

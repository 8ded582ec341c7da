package discovery

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// maxSuggestions is the maximum number of suggestions of an error.
const maxSuggestions = 3

// suggestions are the resources with names similar to that of ref. The first call of list searches
// for them, since most errors are never read.
type suggestions struct {
	ref Ref

	mu     sync.Mutex
	groups []*groupView // the served groups at the time of the error; nil after the search
	found  []Ref
}

// list returns the suggestions, the most similar first. A nil receiver has none.
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

// similar returns the resources of groups whose plural, singular, kind or short name is the most
// similar to that of ref, the most similar first. The same name in another group is the most
// similar.
func similar(groups []*groupView, ref Ref) []Ref {
	type candidate struct {
		ref      Ref
		distance int
	}
	want := strings.ToLower(ref.Resource)
	limit := max(1, len(want)/3) // a third of the letters may differ, and at least one
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
		if ref.Group != "" { // prefer similar groups
			if d := distance(ref.Group, a.ref.Group, math.MaxInt) - distance(ref.Group, b.ref.Group, math.MaxInt); d != 0 {
				return d
			}
		}
		return strings.Compare(a.ref.String(), b.ref.String())
	})
	var refs []Ref
	for _, cand := range candidates[:min(maxSuggestions, len(candidates))] {
		if best := candidates[0]; best.distance == 0 && best.ref.Group == ref.Group && cand.distance > 0 {
			break // ref has the kind, the singular or a short name of a resource of its group
		}
		refs = append(refs, cand.ref)
	}
	return refs
}

// distanceOf returns the distance between want and name in lower case, or a number above limit.
func distanceOf(want, name string, limit int) int {
	if name == "" || max(len(want)-len(name), len(name)-len(want)) > limit {
		return limit + 1 // the distance is at least the difference of the lengths
	}
	return distance(want, strings.ToLower(name), limit)
}

// distance returns the Levenshtein distance of a and b. If it is above limit, the result may be any
// number above limit.
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

package discovery

import (
	"slices"
	"strings"
)

// maxNear is how many suggestions an error makes.
const maxNear = 3

// near returns the resources whose plural, singular, kind or short name is
// closest to that of ref, best first. The same name in another group is closest
// of all.
func (c *catalogue) near(ref Ref) []Ref {
	type candidate struct {
		ref      Ref
		distance int
	}
	want := strings.ToLower(ref.Resource)
	best := map[Ref]int{}
	for res := range c.all() {
		names := append([]string{res.GVR.Resource, res.Singular, res.GVK.Kind}, res.ShortNames...)
		for _, name := range names {
			if name == "" {
				continue
			}
			// A third of the letters may be wrong, and one always.
			d := distance(want, strings.ToLower(name))
			if d > max(1, len(want)/3) {
				continue
			}
			key := Ref{Resource: res.GVR.Resource, Group: res.GVR.Group}
			if old, seen := best[key]; !seen || d < old {
				best[key] = d
			}
		}
	}
	candidates := make([]candidate, 0, len(best))
	for ref, d := range best {
		candidates = append(candidates, candidate{ref, d})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		if ref.Group != "" { // somebody who has named a group means one like it
			if d := distance(ref.Group, a.ref.Group) - distance(ref.Group, b.ref.Group); d != 0 {
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

// distance is Levenshtein's: the insertions, deletions and replacements of a byte
// that turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

package objects

import (
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// object and list are the types of JSON objects and arrays in unstructured objects.
type (
	object = map[string]any
	list   = []any
)

// now is the present time of the objects.
var now = time.Date(2026, time.March, 12, 9, 30, 0, 0, time.UTC)

// timestamp formats t as API servers do.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// random makes random values for one object, or for one application: equal values for
// equal seeds.
type random struct{ *rand.Rand }

// newRandom returns the random values for two seeds.
func newRandom(seed uint64, i int) random {
	return random{rand.New(rand.NewPCG(seed, uint64(i)))}
}

// Between returns a number from low to high, inclusive.
func (r random) Between(low, high int) int { return low + r.IntN(high-low+1) }

// Chance returns true with probability p.
func (r random) Chance(p float64) bool { return r.Float64() < p }

// Pick returns one of the choices.
func (r random) Pick(choices ...string) string { return choices[r.IntN(len(choices))] }

// Some returns from low to high different numbers less than n.
func (r random) Some(n, low, high int) []int { return r.Perm(n)[:r.Between(low, high)] }

// Ago returns a time at most days before t. Short times are more frequent than long ones.
func (r random) Ago(t time.Time, days int) time.Time {
	f := r.Float64()
	return t.Add(-time.Duration(f * f * float64(days) * float64(24*time.Hour))).Truncate(time.Second)
}

// Hex returns n hexadecimal digits.
func (r random) Hex(n int) string {
	b := make([]byte, (n+1)/2)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return hex.EncodeToString(b)[:n]
}

// UID returns a UID.
func (r random) UID() string {
	h := r.Hex(32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// suffixAlphabet has the characters of generated names, as API servers make them.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// Suffix returns five characters, as at the end of a generated name.
func (r random) Suffix() string {
	b := make([]byte, 5)
	for i := range b {
		b[i] = suffixAlphabet[r.IntN(len(suffixAlphabet))]
	}
	return string(b)
}

// uniqueSuffix returns five such characters, different for each i less than 27^5: a
// multiplication by a number without the factor 3 permutes these numbers.
func uniqueSuffix(i int) string {
	const size = 27 * 27 * 27 * 27 * 27
	n := (i*7368787 + 1234577) % size
	b := make([]byte, 5)
	for k := range b {
		b[k] = suffixAlphabet[n%27]
		n /= 27
	}
	return string(b)
}

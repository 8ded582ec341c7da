package objects

import (
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// object and list are JSON's, as unstructured objects hold them.
type (
	object = map[string]any
	list   = []any
)

// now is when the objects were looked at.
var now = time.Date(2026, time.March, 12, 9, 30, 0, 0, time.UTC)

// timestamp writes t as API servers do.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// dice makes the random values of one object, or of the world around them: the same
// ones for the same seed.
type dice struct{ *rand.Rand }

// newDice returns the dice of the thing with number i in the given domain.
func newDice(domain uint64, i int) dice {
	return dice{rand.New(rand.NewPCG(domain, uint64(i)))}
}

// Between returns a number from low to high, both included.
func (d dice) Between(low, high int) int { return low + d.IntN(high-low+1) }

// Chance is true with probability p.
func (d dice) Chance(p float64) bool { return d.Float64() < p }

// Pick returns one of the choices.
func (d dice) Pick(choices ...string) string { return choices[d.IntN(len(choices))] }

// Some returns between low and high of the numbers below n.
func (d dice) Some(n, low, high int) []int { return d.Perm(n)[:d.Between(low, high)] }

// Ago returns a time up to days before t, more often a short while than a long one.
func (d dice) Ago(t time.Time, days int) time.Time {
	f := d.Float64()
	return t.Add(-time.Duration(f * f * float64(days) * float64(24*time.Hour))).Truncate(time.Second)
}

// Hex returns n hexadecimal digits.
func (d dice) Hex(n int) string {
	b := make([]byte, (n+1)/2)
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return hex.EncodeToString(b)[:n]
}

// UID returns a UID.
func (d dice) UID() string {
	h := d.Hex(32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// suffixAlphabet is what API servers make generated names from.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// Suffix returns five characters such as end generated names.
func (d dice) Suffix() string {
	b := make([]byte, 5)
	for i := range b {
		b[i] = suffixAlphabet[d.IntN(len(suffixAlphabet))]
	}
	return string(b)
}

// uniqueSuffix returns five such characters that no other i has, as long as i is
// less than 27^5: multiplying by a number without the factor 3 permutes them.
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

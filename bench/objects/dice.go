package objects

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"
)

// object and list are JSON's, as unstructured objects hold them.
type (
	object = map[string]any
	list   = []any
)

// dice makes the random values of one object, or of the world around them: the same
// ones for the same seed.
type dice struct{ *rand.Rand }

// newDice returns the dice of the thing with number i in the given domain.
func newDice(domain uint64, i int) dice {
	return dice{rand.New(rand.NewPCG(domain, uint64(i)))}
}

// between returns a number from low to high, both included.
func (d dice) Between(low, high int) int { return low + d.IntN(high-low+1) }

// chance is true with probability p.
func (d dice) Chance(p float64) bool { return d.Float64() < p }

// pick returns one of the choices.
func (d dice) Pick(choices ...string) string { return choices[d.IntN(len(choices))] }

// Some returns between low and high of the numbers below n.
func (d dice) Some(n, low, high int) []int { return d.Perm(n)[:d.Between(low, high)] }

// PickOrHex returns one of the choices or n hexadecimal digits.
func (d dice) PickOrHex(n int, choices ...string) string {
	digits := d.Hex(n)
	return d.Pick(append(choices, digits)...)
}

// N and N64 return a number below n.
func (d dice) N(n int) int { return d.IntN(n) }

// N64 is N for numbers of 64 bits, which are other random numbers.
func (d dice) N64(n int) int64 { return d.Int64N(int64(n)) }

// Subject and Role return the parts of the name of an application.
func (d dice) Subject() string { return d.Pick(subjects...) }

// Role is the second part.
func (d dice) Role() string { return d.Pick(roles...) }

// Ago returns a time up to days before t, more often a short while than a long one.
func (d dice) Ago(t time.Time, days int) time.Time { return d.before(t, days) }

func (d dice) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.Uint32())
	}
	return b
}

// hex returns n hexadecimal digits.
func (d dice) Hex(n int) string { return hex.EncodeToString(d.bytes((n + 1) / 2))[:n] }

func (d dice) UID() string {
	h := d.Hex(32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// suffixAlphabet is what API servers make generated names from.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// suffix returns five characters such as end generated names.
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

// now is when the objects were looked at.
var now = time.Date(2026, time.March, 12, 9, 30, 0, 0, time.UTC)

// before returns a time up to days before t, more often a short while than a long one.
func (d dice) before(t time.Time, days int) time.Time {
	f := d.Float64()
	return t.Add(-time.Duration(f * f * float64(days) * float64(24*time.Hour))).Truncate(time.Second)
}

// timestamp writes t as API servers do.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (d dice) IP() string {
	return fmt.Sprintf("10.%d.%d.%d", d.Between(64, 95), d.IntN(256), d.Between(1, 254))
}

func (d dice) version() string {
	return fmt.Sprintf("%d.%d.%d", d.Between(0, 4), d.IntN(30), d.IntN(12))
}

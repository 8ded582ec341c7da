package statuspage

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"
)

// plain returns s with escapes for invisible characters, and for characters that control a
// terminal or the direction of text.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unprintable(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// ago returns the time from when to at, or "-" if when is zero.
func ago(when, at time.Time) string {
	if when.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, at.Sub(when)))
}

// ahead returns the time from at to when, or "" if when is not after at.
func ahead(when, at time.Time) string {
	if !when.After(at) {
		return ""
	}
	return duration.HumanDuration(when.Sub(at).Round(time.Second))
}

// count returns n with thousands separators, and noun in singular or plural.
func count[N int | uint64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		noun += "e"
	}
	return number(n) + " " + noun + "s"
}

// number returns n with thousands separators.
func number[N int | uint64](n N) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// size returns bytes with a unit.
func size(bytes uint64) string {
	value, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// clock returns at as it is displayed.
func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" }

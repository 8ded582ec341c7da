package objects

import "fmt"

// ResourceVersionDigits is how many digits each resource version has, so that one
// can be put in another's place.
const ResourceVersionDigits = 10

// ResourceVersion returns the first resource version of the object with number i.
// The versions of all first objects follow each other.
func ResourceVersion(i int) string { return FormatResourceVersion(1_000_000_000 + int64(i)) }

// FormatResourceVersion writes v with all its digits.
func FormatResourceVersion(v int64) string { return fmt.Sprintf("%0*d", ResourceVersionDigits, v) }

package objects

import "fmt"

// Version returns the resource version of the object with number i, before any update. Those
// of all objects follow each other, and all have as many digits.
func Version(i int) int64 { return 1_000_000_000 + int64(i) }

// FormatVersion writes a resource version.
func FormatVersion(version int64) string { return fmt.Sprintf("%010d", version) }

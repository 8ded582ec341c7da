// Package report keeps what was measured, compares it with the reference and writes
// it down: as a table, and as JSON with every single run.
package report

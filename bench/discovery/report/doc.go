// Package report keeps what was measured of discovery, compares gvrkit with the others
// and writes it down: as a table, and as JSON with every single run.
package report

// Package report keeps what was measured of leases, compares gvrkit with the others and
// with its targets, and writes it down: as a table, and as JSON with every single run.
package report

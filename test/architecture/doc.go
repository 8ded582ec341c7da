// Package architecture compares ARCHITECTURE.md with the source: its table of packages, and its
// walks. The package has only tests.
package architecture

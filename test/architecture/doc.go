// Package architecture holds ARCHITECTURE.md against the source: its table of packages, and its
// walks. It has nothing but tests.
package architecture

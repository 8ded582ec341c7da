// Package servers has the API servers that systems are measured against. Each runs
// as a process of its own, and has the first objects of one kind.
package servers

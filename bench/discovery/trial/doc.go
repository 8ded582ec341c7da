// Package trial measures one system on one cluster, in a process of its own: how it
// starts, how it answers what it knows and what is not there, and when it notices a type
// that comes. Each answer is checked.
package trial

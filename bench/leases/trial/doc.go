// Package trial measures one part of one system on one server, in a process of its own:
// what a lease costs, what an informer takes whose type is not there or has gone, and when
// its handlers hear of a type that goes and comes back.
package trial

// Package shapes runs, on client-go's dynamicinformer and on gvrkit's, the ways in which programs use that package:
// how they start and stop informers, add handlers, read caches, handle errors and test with fake clients. A shape is
// one such way, written as a program would write it. What both packages show to the program is the same, or the shape
// names the row of docs/migration.md that has the difference.
//
// The package does not know leases, discovery or any other name that client-go does not have.
package shapes

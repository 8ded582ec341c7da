// Package upstream runs client-go's own tests of dynamicinformer and dynamiclister
// against gvrkit's packages: taken from the module cache, with nothing changed but
// the import lines.
//
// They are a weak bar, which copies pass that ignore half of what they are given;
// the tables in package dynamicinformer are the strong one.
package upstream

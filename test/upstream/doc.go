// Package upstream runs client-go's own tests of dynamicinformer, dynamiclister, metadatainformer and
// metadatalister on gvrkit's packages. It takes the tests from the module cache and changes only the import lines.
//
// These tests check little: a copy of the packages that ignores half of its arguments passes them.
// The tests of package dynamicinformer check more.
package upstream

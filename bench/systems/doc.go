// Package systems has the caches that are compared, each behind the same few methods.
//
// To add one, write a function that opens it and give it a row in [All]. What it
// caches need not be unstructured objects: a [Cache] is asked for those only to be
// checked, when nothing is measured.
package systems

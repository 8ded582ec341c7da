// Package informers has what is compared: ways to have an informer on a type that may not
// be there, or may go, each used as its documentation says or as people write it.
package informers

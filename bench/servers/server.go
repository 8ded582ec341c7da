package servers

import (
	"context"
	"fmt"
	"strings"

	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/objects"
)

// Server is a running server with its objects.
type Server interface {
	// Connection is how systems reach it.
	Connection() measure.Server
	// Change changes n objects, one after the other, as fast as it can; a change
	// is one event. It returns when all have been made.
	Change(ctx context.Context, n int) error
	// Stop ends the server.
	Stop() error
}

// Sort is one sort of server.
type Sort struct {
	Name string
	// About says what it is, in a few words.
	About string
	// Paced says that changes come as fast as a system reads them, so that how
	// fast that is can be told.
	Paced bool
	// Slow says that it takes so long that fewer systems and objects have to do.
	Slow bool
	// Start starts a server with the first n objects of kind. ctx kills it.
	Start func(ctx context.Context, kind objects.Kind, n int) (Server, error)
}

// All returns the sorts of servers that there are.
func All() []Sort {
	return []Sort{
		{Name: "stub", About: "JSON encoded beforehand, HTTP/1.1", Paced: true, Start: startStub},
		{Name: "embedded", About: "apiextensions-apiserver on etcd, TLS and HTTP/2", Slow: true, Start: startEmbedded},
	}
}

// Names returns the names of all sorts.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Named returns the sort called name.
func Named(name string) (Sort, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Sort{}, fmt.Errorf("no server %q; there are %s", name, strings.Join(Names(), ", "))
}

package dynamicclient

import (
	"slices"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// Option configures a client that NewClient or NewForConfig makes. Every
// combination is valid; of options that contradict each other the last one
// counts; a nil Option has no effect.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	stock   bool // client-go's decoder
	sharing wire.Sharing
	drop    [][]string
	tables  *Tables // nil: the client's own
}

func newOptions(opts []Option) *options {
	o := &options{}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(o)
		}
	}
	return o
}

// WithStockDecoding makes the client decode as client-go's does, with its code. It
// leaves WithoutFields and its likes, and WithSharing, without effect.
func WithStockDecoding() Option {
	return optionFunc(func(o *options) { o.stock = true })
}

// WithSharing lets parts of objects that are equal be one and the same in memory, of
// whatever object and resource they are: once a part of up to 4 KB of JSON has been
// met a few times, as long as the client's table has room. This saves half the
// memory where objects resemble each other, and many do in their managedFields
// alone. In return nobody may write to anything in an object but its uppermost
// fields and those of its metadata: the write would reach other objects, of other
// resources too, and those that are read later. DeepCopy gives an object whose parts
// are its own. A transform of an informer on this client writes, too, if it changes
// more than that.
//
// It is the default of NewForConfig, whose objects are read-only anyway; there, and
// only there, an informer that is given a transform gets objects of its own.
func WithSharing() Option {
	return optionFunc(func(o *options) { o.sharing = wire.Shared })
}

// WithoutSharing gives each object maps and slices of its own. It is the default of
// NewClient.
func WithoutSharing() Option {
	return optionFunc(func(o *options) { o.sharing = wire.Own })
}

// WithoutFields leaves the field at path, and what is below it, out of each object
// that is read, without ever building it. The path is of names, from the object
// down, and means what it means for unstructured.RemoveNestedField: it does not go
// through arrays. May be given more than once. A path of no names has no effect.
//
// What informers need stays, whatever path says: an object's apiVersion and kind, the
// name, namespace, uid and resourceVersion in its metadata, and all of a bookmark.
//
// An object that was read like this is not for writing back: the server would take
// what is missing for deleted.
func WithoutFields(path ...string) Option {
	path = slices.Clone(path)
	return optionFunc(func(o *options) { o.drop = append(o.drop, path) })
}

// WithoutManagedFields leaves out metadata.managedFields, as WithoutFields does.
func WithoutManagedFields() Option { return WithoutFields("metadata", "managedFields") }

// WithoutLastApplied leaves out the annotation in which kubectl apply keeps the
// whole object once more, as WithoutFields does.
func WithoutLastApplied() Option {
	return WithoutFields("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
}

// Tables are the strings and parts of objects that clients have met. Clients with the same
// tables share them, and the memory. They are safe for concurrent use.
type Tables struct{ tables *wire.Tables }

// NewTables returns empty tables.
func NewTables() *Tables { return &Tables{wire.NewTables(wire.Shared)} }

// WithTables makes the client use t instead of tables of its own. Nil has no effect.
func WithTables(t *Tables) Option {
	return optionFunc(func(o *options) {
		if t != nil {
			o.tables = t
		}
	})
}

// settings returns how to decode, nil for client-go's way.
func (o *options) settings() *wire.Settings {
	if o.stock {
		return nil
	}
	s := &wire.Settings{Sharing: o.sharing}
	if o.tables != nil {
		s.Tables = o.tables.tables
	} else {
		s.Tables = wire.NewTables(o.sharing)
	}
	if len(o.drop) > 0 {
		s.Drop = &wire.Drop{}
		for _, path := range o.drop {
			s.Drop.Add(path...)
		}
	}
	return s
}

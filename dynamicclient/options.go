package dynamicclient

import (
	"slices"
	"sync"

	"github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// Option configures a client of this package, or that of a factory of NewForConfig. Every combination
// is valid. If options contradict each other, the last one counts. A nil Option has no effect.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	stock   bool // client-go's decoder
	sharing wire.Sharing
	only    [][]string // empty: all fields
	drop    [][]string
	tables  *Tables // nil: the client has its own tables

	undecodable bool      // see undecodable.Option
	packed      wire.Read // see packed.Option
}

func init() {
	undecodable.Option = optionFunc(func(o *options) { o.undecodable = true })
	packed.Option = func(read wire.Read) any {
		return optionFunc(func(o *options) { o.packed = read })
	}
	wire.DecodingOf = func(opts any) (*wire.Drop, wire.Sharing) {
		o := newOptions(opts.([]Option))
		return o.dropped(), o.sharing && wire.Sharing(!o.stock)
	}
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

// WithStockDecoding makes the client use client-go's decoder. Then WithoutFields, WithOnlyFields, WithSharing and the
// options that are based on them have no effect.
func WithStockDecoding() Option {
	return optionFunc(func(o *options) { o.stock = true })
}

// WithSharing makes equal parts of objects share memory, also between objects of different resources.
// A part of up to 4 KB of JSON is shared after it has been decoded a few times, if the client's table
// has a slot for it. This saves about half of the memory if objects are similar; often their
// managedFields are. The program may then write only to the top-level fields of an object and to the
// fields of its metadata: other writes would also change other objects, of this and other resources,
// and objects that are read later. DeepCopy returns an object without shared parts. The same holds
// for a transform of an informer on this client.
//
// It is the default for the client of dynamicinformer.NewForConfig, whose cached objects are read-only.
// There, informers with a transform get objects without shared parts.
func WithSharing() Option {
	return optionFunc(func(o *options) { o.sharing = wire.Shared })
}

// WithoutSharing gives each object its own maps and slices. It is the default of New.
func WithoutSharing() Option {
	return optionFunc(func(o *options) { o.sharing = wire.Own })
}

// WithoutFields leaves the field at path, with all fields below it, out of each decoded object. The
// decoder of JSON does not allocate memory for it. The path has the names of fields from the top level down, as
// for unstructured.RemoveNestedField: it does not go through arrays. The option may be given more than
// once. An empty path has no effect.
//
// Fields that informers require can't be left out: an object's apiVersion and kind, the name,
// namespace, uid and resourceVersion in its metadata, and all fields of a bookmark.
//
// With dynamicinformer.WithClientOptions, it applies to the cached objects of all informers of the factory. In objects of a Go
// type the field is zero; the path has the names of fields in JSON, and also leads through maps and pointers. From objects with
// metadata only, the option can leave out fields of metadata, labels and annotations.
//
// Do not write such an object back: the server would delete the missing fields.
func WithoutFields(path ...string) Option {
	path = slices.Clone(path)
	return optionFunc(func(o *options) { o.drop = append(o.drop, path) })
}

// WithOnlyFields leaves out all fields of each decoded object, except those at path and below it. The path is one as for
// [WithoutFields]. A value on the path that is not an object, such as an array, is kept as a whole. The option may be given more than
// once: an object has the fields at all the paths. Without a path, it has no effect. WithoutFields leaves out fields of what remains.
//
// An object keeps the fields that informers require, as WithoutFields says. All that it says of cached objects holds here, too. In
// objects of a Go type, a value whose type decodes itself is kept as a whole.
//
// A program that reads labels, owners or annotations must name them: WithOnlyFields("metadata") keeps all metadata.
func WithOnlyFields(path ...string) Option {
	path = slices.Clone(path)
	return optionFunc(func(o *options) {
		if len(path) > 0 {
			o.only = append(o.only, path)
		}
	})
}

// WithoutManagedFields leaves out metadata.managedFields, as WithoutFields does.
func WithoutManagedFields() Option { return WithoutFields("metadata", "managedFields") }

// WithoutLastApplied leaves out the annotation in which kubectl apply stores a copy of the object, as
// WithoutFields does.
func WithoutLastApplied() Option {
	return WithoutFields("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
}

// Tables store the strings and parts of objects that clients have decoded. Clients with the same
// tables share this memory. Tables are safe for concurrent use. The zero value is empty tables.
type Tables struct {
	made   sync.Once
	tables *wire.Tables
}

// NewTables returns empty tables.
func NewTables() *Tables { return &Tables{} }

// get returns the tables of the decoder.
func (t *Tables) get() *wire.Tables {
	t.made.Do(func() { t.tables = wire.NewTables(wire.Shared) })
	return t.tables
}

// WithTables makes the client use t instead of its own tables. A nil t has no effect.
func WithTables(t *Tables) Option {
	return optionFunc(func(o *options) {
		if t != nil {
			o.tables = t
		}
	})
}

// settings returns the settings of the decoder, or nil for client-go's decoder.
func (o *options) settings() *wire.Settings {
	if o.stock {
		return nil
	}
	s := &wire.Settings{Sharing: o.sharing}
	if o.tables != nil {
		s.Tables = o.tables.get()
	} else {
		s.Tables = wire.NewTables(o.sharing)
	}
	s.Drop = o.dropped()
	if o.packed != nil {
		s.Into = o.packed
	}
	return s
}

// dropped returns the fields to leave out; nil if there are none.
func (o *options) dropped() *wire.Drop {
	if o.stock || len(o.only)+len(o.drop) == 0 {
		return nil
	}
	drop := &wire.Drop{}
	if len(o.only) > 0 {
		drop.Keep(o.only...)
	}
	for _, path := range o.drop {
		drop.Add(path...)
	}
	return drop
}

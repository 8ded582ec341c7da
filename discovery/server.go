package discovery

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// askAtOnce is how many group versions are asked about at a time, of a server that
// has no aggregated discovery.
const askAtOnce = 8

// server is who answers. The methods are safe for concurrent use.
type server interface {
	// everything asks for all groups and their resources. What previous has told
	// is not sent again where the server can tell that nothing changed; then the
	// answer is previous itself. The error is nil if any part could be asked.
	everything(ctx context.Context, previous *document) (*document, error)
	// named is everything for all groups but the core group, of which previous tells.
	named(ctx context.Context, previous *document) (*document, error)
	// groupVersion asks for the resources of one group version.
	groupVersion(ctx context.Context, gv schema.GroupVersion) (versionDoc, error)
	// failed notes that documents could not be had, and returns a channel that is closed
	// when another request to the server succeeds; nil if that is not known.
	failed() <-chan struct{}
	// requests returns how many requests have been sent.
	requests() uint64
}

// document is what a server has told of all that it serves, in its own order. It is
// not changed once made.
type document struct {
	core, named root
}

// root is the part of a document below /api, or below /apis.
type root struct {
	groups []groupDoc
	err    error     // it could not be asked, or not all be read; groups are those known
	etag   string    // of the answer, if it was complete
	legacy bool      // the server has no aggregated discovery
	date   time.Time // of the answer, by the server's clock, in whole seconds
}

// groups returns all groups, the core group first.
func (d *document) groups() []groupDoc {
	return append(slices.Clip(d.core.groups), d.named.groups...)
}

// versions returns all group versions, in order.
func (d *document) versions() iter.Seq2[schema.GroupVersion, versionDoc] {
	return func(yield func(schema.GroupVersion, versionDoc) bool) {
		for _, group := range d.groups() {
			for _, version := range group.versions {
				if !yield(schema.GroupVersion{Group: group.name, Version: version.name}, version) {
					return
				}
			}
		}
	}
}

// withLastKnown returns the document with what previous knew wherever d could not be
// told. A server that lists a group version and can't ask what serves it has not said
// that its resources are gone.
func (d *document) withLastKnown(previous *document) *document {
	if previous == nil || previous == d {
		return d
	}
	return &document{core: d.core.withLastKnown(previous.core), named: d.named.withLastKnown(previous.named)}
}

func (r root) withLastKnown(previous root) root {
	groups := slices.Clone(r.groups)
	for i, group := range groups {
		if slices.ContainsFunc(group.versions, func(v versionDoc) bool { return v.err != nil }) {
			groups[i] = group.withLastKnown(previous.group(group.name))
		}
	}
	if r.err != nil { // what it does not list may be there
		for _, group := range previous.groups {
			if !slices.ContainsFunc(groups, func(g groupDoc) bool { return g.name == group.name }) {
				groups = append(groups, group)
			}
		}
	}
	r.groups = groups
	return r
}

// group returns the group of that name, if there is one.
func (r root) group(name string) groupDoc {
	i := slices.IndexFunc(r.groups, func(g groupDoc) bool { return g.name == name })
	if i < 0 {
		return groupDoc{}
	}
	return r.groups[i]
}

// withLastKnown returns g with what previous knew of its versions that could not be told.
func (g groupDoc) withLastKnown(previous groupDoc) groupDoc {
	versions := slices.Clone(g.versions)
	for i, version := range versions {
		known := slices.IndexFunc(previous.versions, func(v versionDoc) bool { return v.name == version.name })
		if version.err == nil || known < 0 {
			continue
		}
		version = version.copied()
		for _, res := range previous.versions[known].resources {
			version.add(res)
		}
		versions[i] = version
	}
	g.versions = versions
	return g
}

// fill asks for the resources of each group version, which the legacy documents of
// the roots do not have.
func fill(ctx context.Context, groups []groupDoc, ask func(context.Context, schema.GroupVersion) (versionDoc, error)) {
	var wg sync.WaitGroup
	places := make(chan struct{}, askAtOnce)
	for i := range groups {
		for j := range groups[i].versions {
			places <- struct{}{}
			wg.Go(func() {
				defer func() { <-places }()
				version := &groups[i].versions[j] // nobody else's
				asked, err := ask(ctx, schema.GroupVersion{Group: groups[i].name, Version: version.name})
				if err != nil {
					asked.err = &askedError{at: time.Now(), err: err}
				}
				asked.name = version.name
				*version = asked
			})
		}
	}
	wg.Wait()
}

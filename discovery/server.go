package discovery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
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

// adapter asks through client-go's interface, which tells neither what a stale group
// last knew nor when to ask again, and has no way to ask for changes only.
type adapter struct {
	client discovery.DiscoveryInterfaceWithContext
	calls  atomic.Uint64 // of its methods
}

// requests returns how often the client was asked, who may have known.
func (s *adapter) requests() uint64 { return s.calls.Load() }

func (s *adapter) failed() <-chan struct{} { return nil }

func (s *adapter) everything(ctx context.Context, previous *document) (*document, error) {
	list, lists, failed, err := s.groups(ctx)
	if err != nil {
		return nil, err
	}
	var groups []groupDoc
	if list != nil {
		groups, _ = groupsOf(list) // a client's own; what it leaves out it has not
	}
	if len(groups) == 0 {
		return nil, errNoGroups
	}
	if lists == nil {
		fill(ctx, groups, s.groupVersion)
	} else {
		fill(ctx, groups, func(_ context.Context, gv schema.GroupVersion) (versionDoc, error) {
			if lists[gv] == nil {
				return versionDoc{}, failed[gv]
			}
			return readList(gv, lists[gv])
		})
	}
	for i := range groups {
		for j := range groups[i].versions {
			version := &groups[i].versions[j]
			if err := failed[schema.GroupVersion{Group: groups[i].name, Version: version.name}]; err != nil {
				version.err = err // an aggregated half has said that it is stale
			}
		}
	}
	doc := &document{named: root{groups: groups, legacy: lists == nil}}
	return doc.withLastKnown(previous), nil
}

func (s *adapter) named(ctx context.Context, previous *document) (*document, error) {
	return s.everything(ctx, previous)
}

// groups asks for the groups and, where the client has aggregated discovery, for
// their resources and what is stale; lists is nil where it has not.
func (s *adapter) groups(ctx context.Context) (groups *metav1.APIGroupList, lists map[schema.GroupVersion]*metav1.APIResourceList, failed map[schema.GroupVersion]error, err error) {
	s.calls.Add(1)
	switch client := s.client.(type) {
	case discovery.AggregatedDiscoveryInterfaceWithContext:
		return client.GroupsAndMaybeResourcesWithContext(ctx)
	case discovery.AggregatedDiscoveryInterface:
		return discovery.ToAggregatedDiscoveryInterfaceWithContext(client).GroupsAndMaybeResourcesWithContext(ctx)
	}
	groups, err = s.client.ServerGroupsWithContext(ctx)
	return groups, nil, nil, err
}

func (s *adapter) groupVersion(ctx context.Context, gv schema.GroupVersion) (versionDoc, error) {
	s.calls.Add(1)
	list, err := s.client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err != nil {
		return versionDoc{}, err
	}
	return readList(gv, list)
}

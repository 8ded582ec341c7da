package discovery

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// askAtOnce is the maximum number of concurrent requests for group versions to a server without
// aggregated discovery.
const askAtOnce = 8

// server is the interface to an API server. The methods are safe for concurrent use.
type server interface {
	// everything requests all groups and their resources. If the server reports that nothing has
	// changed since previous, the result is previous. The error is nil if any part was received.
	everything(ctx context.Context, previous *document) (*document, error)
	// named is everything without a request for the core group, which is taken from previous.
	named(ctx context.Context, previous *document) (*document, error)
	// groupVersion requests the resources of one group version.
	groupVersion(ctx context.Context, gv schema.GroupVersion) (versionDoc, error)
	// failed records that the request for documents has failed. It returns a channel that is closed
	// when another request that had failed succeeds; nil if that is not known.
	failed() <-chan struct{}
	// requests returns the number of requests so far.
	requests() uint64
}

// fill requests the resources of each group version, since the legacy documents of the roots do not
// have them.
func fill(ctx context.Context, groups []groupDoc, ask func(context.Context, schema.GroupVersion) (versionDoc, error)) {
	var wg sync.WaitGroup
	places := make(chan struct{}, askAtOnce)
	for i := range groups {
		for j := range groups[i].versions {
			places <- struct{}{}
			wg.Go(func() {
				defer func() { <-places }()
				version := &groups[i].versions[j] // only this goroutine writes to it
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

// adapter is the server behind a client with client-go's interface, which returns neither the last
// known resources of a stale group nor Retry-After, and has no conditional requests.
type adapter struct {
	client discovery.DiscoveryInterfaceWithContext
	calls  atomic.Uint64 // of the client's methods
}

// requests returns the number of calls of the client, which may have answered from a cache.
func (s *adapter) requests() uint64 { return s.calls.Load() }

func (s *adapter) failed() <-chan struct{} { return nil }

func (s *adapter) everything(ctx context.Context, previous *document) (*document, error) {
	list, lists, failed, err := s.groups(ctx)
	if err != nil {
		return nil, errtext.Clean(err)
	}
	var groups []groupDoc
	if list != nil {
		groups, _ = groupsOf(list) // what a client leaves out does not exist
	}
	if len(groups) == 0 {
		return nil, errNoGroups
	}
	if lists == nil {
		fill(ctx, groups, s.groupVersion)
	} else {
		fill(ctx, groups, func(_ context.Context, gv schema.GroupVersion) (versionDoc, error) {
			if lists[gv] == nil {
				return versionDoc{}, errtext.Clean(failed[gv])
			}
			return readList(gv, lists[gv])
		})
	}
	for i := range groups {
		for j := range groups[i].versions {
			version := &groups[i].versions[j]
			if err := failed[schema.GroupVersion{Group: groups[i].name, Version: version.name}]; err != nil {
				version.err = errtext.Clean(err) // the aggregated document marks it as stale
			}
		}
	}
	doc := &document{named: root{groups: groups, legacy: lists == nil}}
	return doc.withLastKnown(previous), nil
}

func (s *adapter) named(ctx context.Context, previous *document) (*document, error) {
	return s.everything(ctx, previous)
}

// groups requests the groups and, if the client has aggregated discovery, their resources and the
// errors of stale group versions. Otherwise, lists is nil.
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
		return versionDoc{}, errtext.Clean(err)
	}
	return readList(gv, list)
}

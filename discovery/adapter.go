package discovery

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

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

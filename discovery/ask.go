package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// askAtOnce is how many group versions are asked about at a time, of a server that
// has no aggregated discovery.
const askAtOnce = 8

// What a server says that can't be true is no answer.
var (
	errNoGroups  = errors.New("the server lists no API group, not even its own: is it a Kubernetes API server?")
	errNoAnswer  = errors.New("the server's answer is not a list of resources")
	errOtherList = errors.New("the server's answer is about another group version")
)

// groupVersion asks for the resources of one group version.
func (r *Resolver) groupVersion(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.requestTimeout)
	defer cancel()
	list, err := r.server.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err == nil && list != nil && list.GroupVersion != gv.String() {
		return nil, fmt.Errorf("%w: %q", errOtherList, list.GroupVersion)
	}
	return list, err
}

// catalogue asks for everything. Group versions that fail are part of the answer.
func (r *Resolver) catalogue(ctx context.Context) (*catalogue, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.requestTimeout)
	defer cancel()
	groups, lists, failed, err := r.groups(ctx)
	if err != nil {
		return nil, err
	}
	if groups == nil || !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return len(g.Versions) > 0 }) {
		return nil, errNoGroups
	}
	if lists == nil {
		var more map[schema.GroupVersion]error
		lists, more = r.eachGroupVersion(ctx, groups)
		maps.Copy(more, failed) // what an aggregated half has said is stale
		failed = more
	}
	return newCatalogue(groups.Groups, lists, failed), nil
}

// groups asks for the groups and, where the server has aggregated discovery, for
// their resources and what it knows to be stale; lists is nil where it has not.
func (r *Resolver) groups(ctx context.Context) (groups *metav1.APIGroupList, lists map[schema.GroupVersion]*metav1.APIResourceList, failed map[schema.GroupVersion]error, err error) {
	switch server := r.server.(type) {
	case discovery.AggregatedDiscoveryInterfaceWithContext:
		return server.GroupsAndMaybeResourcesWithContext(ctx)
	case discovery.AggregatedDiscoveryInterface:
		return discovery.ToAggregatedDiscoveryInterfaceWithContext(server).GroupsAndMaybeResourcesWithContext(ctx)
	}
	groups, err = r.server.ServerGroupsWithContext(ctx)
	return groups, nil, nil, err
}

// eachGroupVersion asks for the resources of every group version.
func (r *Resolver) eachGroupVersion(ctx context.Context, groups *metav1.APIGroupList) (map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error) {
	var (
		mu     sync.Mutex // guards the maps; not held while asking
		lists  = map[schema.GroupVersion]*metav1.APIResourceList{}
		failed = map[schema.GroupVersion]error{}
		wg     sync.WaitGroup
		places = make(chan struct{}, askAtOnce)
	)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			places <- struct{}{}
			wg.Go(func() {
				defer func() { <-places }()
				list, err := r.groupVersion(ctx, gv)
				if err == nil && (list == nil || list.APIResources == nil) {
					err = errNoAnswer
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed[gv] = err
					return
				}
				lists[gv] = list
			})
		}
	}
	wg.Wait()
	return lists, failed
}

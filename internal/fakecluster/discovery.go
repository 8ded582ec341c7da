package fakecluster

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Discovery returns a discovery client of the cluster. It has groups and resources; its
// other methods panic.
func (c *Cluster) Discovery() discovery.DiscoveryInterface {
	return &discoveryClient{cluster: c}
}

// VerbDiscover is the verb of discovery requests. A request for all groups has an empty GVR,
// and the other requests have a group and version.
const VerbDiscover = "discover"

type discoveryClient struct {
	discovery.DiscoveryInterfaces // nil: other methods panic
	cluster                       *Cluster
}

func (d *discoveryClient) ServerGroupsWithContext(ctx context.Context) (*metav1.APIGroupList, error) {
	if err := d.cluster.admit(ctx, Request{Verb: VerbDiscover}); err != nil {
		return nil, err
	}
	list := &metav1.APIGroupList{}
	for _, gv := range d.cluster.groupVersions() {
		last := len(list.Groups) - 1
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if last < 0 || list.Groups[last].Name != gv.Group {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: version})
			last++
		}
		list.Groups[last].Versions = append(list.Groups[last].Versions, version)
	}
	return list, nil
}

func (d *discoveryClient) ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := d.cluster.admit(ctx, Request{Verb: VerbDiscover, GVR: gv.WithResource("")}); err != nil {
		return nil, err
	}
	d.cluster.mu.Lock()
	defer d.cluster.mu.Unlock()
	list := &metav1.APIResourceList{GroupVersion: groupVersion}
	for gvr, s := range d.cluster.types {
		if gvr.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: gvr.Resource, Kind: s.Kind, Namespaced: s.Namespaced, Verbs: slices.Clone(s.Verbs),
			})
		}
	}
	if list.APIResources == nil {
		return nil, notServed("get")
	}
	return list, nil
}

func (c *Cluster) groupVersions() []schema.GroupVersion {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gvs []schema.GroupVersion
	for gvr := range c.types {
		if gv := gvr.GroupVersion(); !slices.Contains(gvs, gv) {
			gvs = append(gvs, gv)
		}
	}
	slices.SortFunc(gvs, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	return gvs
}

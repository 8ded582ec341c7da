package source

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/consistencydetector"

	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// isCheck reports whether a list is that of client-go's detector of inconsistencies, which
// KUBE_WATCHLIST_INCONSISTENCY_DETECTOR turns on: the reflector has no other list at an exact version.
func isCheck(opts metav1.ListOptions) bool {
	return opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
}

// check returns the list of the detector, which it compares with the objects of a watch-list. The list is at exactly the
// version of the watch-list. It does not change what the source knows, since the watch is open, and a failure is not
// reported: the detector tries again.
func (g *gate) check(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	t, _ := g.available.Current()
	from := g.requests(t).unreported().selecting(g.held(metav1.NamespaceAll))
	list, err := from.list(ctx, opts)
	if err != nil {
		return nil, err
	}
	bad, err := from.own(list, undecodable.Take(list))
	if err != nil {
		return nil, err
	}
	content, err := newListed(&response{list: list, undecodable: bad, identity: g.identityIn}, &g.transform, &sizes{})
	if err != nil {
		return nil, err
	}
	return content.list(), nil
}

// incomparable reports whether the detector is on and can't compare the source's objects: packed objects with equal
// content may have different bytes, and the detector would end the process.
func (g *gate) incomparable() bool {
	return g.transform.packing != nil && consistencydetector.IsDataConsistencyDetectionForWatchListEnabled()
}

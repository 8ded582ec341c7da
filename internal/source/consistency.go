package source

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/consistencydetector"

	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// verify compares list, which is a watch-list, with a LIST at the same version, if client-go's detector of inconsistencies is on
// (KUBE_WATCHLIST_INCONSISTENCY_DETECTOR). If they differ, it panics, as in client-go. It does not compare packed objects: with equal content they
// may have different bytes.
func (g *gate) verify(ctx context.Context, list runtime.Object) {
	if g.transform.packing != nil || !consistencydetector.IsDataConsistencyDetectionForWatchListEnabled() {
		return
	}
	content, err := meta.ListAccessor(list)
	if err != nil {
		return
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return
	}
	streamed := func() []runtime.Object { return items }
	consistencydetector.CheckDataConsistency(ctx, g.cfg.GVR.String(), content.GetResourceVersion(), g.check, nil, metav1.ListOptions{}, streamed)
}

// check returns the list of the detector. A failure is not reported: the detector tries again.
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

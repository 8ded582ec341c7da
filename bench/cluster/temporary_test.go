package cluster

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// stuckCRDs is a server that does not delete the objects of a CRD until the CRD has been written twice.
type stuckCRDs struct {
	dynamic.ResourceInterface
	events  *watch.FakeWatcher // has room for the events
	crd     *unstructured.Unstructured
	patches int
}

func (s *stuckCRDs) Delete(context.Context, string, metav1.DeleteOptions, ...string) error {
	s.crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Terminating", "reason": "InstanceDeletionFailed"}}}
	s.events.Modify(s.crd)
	return nil
}

func (s *stuckCRDs) Patch(_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	if s.patches++; s.patches == 1 {
		s.events.Modify(s.crd)
		return s.crd, nil
	}
	s.events.Delete(s.crd)
	return nil, apierrors.NewNotFound(CRDs.GroupResource(), name)
}

func TestTemporaryCRD_DeleteMakesTheServerTryAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := &stuckCRDs{events: watch.NewFakeWithChanSize(2, false), crd: Additional(0).CRD(100)}
	if _, err := (&TemporaryCRD{Additional(0), server.events, server, server.crd}).Delete(ctx); err != nil || server.patches != 2 {
		t.Errorf("%d patches, error %v", server.patches, err)
	}
}

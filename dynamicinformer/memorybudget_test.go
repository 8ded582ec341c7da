package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// largeObjects creates objects of a type with 4 KB each.
func largeObjects(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, number int) {
	t.Helper()
	for i := range number {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": of.GVR.GroupVersion().String(), "kind": of.Kind,
			"metadata": map[string]any{"namespace": "ns", "name": fmt.Sprintf("o%03d", i)}, "spec": map[string]any{"text": strings.Repeat(fmt.Sprint(i%10), 4096)},
		}}
		client := cluster.Resource(of.GVR).Namespace("ns")
		if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func TestMemoryBudget_RefusesATypeUntilMemoryIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types := manyTypes(3)
		cluster := fakecluster.New(types...)
		for n, objects := range []int{100, 100, 3} {
			largeObjects(t, cluster, types[n], objects)
		}
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(600<<10), dynamicinformer.WithPageSize(10))
		f.Start(t.Context())
		first := acquire(t, f, types[0].GVR)
		if err := first.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := acquire(t, f, types[1].GVR)
		err := second.WaitForSync(t.Context(), dynamicinformer.WithFailFast())
		notSynced, is := errors.AsType[*status.NotSyncedError](err)
		if !is || notSynced.Reason != status.ReasonOverBudget || !strings.Contains(err.Error(), "of the memory budget of 600.0 KiB are left") {
			t.Fatalf("the second type: %v", err)
		}
		synctest.Wait() // the time of the next attempt is set after the reason
		if i := second.Status(); i.State != status.StateDegraded || i.Objects != 0 || time.Until(i.NextRetry) < 4*time.Minute {
			t.Errorf("the second type is %s with %d objects, next attempt in %v", i.Summary(time.Now()), i.Objects, time.Until(i.NextRetry))
		}
		if text := f.Explain(types[1].GVR).String(); !strings.Contains(text, "raise WithMemoryBudget") {
			t.Errorf("explanation: %s", text)
		}
		third := acquire(t, f, types[2].GVR) // it fits
		if err := third.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		if lists := cluster.Requests("list", types[1].GVR); len(lists) != 1 {
			t.Errorf("%d pages of the second type were requested", len(lists))
		}
		begun := time.Now()
		first.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := second.WaitForSync(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the list after the release came after %v", took)
		}
		largeObjects(t, cluster, types[2], 200) // a cache that grows is kept
		synctest.Wait()
		if i := third.Status(); i.State != status.StateSynced || i.Objects != 200 || i.CacheBytes < 600<<10 {
			t.Errorf("the third type is %s with %d objects and %d bytes", i.Summary(time.Now()), i.Objects, i.CacheBytes)
		}
		shutdown(t, f)
	})
}

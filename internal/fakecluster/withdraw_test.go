package fakecluster_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestWithdraw_EndsWatchesWithoutAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		client := in(cluster, "ns")
		create(t, client, "a", "")
		w := openNow(t, client, metav1.ListOptions{})
		cluster.Withdraw(widgets)
		cluster.Withdraw(widgets) // has no further effect
		if diff := cmp.Diff([]string{"CLOSED"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("list of a type that is not served: %v", err)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d", got)
		}
	})
}

func TestServe_ReplacesAnExistingType(t *testing.T) {
	for name, withdraw := range map[string]bool{"withdrawn before": true, "served until then": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				client := in(cluster, "ns")
				before := create(t, client, "a", "").GetResourceVersion()
				w := openNow(t, client, metav1.ListOptions{})
				create(t, client, "b", "")
				seen(w)
				if withdraw {
					cluster.Withdraw(widgets)
				}
				cluster.Serve(widgetType)
				if diff := cmp.Diff([]string{"CLOSED"}, seen(w)); diff != "" {
					t.Errorf("events of a watch from before (-want +got):\n%s", diff)
				}
				if got := len(list(t, client, metav1.ListOptions{}).Items); got != 0 {
					t.Errorf("the type begins with %d objects", got)
				}
				if _, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before}); !apierrors.IsResourceExpired(err) {
					t.Errorf("watch from before: %v, want Expired", err)
				}
			})
		})
	}
}

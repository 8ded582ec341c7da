package fakecluster_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestExpire_WatchFromAnEarlierVersionIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		old := create(t, client, "a", "").GetResourceVersion()
		last := create(t, client, "b", "").GetResourceVersion()
		cluster.Expire(widgets)
		_, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("watch from %s: %v, want Expired", old, err)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
		// The present version is not expired. A list returns it.
		if got := list(t, client, metav1.ListOptions{}).GetResourceVersion(); got != last {
			t.Errorf("resourceVersion of a list = %s, want %s", got, last)
		}
		w := open(t, client, metav1.ListOptions{ResourceVersion: last})
		create(t, client, "c", "")
		if diff := cmp.Diff([]string{"ADDED ns/c"}, seen(w)); diff != "" {
			t.Errorf("events of a watch from now (-want +got):\n%s", diff)
		}
	})
}

// The server no longer has the next event of the watch.
func TestExpire_OpenWatchThatIsBehindGetsAnErrorAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, client, metav1.ListOptions{})
		create(t, client, "a", "")
		synctest.Wait() // the watch is sending a; later events wait
		create(t, client, "b", "")
		cluster.Expire(widgets)
		if diff := cmp.Diff([]string{"ADDED ns/a", "ERROR Expired", "CLOSED"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
	})
}

// The last version of an idle watch is also expired.
func TestExpire_IdleWatchGetsAnErrorAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		w := openNow(t, in(cluster, ""), metav1.ListOptions{})
		create(t, cluster.Resource(blocks), "b", "") // a later version, without a change of widgets
		synctest.Wait()
		cluster.Expire(widgets)
		if diff := cmp.Diff([]string{"ERROR Expired", "CLOSED"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestExpire_OpenWatchThatIsCurrentContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, client, metav1.ListOptions{})
		create(t, client, "a", "")
		if diff := cmp.Diff([]string{"ADDED ns/a"}, seen(w)); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
		cluster.Expire(widgets)
		create(t, client, "b", "")
		if diff := cmp.Diff([]string{"ADDED ns/b"}, seen(w)); diff != "" {
			t.Errorf("events after Expire (-want +got):\n%s", diff)
		}
	})
}

func TestExpire_DoesNotAffectOtherTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		b := create(t, cluster.Resource(blocks), "b", "")
		create(t, cluster.Resource(blocks), "c", "")
		cluster.Expire(widgets)
		w := open(t, cluster.Resource(blocks), metav1.ListOptions{ResourceVersion: b.GetResourceVersion()})
		if diff := cmp.Diff([]string{"ADDED /c"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestCloseWatches_EndsThemWithoutAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		client := in(cluster, "ns")
		a := create(t, client, "a", "")
		first := openNow(t, client, metav1.ListOptions{})
		second := openNow(t, in(cluster, ""), metav1.ListOptions{})
		other := openNow(t, cluster.Resource(blocks), metav1.ListOptions{})
		synctest.Wait()
		cluster.CloseWatches(widgets)
		if diff := cmp.Diff([]string{"CLOSED"}, seen(first)); diff != "" {
			t.Errorf("first watch (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"CLOSED"}, seen(second)); diff != "" {
			t.Errorf("second watch (-want +got):\n%s", diff)
		}
		if got := seen(other); got != nil {
			t.Errorf("watch of another type: %q", got)
		}
		if got := []int{cluster.OpenWatches(widgets), cluster.OpenWatches(blocks)}; !cmp.Equal([]int{0, 1}, got) {
			t.Errorf("open watches = %d, want 0 and 1", got)
		}

		// A new watch resumes, and gets the events of the meantime.
		create(t, client, "b", "")
		again := open(t, client, metav1.ListOptions{ResourceVersion: a.GetResourceVersion()})
		if diff := cmp.Diff([]string{"ADDED ns/b"}, seen(again)); diff != "" {
			t.Errorf("watch after that (-want +got):\n%s", diff)
		}
	})
}

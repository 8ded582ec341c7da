package fakecluster_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestWatch_SendsEachChangeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, in(cluster, ""), metav1.ListOptions{})
		a := create(t, client, "a", "")
		create(t, in(cluster, "other"), "b", "")
		update(t, client, a)
		remove(t, client, "a")
		want := []string{"ADDED ns/a", "ADDED other/b", "MODIFIED ns/a", "DELETED ns/a"}
		if diff := cmp.Diff(want, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestWatch_EventsHaveTheObjectAtItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, client, metav1.ListOptions{})
		created := create(t, client, "a", "red")
		updated := update(t, client, newObject("a", "blue"))
		remove(t, client, "a")
		// A deleted object has its last state, at the version of the deletion.
		deleted := updated.DeepCopy()
		deleted.SetResourceVersion(list(t, client, metav1.ListOptions{}).GetResourceVersion())
		want := []watch.Event{
			{Type: watch.Added, Object: created},
			{Type: watch.Modified, Object: updated},
			{Type: watch.Deleted, Object: deleted},
		}
		if diff := cmp.Diff(want, take(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestWatch_HasNoEventsOfOtherTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		w := openNow(t, in(cluster, ""), metav1.ListOptions{})
		create(t, cluster.Resource(blocks), "b", "")
		if got := seen(w); got != nil {
			t.Errorf("events: %q, want none", got)
		}
	})
}

func TestWatch_SelectorsAndNamespace(t *testing.T) {
	for _, tc := range []struct {
		name, namespace string
		opts            metav1.ListOptions
		want            []string
	}{
		{"namespace", "ns", metav1.ListOptions{}, []string{"ADDED ns/a", "ADDED ns/b", "DELETED ns/a", "DELETED ns/b"}},
		{"label", "", metav1.ListOptions{LabelSelector: "color=red"}, []string{"ADDED ns/a", "ADDED other/a", "DELETED ns/a", "DELETED other/a"}},
		{"name", "", metav1.ListOptions{FieldSelector: "metadata.name=b"}, []string{"ADDED ns/b", "DELETED ns/b"}},
		{"all of them", "ns", metav1.ListOptions{LabelSelector: "color", FieldSelector: "metadata.name!=b"}, []string{"ADDED ns/a", "DELETED ns/a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				w := openNow(t, in(cluster, tc.namespace), tc.opts)
				create(t, in(cluster, "ns"), "a", "red")
				create(t, in(cluster, "ns"), "b", "blue")
				create(t, in(cluster, "other"), "a", "red")
				remove(t, in(cluster, "ns"), "a")
				remove(t, in(cluster, "ns"), "b")
				remove(t, in(cluster, "other"), "a")
				if diff := cmp.Diff(tc.want, seen(w)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A watch with a selector gets ADDED for an object that begins to match, and DELETED for an
// object that no longer matches.
func TestWatch_BeginningAndCeasingToMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, client, metav1.ListOptions{LabelSelector: "color=red"})
		create(t, client, "a", "blue")
		update(t, client, newObject("a", "red"))
		red := update(t, client, newObject("a", "red"))
		blue := update(t, client, newObject("a", "blue"))
		update(t, client, newObject("a", "blue"))
		remove(t, client, "a")

		events := take(w)
		var got []string
		for _, event := range events {
			got = append(got, textOf(event))
		}
		if diff := cmp.Diff([]string{"ADDED ns/a", "MODIFIED ns/a", "DELETED ns/a"}, got); diff != "" {
			t.Fatalf("events (-want +got):\n%s", diff)
		}
		// The last state that matched, at the version of the change that did not.
		want := red.DeepCopy()
		want.SetResourceVersion(blue.GetResourceVersion())
		if diff := cmp.Diff(want, events[2].Object.(*unstructured.Unstructured)); diff != "" {
			t.Errorf("deleted object (-want +got):\n%s", diff)
		}
	})
}

func TestWatch_ResumesFromAResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		client := in(cluster, "ns")
		create(t, client, "a", "")
		b := create(t, client, "b", "")
		create(t, cluster.Resource(blocks), "x", "") // versions of widgets have gaps
		create(t, client, "c", "")
		remove(t, client, "a")
		w := open(t, client, metav1.ListOptions{ResourceVersion: b.GetResourceVersion()})
		if diff := cmp.Diff([]string{"ADDED ns/c", "DELETED ns/a"}, seen(w)); diff != "" {
			t.Errorf("events since (-want +got):\n%s", diff)
		}
		create(t, client, "d", "")
		if diff := cmp.Diff([]string{"ADDED ns/d"}, seen(w)); diff != "" {
			t.Errorf("events from then on (-want +got):\n%s", diff)
		}
	})
}

func TestWatch_SyntheticAddedWithoutAResourceVersion(t *testing.T) {
	for _, version := range []string{"", "0"} {
		t.Run("resourceVersion="+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				client := in(cluster, "ns")
				create(t, client, "a", "red")
				create(t, client, "b", "blue")
				create(t, in(cluster, "other"), "c", "red")
				update(t, client, newObject("a", "red"))
				remove(t, client, "b")
				create(t, client, "b", "red")
				w := open(t, client, metav1.ListOptions{ResourceVersion: version, LabelSelector: "color=red"})
				// Each object once, and no bookmark, which was not requested.
				if diff := cmp.Diff([]string{"ADDED ns/a", "ADDED ns/b"}, seen(w)); diff != "" {
					t.Errorf("initial events (-want +got):\n%s", diff)
				}
				remove(t, client, "b")
				if diff := cmp.Diff([]string{"DELETED ns/b"}, seen(w)); diff != "" {
					t.Errorf("events from then on (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWatch_InvalidResourceVersionIsABadRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		if _, err := in(cluster, "").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "x"}); !apierrors.IsBadRequest(err) {
			t.Errorf("error = %v, want BadRequest", err)
		}
	})
}

func TestWatch_StopEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		w := open(t, in(cluster, ""), metav1.ListOptions{})
		create(t, in(cluster, "ns"), "unread", "") // its goroutine sends this event
		synctest.Wait()
		w.Stop()
		w.Stop()
		if diff := cmp.Diff([]string{"CLOSED"}, seen(w)); diff != "" {
			t.Errorf("after Stop (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
	})
}

func TestWatch_EndOfItsContextEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		ctx, cancel := context.WithCancel(t.Context())
		idle, err := in(cluster, "").Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if diff := cmp.Diff([]string{"CLOSED"}, seen(idle)); diff != "" {
			t.Errorf("after the end of the context (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
	})
}

// A watch without a reader delays neither the cluster nor other watches, and does not lose
// events.
func TestWatch_UnreadWatchDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		unread := openNow(t, client, metav1.ListOptions{})
		read := openNow(t, client, metav1.ListOptions{})
		want := []string{"ADDED ns/a", "ADDED ns/b", "ADDED ns/c"}
		for _, name := range []string{"a", "b", "c"} {
			create(t, client, name, "")
		}
		if diff := cmp.Diff(want, seen(read)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, seen(unread)); diff != "" {
			t.Errorf("events of the slow watch (-want +got):\n%s", diff)
		}
	})
}

func TestWatch_VersionsOfEventsIncrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		a := create(t, client, "a", "")
		w := open(t, client, metav1.ListOptions{ResourceVersion: a.GetResourceVersion()})
		updated := update(t, client, a)
		events := take(w)
		if len(events) != 1 {
			t.Fatalf("events: %v, want the update", events)
		}
		obj, err := meta.Accessor(events[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		// A watch from the version of an event does not repeat that event.
		if got, want := obj.GetResourceVersion(), updated.GetResourceVersion(); got != want {
			t.Fatalf("resourceVersion = %s, want %s", got, want)
		}
		if got := seen(open(t, client, metav1.ListOptions{ResourceVersion: obj.GetResourceVersion()})); got != nil {
			t.Errorf("events after the last one: %q", got)
		}
	})
}

func TestWatch_EndsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, client, metav1.ListOptions{TimeoutSeconds: new(int64(60))})
		time.Sleep(time.Minute - time.Nanosecond)
		create(t, client, "a", "")
		if diff := cmp.Diff([]string{"ADDED ns/a"}, seen(w)); diff != "" {
			t.Errorf("before the timeout (-want +got):\n%s", diff)
		}
		time.Sleep(time.Nanosecond)
		if diff := cmp.Diff([]string{"CLOSED"}, seen(w)); diff != "" {
			t.Errorf("after the timeout (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches: %d", got)
		}
	})
}

package fakecluster_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// watchList returns the options of a reflector's watch-list request.
func watchList(resourceVersion string) metav1.ListOptions {
	return metav1.ListOptions{
		ResourceVersion:      resourceVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
		SendInitialEvents:    new(true),
	}
}

func TestWatchList_InitialEventsEndWithABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, in(cluster, "ns"), "a", "red")
		create(t, in(cluster, "ns"), "b", "blue")
		create(t, in(cluster, "other"), "c", "red")
		create(t, in(cluster, "ns"), "d", "red")
		opts := watchList("")
		opts.LabelSelector = "color=red"
		w := open(t, in(cluster, "ns"), opts)
		want := []string{"ADDED ns/a", "ADDED ns/d", `BOOKMARK at 5, end of initial events: "true"`}
		if diff := cmp.Diff(want, seen(w)); diff != "" {
			t.Errorf("initial events (-want +got):\n%s", diff)
		}
		create(t, in(cluster, "ns"), "e", "red")
		remove(t, in(cluster, "ns"), "a")
		if diff := cmp.Diff([]string{"ADDED ns/e", "DELETED ns/a"}, seen(w)); diff != "" {
			t.Errorf("events from then on (-want +got):\n%s", diff)
		}
	})
}

func TestWatchList_BookmarkOfAnEmptyType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		version := create(t, cluster.Resource(blocks), "b", "").GetResourceVersion()
		events := take(open(t, in(cluster, ""), watchList("")))
		if len(events) != 1 {
			t.Fatalf("events: %v, want one", events)
		}
		if got, want := textOf(events[0]), "BOOKMARK at "+version+`, end of initial events: "true"`; got != want {
			t.Errorf("event = %s, want %s", got, want)
		}
		// A reflector ignores bookmarks with another kind.
		if got, want := events[0].Object.GetObjectKind().GroupVersionKind(), widgets.GroupVersion().WithKind("Widget"); got != want {
			t.Errorf("its kind = %v, want %v", got, want)
		}
	})
}

// The initial events are all objects, at a version that is not older than the requested one.
// The watch does not resume at that version.
func TestWatchList_SendsAllObjectsForAnyResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		a := create(t, in(cluster, "ns"), "a", "")
		create(t, in(cluster, "ns"), "b", "")
		cluster.Expire(widgets)
		w := open(t, in(cluster, "ns"), watchList(a.GetResourceVersion()))
		want := []string{"ADDED ns/a", "ADDED ns/b", `BOOKMARK at 3, end of initial events: "true"`}
		if diff := cmp.Diff(want, seen(w)); diff != "" {
			t.Errorf("initial events (-want +got):\n%s", diff)
		}
	})
}

func TestMuteInitialEventsEnd_OnlyTheBookmarkIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, in(cluster, "ns"), "a", "")
		cluster.MuteInitialEventsEnd()
		w := open(t, in(cluster, "ns"), watchList(""))
		if diff := cmp.Diff([]string{"ADDED ns/a"}, seen(w)); diff != "" {
			t.Errorf("initial events (-want +got):\n%s", diff)
		}
		create(t, in(cluster, "ns"), "b", "")
		if diff := cmp.Diff([]string{"ADDED ns/b"}, seen(w)); diff != "" {
			t.Errorf("events from then on (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want 1", got)
		}
	})
}

func TestSendInitialEventsFalse_ResumesAsOtherWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		a := create(t, in(cluster, "ns"), "a", "")
		create(t, in(cluster, "ns"), "b", "")
		opts := watchList(a.GetResourceVersion())
		opts.SendInitialEvents = new(false)
		w := open(t, in(cluster, "ns"), opts)
		if diff := cmp.Diff([]string{"ADDED ns/b"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

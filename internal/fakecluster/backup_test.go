package fakecluster_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestRestore_ObjectsAndVersionsAreThoseOfTheBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		kept := create(t, client, "kept", "red")
		create(t, client, "changed", "red")
		create(t, client, "deleted", "red")
		backup := cluster.Backup()
		before := list(t, client, metav1.ListOptions{})
		changed, err := client.Get(t.Context(), "changed", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changed.SetLabels(map[string]string{"color": "blue"})
		update(t, client, changed)
		remove(t, client, "deleted")
		later := create(t, client, "added", "red")
		watching := open(t, client, metav1.ListOptions{ResourceVersion: later.GetResourceVersion()})

		for range 2 {
			cluster.Restore(backup)
			if diff := cmp.Diff(before, list(t, client, metav1.ListOptions{})); diff != "" {
				t.Errorf("list (-before +after):\n%s", diff)
			}
			again := create(t, client, "another", "red")
			if got, want := again.GetResourceVersion(), changedVersion(before); got != want {
				t.Errorf("version of the next change = %s, want %s", got, want)
			}
		}
		synctest.Wait()
		if _, open := <-watching.ResultChan(); open {
			t.Error("a watch continues after the restore")
		}
		if _, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: kept.GetResourceVersion()}); err == nil {
			t.Error("a watch from before the backup is not expired")
		}
	})
}

// changedVersion returns the version of the first change after list.
func changedVersion(list *unstructured.UnstructuredList) string {
	version := []byte(list.GetResourceVersion())
	version[len(version)-1]++
	return string(version)
}

func TestRestore_WatchFromALaterVersionIsSilentUntilThatVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		backup := cluster.Backup()
		create(t, client, "a", "red")
		last := create(t, client, "b", "red")
		cluster.Restore(backup)
		watching := open(t, client, metav1.ListOptions{ResourceVersion: last.GetResourceVersion(), AllowWatchBookmarks: true})
		create(t, client, "c", "red")
		create(t, client, "d", "red")
		cluster.SendBookmarks(widgets)
		if got := seen(watching); len(got) > 0 {
			t.Errorf("events below the version of the watch: %v", got)
		}
		create(t, client, "e", "red")
		cluster.SendBookmarks(widgets)
		if got := seen(watching); len(got) != 2 {
			t.Errorf("events = %v, want the addition and a bookmark", got)
		}
		watching.Stop()
	})
}

func TestSendBookmarks_NeedsAChangeAndTheOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		version := list(t, client, metav1.ListOptions{}).GetResourceVersion()
		with := open(t, client, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		without := open(t, client, metav1.ListOptions{ResourceVersion: version})
		cluster.SendBookmarks(widgets)
		if got := append(seen(with), seen(without)...); len(got) > 0 {
			t.Errorf("bookmarks without a change: %v", got)
		}
		create(t, client, "a", "red")
		seen(with)
		seen(without)
		cluster.SendBookmarks(widgets)
		if got := seen(with); len(got) != 1 {
			t.Errorf("bookmarks = %v, want one", got)
		}
		if got := seen(without); len(got) > 0 {
			t.Errorf("bookmarks without the option: %v", got)
		}
		with.Stop()
		without.Stop()
	})
}

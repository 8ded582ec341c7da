package fakecluster_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// overwrite changes fields at several depths of obj.
func overwrite(t *testing.T, obj any) {
	t.Helper()
	content := obj.(*unstructured.Unstructured).Object
	content["spec"].(map[string]any)["list"].([]any)[0] = "spoiled"
}

// newDeep returns the object a, with fields to overwrite.
func newDeep() *unstructured.Unstructured {
	obj := newObject("a", "")
	obj.Object["spec"] = map[string]any{"list": []any{"good"}}
	return obj
}

// checkGood checks that the object in the cluster was not changed.
func checkGood(t *testing.T, cluster *fakecluster.Cluster, after string) {
	t.Helper()
	obj, err := in(cluster, "ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(newDeep().Object["spec"], obj.Object["spec"]); diff != "" {
		t.Errorf("the cluster's object after a write to %s (-want +got):\n%s", after, diff)
	}
}

func TestCopies_ArgumentsAndResultsAreNotShared(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	client := in(cluster, "ns")
	ctx := t.Context()

	sent := newDeep()
	created, err := client.Create(ctx, sent, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, sent)
	checkGood(t, cluster, "what was given to create")
	overwrite(t, created)
	checkGood(t, cluster, "what create returned")

	sent = newDeep()
	updated := update(t, client, sent)
	overwrite(t, sent)
	checkGood(t, cluster, "what was given to update")
	overwrite(t, updated)
	checkGood(t, cluster, "what update returned")

	got, err := client.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, got)
	checkGood(t, cluster, "what get returned")

	overwrite(t, &list(t, client, metav1.ListOptions{}).Items[0])
	checkGood(t, cluster, "what list returned")
}

func TestCopies_WatchesDoNotShareObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		if _, err := client.Create(t.Context(), newDeep(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		first := open(t, client, watchList(""))
		second := open(t, client, metav1.ListOptions{})
		overwrite(t, take(first)[0].Object)
		checkGood(t, cluster, "an initial event")
		take(second)

		update(t, client, newDeep())
		remove(t, client, "a")
		for _, event := range take(first) { // MODIFIED and DELETED
			overwrite(t, event.Object)
		}
		for _, event := range take(second) {
			obj := event.Object.(*unstructured.Unstructured)
			if diff := cmp.Diff(newDeep().Object["spec"], obj.Object["spec"]); diff != "" {
				t.Errorf("%s event after a write to that of another watch (-want +got):\n%s", event.Type, diff)
			}
		}
	})
}

// A watch that resumes gets the events of the past without the changes of callers.
func TestCopies_HistoryIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		client := in(cluster, "ns")
		w := openNow(t, client, metav1.ListOptions{})
		created, err := client.Create(t.Context(), newDeep(), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := created.DeepCopy()
		overwrite(t, created)
		overwrite(t, take(w)[0].Object)
		events := take(open(t, client, metav1.ListOptions{ResourceVersion: "1"}))
		if len(events) != 1 {
			t.Fatalf("events: %v, want one", events)
		}
		if diff := cmp.Diff(want, events[0].Object.(*unstructured.Unstructured)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	})
}

package fakecluster_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestCreate_SetsTheFieldsOfTheServer(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	sent := newObject("a", "red")
	created, err := in(cluster, "ns").Create(t.Context(), sent, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := created.GroupVersionKind(), widgets.GroupVersion().WithKind("Widget"); got != want {
		t.Errorf("kind = %v, want %v", got, want)
	}
	if got := created.GetNamespace() + "/" + created.GetName(); got != "ns/a" {
		t.Errorf("key = %s, want ns/a", got)
	}
	if created.GetUID() == "" || created.GetResourceVersion() == "" {
		t.Errorf("uid = %q, resourceVersion = %q: want both", created.GetUID(), created.GetResourceVersion())
	}
	if diff := cmp.Diff(map[string]string{"color": "red"}, created.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(newObject("a", "red"), sent); diff != "" {
		t.Errorf("the caller's object was changed (-want +got):\n%s", diff)
	}
}

func TestCreate_GetReturnsTheSame(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	created := create(t, in(cluster, "ns"), "a", "red")
	got, err := in(cluster, "ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, got); diff != "" {
		t.Errorf("get after create (-want +got):\n%s", diff)
	}
}

func TestCreate_SecondObjectWithANameIsRejected(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	create(t, in(cluster, "ns"), "a", "red")
	_, err := in(cluster, "ns").Create(t.Context(), newObject("a", "blue"), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("error = %v, want AlreadyExists", err)
	}
	got, err := in(cluster, "ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.GetLabels()["color"] != "red" {
		t.Errorf("afterwards: %v, %v; want the first object", got, err)
	}
}

func TestCreate_NameIsFreeInAnotherNamespace(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	create(t, in(cluster, "ns"), "a", "")
	create(t, in(cluster, "other"), "a", "")
	if diff := cmp.Diff([]string{"ns/a", "other/a"}, keys(list(t, in(cluster, ""), metav1.ListOptions{}))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// Each change has a greater resourceVersion than earlier changes, so that watches can resume.
func TestObjects_ResourceVersionsIncrease(t *testing.T) {
	cluster := fakecluster.New(widgetType, blockType)
	client := in(cluster, "ns")
	var got []int
	note := func(version string) {
		t.Helper()
		v, err := strconv.Atoi(version)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	note(list(t, client, metav1.ListOptions{}).GetResourceVersion())
	a := create(t, client, "a", "")
	note(a.GetResourceVersion())
	note(create(t, cluster.Resource(blocks), "b", "").GetResourceVersion())
	note(update(t, client, a).GetResourceVersion())
	remove(t, client, "a")
	note(list(t, client, metav1.ListOptions{}).GetResourceVersion())
	for i := 1; i < len(got); i++ {
		if got[i] <= got[i-1] {
			t.Fatalf("resourceVersions %v do not increase", got)
		}
	}
}

func TestUpdate_ReplacesTheObjectAndKeepsItsIdentity(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	created := create(t, in(cluster, "ns"), "a", "red")
	updated := update(t, in(cluster, "ns"), newObject("a", "blue")) // without a resourceVersion: unconditionally
	if got := updated.GetLabels()["color"]; got != "blue" {
		t.Errorf("color = %q, want blue", got)
	}
	if updated.GetUID() != created.GetUID() || updated.GetNamespace() != "ns" || updated.GetKind() != "Widget" {
		t.Errorf("updated object %v is not the created one %v", updated, created)
	}
	got, err := in(cluster, "ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(updated, got); diff != "" {
		t.Errorf("get after update (-want +got):\n%s", diff)
	}
}

func TestUpdate_StaleIsAConflict(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	client := in(cluster, "ns")
	stale := create(t, client, "a", "red")
	fresh := update(t, client, stale)
	stale.SetLabels(map[string]string{"color": "blue"})
	if _, err := client.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update with an old resourceVersion: %v, want a conflict", err)
	}
	got, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fresh, got); diff != "" {
		t.Errorf("the rejected update changed the object (-want +got):\n%s", diff)
	}
}

func TestObjects_AbsentIsNotFound(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	create(t, in(cluster, "other"), "a", "")
	client := in(cluster, "ns")
	_, getErr := client.Get(t.Context(), "a", metav1.GetOptions{})
	_, updateErr := client.Update(t.Context(), newObject("a", ""), metav1.UpdateOptions{})
	for verb, err := range map[string]error{
		"get":    getErr,
		"update": updateErr,
		"delete": client.Delete(t.Context(), "a", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s in a namespace without it: %v, want NotFound", verb, err)
		}
	}
	if diff := cmp.Diff([]string{"other/a"}, keys(list(t, in(cluster, ""), metav1.ListOptions{}))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestDelete_NameCanBeTakenByAnotherObject(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	client := in(cluster, "ns")
	first := create(t, client, "a", "")
	remove(t, client, "a")
	if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v, want NotFound", err)
	}
	if second := create(t, client, "a", ""); second.GetUID() == first.GetUID() {
		t.Error("two objects have one UID")
	}
}

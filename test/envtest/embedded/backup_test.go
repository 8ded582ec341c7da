package embedded_test

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// uids returns the UIDs of all CRDs and widgets of server, by name. It lists them at
// resourceVersion: "0" is the state of the watch caches.
func uids(t *testing.T, server *embedded.Server, resourceVersion string) map[string]string {
	t.Helper()
	at := metav1.ListOptions{ResourceVersion: resourceVersion}
	list, err := client(t, server.Config()).List(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	crds, err := definitions(t, server.Config()).List(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for _, obj := range append(list.Items, crds.Items...) {
		uids[obj.GetName()] = string(obj.GetUID())
	}
	return uids
}

func backUp(t *testing.T, server *embedded.Server) *embedded.Backup {
	t.Helper()
	backup, err := server.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return backup
}

func TestServer_RestoreKeepsUIDs(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	widgets := client(t, server.Config()).Namespace("ns")
	create(t, widgets, "a", "b")
	want, backup := uids(t, server, ""), backUp(t, server)
	for range 2 {
		if err := server.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := server.Restore(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		if got := uids(t, server, "0"); !maps.Equal(got, want) {
			t.Errorf("UIDs after Restore: %v, want %v", got, want)
		}
		create(t, widgets, "c") // without the delay for a new CRD
	}

	another := start(t)
	if err := another.Restore(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if got := uids(t, another, "0"); !maps.Equal(got, want) {
		t.Errorf("UIDs on another server: %v, want %v", got, want)
	}
}

func TestServer_RestoreKeepsOtherObjectsAndWatches(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	widgets := client(t, server.Config()).Namespace("ns")
	create(t, widgets, "a", "b")
	want, backup := uids(t, server, ""), backUp(t, server)
	if err := server.ResetObjects(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, widgets, "b", "c") // this b has another UID
	w, err := widgets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, widgets)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	if err := server.Restore(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	got := uids(t, server, "0")
	if got["c"] == "" {
		t.Error("Restore has deleted an object that the backup does not have")
	}
	if delete(got, "c"); !maps.Equal(got, want) {
		t.Errorf("UIDs: %v, want %v", got, want)
	}
	wantNames(t, "a watch", w, watch.Added, "a")
	wantNames(t, "a watch", w, watch.Modified, "b")
}

func TestServer_RestoreWithoutABackupIsAnError(t *testing.T) {
	server := start(t)
	for name, backup := range map[string]*embedded.Backup{"nil": nil, "the zero value": {}} {
		if err := server.Restore(t.Context(), backup); err == nil || !strings.HasPrefix(err.Error(), "embedded: restore: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

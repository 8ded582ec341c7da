package fakecluster_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestList_SelectorsAndNamespace(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	// The objects are not in the order of their keys.
	create(t, in(cluster, "other"), "a", "red")
	create(t, in(cluster, "ns"), "c", "red")
	create(t, in(cluster, "ns"), "b", "blue")
	create(t, in(cluster, "ns"), "a", "")
	for _, tc := range []struct {
		name, namespace string
		opts            metav1.ListOptions
		want            []string
	}{
		{"all, sorted", "", metav1.ListOptions{}, []string{"ns/a", "ns/b", "ns/c", "other/a"}},
		{"namespace", "ns", metav1.ListOptions{}, []string{"ns/a", "ns/b", "ns/c"}},
		{"empty namespace", "nothing-here", metav1.ListOptions{}, nil},
		{"label", "", metav1.ListOptions{LabelSelector: "color=red"}, []string{"ns/c", "other/a"}},
		{"label set", "", metav1.ListOptions{LabelSelector: "color in (red,blue)"}, []string{"ns/b", "ns/c", "other/a"}},
		{"no label", "", metav1.ListOptions{LabelSelector: "!color"}, []string{"ns/a"}},
		{"name", "", metav1.ListOptions{FieldSelector: "metadata.name=a"}, []string{"ns/a", "other/a"}},
		{"namespace as a field", "", metav1.ListOptions{FieldSelector: "metadata.namespace!=ns"}, []string{"other/a"}},
		{"all of them", "ns", metav1.ListOptions{LabelSelector: "color", FieldSelector: "metadata.name!=b"}, []string{"ns/c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, keys(list(t, in(cluster, tc.namespace), tc.opts))); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestList_HasKindAndResourceVersion(t *testing.T) {
	cluster := fakecluster.New(widgetType, blockType)
	create(t, in(cluster, "ns"), "a", "")
	other := create(t, cluster.Resource(blocks), "b", "")
	got := list(t, in(cluster, ""), metav1.ListOptions{})
	if got, want := got.GroupVersionKind(), widgets.GroupVersion().WithKind("WidgetList"); got != want {
		t.Errorf("kind = %v, want %v", got, want)
	}
	// It is the version of the whole cluster, including changes of other types.
	if got, want := got.GetResourceVersion(), other.GetResourceVersion(); got != want {
		t.Errorf("resourceVersion = %s, want %s", got, want)
	}
}

func TestList_ClusterScoped(t *testing.T) {
	cluster := fakecluster.New(widgetType, blockType)
	create(t, in(cluster, "ns"), "a", "")
	create(t, cluster.Resource(blocks), "b", "")
	if diff := cmp.Diff([]string{"/b"}, keys(list(t, cluster.Resource(blocks), metav1.ListOptions{}))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestSelectors_InvalidIsABadRequest(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	for name, opts := range map[string]metav1.ListOptions{
		"label": {LabelSelector: "color in red"},
		"field": {FieldSelector: "metadata.name"},
		// By default, only two fields of custom resources are selectable.
		"field that is not selectable": {FieldSelector: "spec.nodeName=x"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := in(cluster, "").List(t.Context(), opts); !apierrors.IsBadRequest(err) {
				t.Errorf("list: %v, want BadRequest", err)
			}
			w, err := in(cluster, "").Watch(t.Context(), opts)
			if !apierrors.IsBadRequest(err) {
				t.Errorf("watch: %v, want BadRequest", err)
			}
			if w != nil {
				w.Stop()
			}
			if got := cluster.OpenWatches(widgets); got != 0 {
				t.Errorf("open watches = %d, want 0", got)
			}
		})
	}
}

// Each page has the next objects. The number of remaining objects is known unless there is a selector.
func TestList_Pages(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		create(t, in(cluster, "ns"), name, "red")
	}
	for _, selector := range []string{"", "color=red"} {
		opts := metav1.ListOptions{Limit: 2, LabelSelector: selector}
		var pages [][]string
		var remaining []int64
		version := ""
		for {
			page := list(t, in(cluster, ""), opts)
			pages = append(pages, keys(page))
			if n := page.GetRemainingItemCount(); n != nil {
				remaining = append(remaining, *n)
			}
			if version == "" {
				version = page.GetResourceVersion()
			} else if version != page.GetResourceVersion() {
				t.Errorf("versions %s and %s", version, page.GetResourceVersion())
			}
			if opts.Continue = page.GetContinue(); opts.Continue == "" {
				break
			}
			create(t, in(cluster, "ns"), fmt.Sprint("0", len(selector), len(pages)), "red") // not in a later page
		}
		if diff := cmp.Diff([]string{"ns/a", "ns/b"}, pages[0]); selector == "" && diff != "" {
			t.Errorf("first page (-want +got):\n%s", diff)
		}
		if want := map[string][]int64{"": {3, 1}}[selector]; !cmp.Equal(want, remaining) {
			t.Errorf("selector %q: remaining %v, want %v", selector, remaining, want)
		}
		seen := map[string]bool{}
		for _, page := range pages {
			for _, key := range page {
				if seen[key] {
					t.Errorf("%s is in two pages", key)
				}
				seen[key] = true
			}
		}
		for _, key := range []string{"ns/a", "ns/b", "ns/c", "ns/d", "ns/e"} {
			if !seen[key] {
				t.Errorf("%s is in no page", key)
			}
		}
	}
}

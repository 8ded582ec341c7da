package dynamicinformer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// An explanation of a reason about objects has their number and the key of the last one.
func TestExplanation_TellsOfFailedObjects(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	now := time.Now()
	s := ResourceStatus{
		GVR: gvr, State: StateDegraded, Reason: "TransformFailed", FailedObjects: 2, LastFailed: "ns/a", Err: errors.New("no spec"),
		Since: now.Add(-4 * time.Second), Pinned: true, Objects: 5, ResourceVersion: "7",
		Resource: discovery.Resource{GVR: gvr, GVK: gvr.GroupVersion().WithKind("Widget"), Namespaced: true}, Traffic: Traffic{Lists: 1},
	}
	e := Explanation{GVR: gvr, At: now, Informers: []ResourceStatus{s}, Discovery: &discovery.Status{Running: true}}
	e.Chain = e.tell()
	want := []string{
		"widgets.v1.example.com is requested by ForResource. State: Degraded (TransformFailed).",
		"It is served as widgets.v1.example.com, kind Widget, namespaced.",
		"Requests in all namespaces: 1 list and 0 watches have succeeded.",
		"The cache has 5 objects at resourceVersion 7. TransformFailed: 2 objects failed, the last one is ns/a: no spec.",
		"To do: correct the function that failed, or the object.",
	}
	if diff := cmp.Diff(want, strings.Split(e.String(), "\n")); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	i := pageInformer(&s)
	if i.Message != "2 objects failed, the last one is ns/a: no spec" || i.Advice == "" || i.FailedObjects != 2 || i.LastFailed != "ns/a" {
		t.Errorf("on the page: %+v", i)
	}
}

// A server without APIServices is as it should be; one that does not let them be read is not.
func TestExplanation_NamesSourcesThatFail(t *testing.T) {
	of := func(state discovery.SourceState) string {
		failed := discovery.SourceStatus{State: state, Err: errors.New("not you")}
		e := Explanation{At: time.Now(), Informers: []ResourceStatus{{State: StateSynced}}, Discovery: &discovery.Status{Running: true, APIServices: failed}}
		e.Chain = e.tell()
		return e.String()
	}
	const says = " APIServices can't be read: Forbidden (not you)."
	if text := of(discovery.SourceForbidden); !strings.Contains(text, says) {
		t.Errorf("forbidden: %s", text)
	}
	if text := of(discovery.SourceAbsent); strings.Contains(text, "APIServices") {
		t.Errorf("absent: %s", text)
	}
}

package status_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

var gvr = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// An explanation of a reason about objects has their number and the key of the last one.
func TestExplanation_DescribesFailedObjects(t *testing.T) {
	now := time.Now()
	i := status.Informer{
		GVR: gvr, State: status.StateDegraded, Reason: "TransformFailed", FailedObjects: 2, LastFailed: "ns/a", Err: errors.New("no spec"),
		Since: now.Add(-4 * time.Second), Pinned: true, Objects: 5, ResourceVersion: "7",
		Resource: discovery.Resource{GVR: gvr, GVK: gvr.GroupVersion().WithKind("Widget"), Namespaced: true}, Traffic: status.Traffic{Lists: 1},
	}
	e := status.NewExplanation(gvr, now, []status.Informer{i}, nil, &discovery.Status{Running: true})
	want := []string{
		"widgets.v1.example.com is requested by ForResource. State: Degraded (TransformFailed) for 4s.",
		"It is served as widgets.v1.example.com, kind Widget, namespaced.",
		"Requests in all namespaces: 1 list and 0 watches have succeeded.",
		"The cache has 5 objects at resourceVersion 7. TransformFailed: 2 objects failed, the last one is ns/a: no spec.",
		"To do: correct the function that failed, or the object.",
	}
	if diff := cmp.Diff(want, strings.Split(e.String(), "\n")); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	if i.Message() != "2 objects failed, the last one is ns/a: no spec" || i.Advice() == "" {
		t.Errorf("message %q, advice %q", i.Message(), i.Advice())
	}
}

func TestExplanation_DescribesHandlers(t *testing.T) {
	now := time.Now()
	i := status.Informer{GVR: gvr, State: status.StateSynced, Handlers: []status.Handler{{
		Handler: "example.com/x.viewer", Lease: "gc", Delivered: 1234, Merged: 2000, Backlog: 3,
		Panics: 2, LastPanic: "nil map", Reason: status.ReasonHandlerPanicked, FailedObjects: 1, LastFailed: "ns/a",
	}}}
	e := status.NewExplanation(gvr, now, []status.Informer{i}, nil, nil)
	got := e.Chain[len(e.Chain)-2:]
	want := []status.Step{
		{About: status.StepHandlers, Text: `Handler example.com/x.viewer of lease "gc": 1,234 calls finished (2 panics, the last one: nil map), 3 events waiting, 2,000 events merged with later events.`},
		{About: status.StepNext, Text: "To do: correct handler example.com/x.viewer, which has panicked for ns/a; the log has the stack."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
}

// A server without APIServices is as it should be; one that does not let them be read is not.
func TestExplanation_NamesSourcesThatFail(t *testing.T) {
	of := func(state discovery.SourceState) string {
		failed := discovery.SourceStatus{State: state, Err: errors.New("not you")}
		informers := []status.Informer{{State: status.StateSynced}}
		return status.NewExplanation(gvr, time.Now(), informers, nil, &discovery.Status{Running: true, APIServices: failed}).String()
	}
	const says = " APIServices can't be read: Forbidden (not you)."
	if text := of(discovery.SourceForbidden); !strings.Contains(text, says) {
		t.Errorf("forbidden: %s", text)
	}
	if text := of(discovery.SourceAbsent); strings.Contains(text, "APIServices") {
		t.Errorf("absent: %s", text)
	}
}

// An explanation names the first objects that are left out, also while requests fail.
func TestExplanation_NamesObjectsThatAreLeftOut(t *testing.T) {
	now := time.Now()
	i := status.Informer{GVR: gvr, State: status.StateDegraded, Reason: status.ReasonForbidden, Verb: "watch", Err: errors.New("not you"), Objects: 5, Traffic: status.Traffic{Lists: 1}}
	i.Quarantine.Counts = map[status.Reason]uint64{status.ReasonDecodeFailed: 1200, status.ReasonIndexFailed: 1}
	i.Quarantine.Objects = []status.QuarantinedObject{{Key: "ns/a", Reason: status.ReasonIndexFailed, Index: "by-owner", Err: errors.New("no owner"), Since: now.Add(-time.Minute)}}
	for range 9 {
		i.Quarantine.Objects = append(i.Quarantine.Objects, status.QuarantinedObject{Key: "ns/b", Reason: status.ReasonDecodeFailed, Err: errors.New("no number"), Since: now.Add(-4 * time.Second)})
	}
	text := status.NewExplanation(gvr, now, []status.Informer{i}, nil, nil).String()
	want := "The cache has 5 objects. ns/a has been left out of index \"by-owner\" for 60s (IndexFailed): no owner." +
		strings.Repeat(" ns/b has been left out for 4s (DecodeFailed): no number.", 4) +
		" 1,196 objects more are left out (DecodeFailed 1200 and IndexFailed 1 in all)."
	if !strings.Contains(text, want) {
		t.Errorf("explanation:\n%s\nwant in it:\n%s", text, want)
	}
	if got := i.Quarantine.Count(); got != 1201 {
		t.Errorf("%d objects", got)
	}
}

// An answer is not a failure of discovery: "not served" is one.
func TestExplanation_TellsAnswersOfDiscoveryFromFailures(t *testing.T) {
	ref := discovery.RefOf(gvr)
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&discovery.NotServedError{Ref: ref}, "Discovery has answered for 4s: widgets.v1.example.com: not served by the API server; is its CustomResourceDefinition installed?"},
		{&discovery.InconclusiveError{Ref: ref, Err: errors.New("no route")}, "Discovery has failed for 4s: widgets.v1.example.com: discovery can't tell whether it is served"},
	} {
		now := time.Now()
		i := status.Informer{GVR: gvr, State: status.StateNotServed, Reason: status.ReasonNotFound, Err: tc.err, Since: now.Add(-4 * time.Second)}
		got := status.NewExplanation(gvr, now, []status.Informer{i}, nil, &discovery.Status{Running: true}).String()
		if !strings.Contains(got, tc.want) {
			t.Errorf("explanation:\n%s\nwant in it:\n%s", got, tc.want)
		}
	}
}

func TestExplanation_HasTheShard(t *testing.T) {
	shard := &status.Shard{Member: "widgets-1", Awaited: 64, Pending: "0-63", Owners: []string{"widgets-0"}}
	i := status.Informer{GVR: gvr, State: status.StateStarting, Since: time.Now(), Shard: shard}
	e := status.NewExplanation(gvr, time.Now(), []status.Informer{i}, nil, nil)
	if want := "The informer has a part of the objects: widgets-1: no slots; waits for 0-63, of widgets-0."; !strings.Contains(e.String(), want) {
		t.Errorf("got %s, want %s", e, want)
	}
}

// The type was missing, and is served again: the evidence is not the reason of a later failure.
func TestInformer_MessageOfAFailureAfterTheTypeWasMissing(t *testing.T) {
	evidence := discovery.Evidence{Kind: discovery.NotListed}
	failed := status.Informer{State: status.StateDegraded, Reason: status.ReasonForbidden, Verb: "list", Err: errors.New("not you"), Evidence: evidence}
	if text := failed.Message(); !strings.Contains(text, "not you") {
		t.Errorf("of a failed list: %q", text)
	}
	synced := status.Informer{State: status.StateSynced, Evidence: evidence}
	if text := synced.Message(); text != "" {
		t.Errorf("of an informer that has synced: %q", text)
	}
	gone := status.Informer{State: status.StateNotServed, Reason: status.ReasonNotFound, Verb: "list", Evidence: evidence}
	if text := gone.Message(); text != gone.EvidenceText() {
		t.Errorf("of a type that is gone: %q", text)
	}
}

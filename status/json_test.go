package status_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// checkJSON compares the JSON of value with the text of want, whatever the order of keys is.
func checkJSON(t *testing.T, value any, want string) {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := errors.Join(json.Unmarshal(body, &got), json.Unmarshal([]byte(want), &wanted)); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", body, diff)
	}
}

// The keys are a contract; those without a value are left out unless zero says something.
func TestInformer_JSONIsStable(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	checkJSON(t, status.Informer{
		GVR: gvr, VersionPolicy: discovery.FollowPreferred(), ID: 7,
		Resource: discovery.Resource{GVR: gvr, GVK: gvr.GroupVersion().WithKind("Widget"), Namespaced: true, Backing: discovery.BackingCRD, CRDUID: "u", Terminating: true},
		State:    status.StateDegraded, Reason: status.ReasonForbidden, Namespace: "ns", Verb: "list", Err: errors.New("not you"), Listed: true,
		Since: at, Attempts: 1, NextRetry: at, FailedObjects: 9, LastFailed: "ns/a", StaleSince: at,
		Quarantine: status.Quarantine{
			Objects: []status.QuarantinedObject{
				{Key: "ns/a", UID: "u", Reason: status.ReasonIndexFailed, Index: "by-owner", Err: errors.New("no owner"), Since: at},
				{Key: "ns/b", Reason: status.ReasonDecodeFailed, Since: at},
			},
			Counts: map[status.Reason]uint64{status.ReasonIndexFailed: 8, status.ReasonDecodeFailed: 1}, Since: at,
		},
		Evidence: discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: "u", At: at}, Generation: 2, Flushing: true, Objects: 3, CacheBytes: 6, ResourceVersion: "4",
		Traffic: status.Traffic{Lists: 1, Watches: 2, Failures: map[status.Reason]uint64{"Forbidden": 3}, Bytes: 4, Events: 5, LastEvent: at},
		Pinned:  true, Leases: 1, Owners: []status.Owner{{Name: "gc", Leases: 1, Since: at}}, MoreOwners: 5,
		Handlers: []status.Handler{{
			Handler: "T", Lease: "gc", Delivered: 6, Merged: 8, Backlog: 7, RunningSince: at, BehindSince: at,
			Panics: 9, LastPanic: "nil map", Reason: status.ReasonHandlerPanicked, FailedObjects: 10, LastFailed: "ns/b",
		}}, MoreHandlers: 6, MoreNamespaces: status.NamespaceCounts{All: 4, Failing: 3, Syncing: 2, Terminating: 1},
	}, `{"name": "widgets.v1.example.com", "group": "example.com", "version": "v1", "resource": "widgets", "versionPolicy": "FollowPreferred", "id": 7,
		"served": {"name": "widgets.v1.example.com", "kind": "Widget", "namespaced": true, "backing": "CustomResourceDefinition", "crdUID": "u", "terminating": true},
		"state": "Degraded", "reason": "Forbidden", "message": "its CustomResourceDefinition (UID u) was deleted",
		"advice": "grant this rule to the user in a Role of namespace \"ns\": - {apiGroups: [\"example.com\"], resources: [\"widgets\"], verbs: [\"list\", \"watch\"]}",
		"namespace": "ns", "verb": "list", "error": "not you", "listed": true,
		"since": "2000-01-01T00:00:00Z", "attempts": 1, "nextRetry": "2000-01-01T00:00:00Z", "failedObjects": 9, "lastFailed": "ns/a",
		"quarantine": {"objects": [{"key": "ns/a", "uid": "u", "reason": "IndexFailed", "index": "by-owner", "error": "no owner", "since": "2000-01-01T00:00:00Z"},
			{"key": "ns/b", "reason": "DecodeFailed", "since": "2000-01-01T00:00:00Z"}], "counts": {"IndexFailed": 8, "DecodeFailed": 1}, "since": "2000-01-01T00:00:00Z"}, "staleSince": "2000-01-01T00:00:00Z",
		"evidence": {"kind": "CRDDeleted", "crdUID": "u", "at": "2000-01-01T00:00:00Z"}, "generation": 2, "flushing": true, "objects": 3, "cacheBytes": 6, "resourceVersion": "4",
		"traffic": {"lists": 1, "watches": 2, "failures": {"Forbidden": 3}, "bytes": 4, "events": 5, "lastEvent": "2000-01-01T00:00:00Z"},
		"pinned": true, "leases": 1, "owners": [{"name": "gc", "leases": 1, "since": "2000-01-01T00:00:00Z"}], "moreOwners": 5,
		"handlers": [{"handler": "T", "lease": "gc", "delivered": 6, "merged": 8, "backlog": 7, "runningSince": "2000-01-01T00:00:00Z", "behindSince": "2000-01-01T00:00:00Z",
			"panics": 9, "lastPanic": "nil map", "reason": "HandlerPanicked", "failedObjects": 10, "lastFailed": "ns/b"}], "moreHandlers": 6,
		"moreNamespaces": {"all": 4, "failing": 3, "syncing": 2, "terminating": 1}}`)
	checkJSON(t, &status.Informer{GVR: gvr, State: status.StateSynced}, `{"name": "widgets.v1.example.com", "group": "example.com", "version": "v1", "resource": "widgets",
		"id": 0, "state": "Synced", "listed": false, "generation": 0, "objects": 0, "traffic": {"lists": 0, "watches": 0, "bytes": 0, "events": 0}, "leases": 0}`)
}

func TestFollow_JSONIsStable(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	checkJSON(t, status.Follow{Name: "follow", Names: []string{"wd"}, Types: 2, Waiting: 3, Undecided: []status.Undecided{
		{Resource: discovery.Resource{GVR: gvr}, Err: errors.New("two"), Since: at, Followed: true},
		{Resource: discovery.Resource{GVR: gvr}, Since: at},
	}}, `{"name": "follow", "names": ["wd"], "types": 2, "waiting": 3, "undecided": [
		{"name": "`+discovery.RefOf(gvr).String()+`", "error": "two", "since": "2000-01-01T00:00:00Z", "followed": true},
		{"name": "`+discovery.RefOf(gvr).String()+`", "since": "2000-01-01T00:00:00Z", "followed": false}
	]}`)
	checkJSON(t, status.Follow{}, `{"name": "", "types": 0, "waiting": 0}`)
}

func TestExplanation_JSONIsStable(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	v2 := gvr.GroupResource().WithVersion("v2")
	d := discovery.Status{Running: true, Types: 1, Requests: 2, Answers: discovery.Answers{Served: 3, NotServed: 4, Inconclusive: 5, Ambiguous: 6}}
	d.CRDs = discovery.SourceStatus{State: discovery.SourceForbidden, Since: at, Verb: "list", Err: errors.New("not you")}
	checkJSON(t, status.NewExplanation(gvr, at, nil, []schema.GroupVersionResource{v2}, &d), `{"name": "widgets.v1.example.com", "at": "2000-01-01T00:00:00Z",
		"informers": [], "elsewhere": ["widgets.v2.example.com"],
		"discovery": {"running": true, "types": 1, "requests": 2, "answers": {"served": 3, "notServed": 4, "inconclusive": 5, "ambiguous": 6}, "sources": [
			{"name": "CustomResourceDefinitions", "state": "Forbidden", "since": "2000-01-01T00:00:00Z", "verb": "list", "error": "not you"},
			{"name": "APIServices", "state": ""}, {"name": "Discovery documents", "state": ""}]},
		"chain": [{"about": "Wanted", "text": "There is no informer on widgets.v1.example.com. There is one on widgets.v2.example.com."}]}`)
	e := status.NewExplanation(gvr, at, []status.Informer{{GVR: gvr, State: status.StateStopped}}, []schema.GroupVersionResource{v2}, nil)
	e.Chain, e.MoreInformers = nil, 3
	checkJSON(t, e, `{"name": "widgets.v1.example.com", "at": "2000-01-01T00:00:00Z", "moreInformers": 3, "chain": null, "informers": [
		{"name": "widgets.v1.example.com", "group": "example.com", "version": "v1", "resource": "widgets",
		"id": 0, "state": "Stopped", "listed": false, "generation": 0, "objects": 0, "traffic": {"lists": 0, "watches": 0, "bytes": 0, "events": 0}, "leases": 0}]}`)
}

package status_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// A program may print a status, such as one of Lease.Watch.
func TestInformer_StringIsOneLineForPeople(t *testing.T) {
	crd := discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: "1"}
	terminating := discovery.Resource{GVR: gvr, GVK: gvr.GroupVersion().WithKind("Widget"), Terminating: true}
	for _, tc := range []struct {
		i    status.Informer
		want string
	}{
		{status.Informer{State: status.StateSynced, Since: time.Now(), Objects: 3}, "widgets.v1.example.com: Synced"},
		{
			status.Informer{State: status.StateUnknown, Reason: status.ReasonNotStarted},
			"widgets.v1.example.com: Unknown (NotStarted): the factory has not been started; call Start on the factory",
		},
		{
			status.Informer{State: status.StateNotServed, Reason: status.ReasonNotFound, Evidence: crd},
			"widgets.v1.example.com: NotServed (NotFound): its CustomResourceDefinition (UID 1) was deleted",
		},
		{
			status.Informer{State: status.StateNotServed, Reason: status.ReasonNotFound, Resource: terminating, Evidence: crd},
			"widgets.v1.example.com: NotServed (NotFound): its CustomResourceDefinition (UID 1) was deleted",
		},
		{
			status.Informer{State: status.StateNotServed, Reason: status.ReasonNotFound, Resource: terminating, Evidence: discovery.Evidence{Kind: discovery.NotListed}},
			"widgets.v1.example.com (its CRD is being deleted): NotServed (NotFound): discovery no longer lists it",
		},
		{
			status.Informer{State: status.StateDegraded, Reason: status.ReasonUnavailable, Namespace: "ns", Verb: "list", Err: errors.New("no"), Attempts: 2},
			`widgets.v1.example.com (namespace ns): Degraded (Unavailable): cannot list in namespace "ns": no; check that the API server is reachable and healthy`,
		},
		{status.Informer{State: status.StateStopped, Reason: status.ReasonStopped}, "widgets.v1.example.com: Stopped"},
	} {
		tc.i.GVR = gvr
		if got := fmt.Sprint(tc.i); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestInformer_AdviceOnObjectsThatCanNotBeDecodedIsAboutTheObjects(t *testing.T) {
	i := status.Informer{GVR: gvr, State: status.StateDegraded, Reason: status.ReasonDecodeFailed, FailedObjects: 1, LastFailed: "ns/a", Err: errors.New("no number")}
	if got := i.Advice(); !strings.Contains(got, "correct the object") {
		t.Errorf("advice: %q", got)
	}
}

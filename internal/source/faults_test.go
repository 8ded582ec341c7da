package source_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

// The errors for which a reflector retries a watch-list without a check of its context, as a
// server or the network reports them.
var faults = map[string]error{
	"too many requests":                 apierrors.NewTooManyRequests("slowly, please", 1),
	"connection refused":                &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
	"expired":                           apierrors.NewResourceExpired("too old resource version"),
	"gone":                              &apierrors.StatusError{ErrStatus: metav1.Status{Code: 410, Reason: metav1.StatusReasonGone, Message: "too old"}},
	"too large":                         tooLarge(),
	"too large, in servers before 1.17": apierrors.NewTimeoutError("Too large resource version: 7, current: 5", 1),
}

// tooLarge is the response to a resourceVersion that the server has not reached yet.
func tooLarge() error {
	err := apierrors.NewTimeoutError("Too large resource version: 7, current: 5", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// statusOf returns the object of the ERROR event for err, or nil if a server can't send it.
func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	s := status.Status()
	return &s
}

func TestFaults_OfAWatchListRequestAreReported(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer := &observer{}
				lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(nil, fault)}), GVR: widgets, Observer: observer})
				if _, err := lw.WatchWithContext(t.Context(), watchList()); !errors.Is(err, fault) {
					t.Errorf("error = %#v, want %v", err, fault)
				}
				if diff := cmp.Diff([]string{"watch failed"}, observer.reports()); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				checkErrors(t, observer, fault)
			})
		})
	}
}

func TestFaults_AmongInitialEventsAreReported(t *testing.T) {
	for name, fault := range faults {
		status := statusOf(fault)
		if status == nil {
			continue // no server can send it
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWatchListStream(t)
				r.server.Add(newObject("a"))
				r.server.Error(status)
				if diff := cmp.Diff([]string{"ADDED a", failed, "CLOSED"}, seen(r.w)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"watch failed"}, r.observer.reports()); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				if got := r.observer.errors(); len(got) != 1 || !cmp.Equal(status, statusOf(got[0])) {
					t.Errorf("observer's errors: %#v, want %#v", got, fault)
				}
			})
		})
	}
}

// In an ordinary watch, a reflector handles these errors.
func TestFaults_AreUnchangedInAnOrdinaryWatch(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{watch: always(nil, fault)}
				lw := newLW(source.Config{Client: source.Unstructured(client), GVR: widgets})
				if _, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{}); err != fault { //nolint:errorlint // the same error, not wrapped
					t.Errorf("error: %v, want the same %v", err, fault)
				}
				status := statusOf(fault)
				if status == nil {
					return
				}
				server := newServerWatch()
				client.watch = always(server, nil)
				w := openWatch(t, lw, metav1.ListOptions{})
				server.Error(status)
				if diff := cmp.Diff([]watch.Event{{Type: watch.Error, Object: status}, {Type: closed}}, take(w)); diff != "" {
					t.Errorf("event (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The object of an ERROR event is not always a Status.
func TestFaults_ErrorEventWithoutAStatus(t *testing.T) {
	for name, event := range map[string]watch.Event{
		"of an object":   {Type: watch.Error, Object: newObject("a")},
		"without object": {Type: watch.Error},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWatchListStream(t)
				r.server.Action(event.Type, event.Object)
				if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff([]string{"watch failed"}, r.observer.reports()); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
			})
		})
	}
}

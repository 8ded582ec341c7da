package dynamicinformer_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// unreached is a transport to a server with no objects. From some time on, the server can't be reached: each connection fails with err
// after 30 s.
type unreached struct {
	err   error
	began chan struct{} // closes then
	over  chan struct{} // closes when the server can be reached again
}

func isOver(ended chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// RoundTrip implements http.RoundTripper.
func (u *unreached) RoundTrip(r *http.Request) (*http.Response, error) {
	ended := u.began
	if isOver(u.over) {
		ended = nil
	}
	select {
	case <-ended:
		select {
		case <-time.After(30 * time.Second):
			return nil, u.err
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	default:
	}
	body := io.NopCloser(strings.NewReader(`{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[]}`))
	if query := r.URL.Query(); query.Get("watch") != "" {
		stream := &openStream{ended: ended, canceled: r.Context().Done()}
		if query.Get("sendInitialEvents") != "" {
			stream.first = `{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9",` +
				`"annotations":{"k8s.io/initial-events-end":"true"}}}}`
		}
		body = stream
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// openStream is the body of a watch, which has first and ends later.
type openStream struct {
	first           string
	ended, canceled <-chan struct{}
}

func (s *openStream) Read(p []byte) (int, error) {
	if n := copy(p, s.first); n > 0 {
		s.first = s.first[n:]
		return n, nil
	}
	select {
	case <-s.ended:
	case <-s.canceled:
	}
	return 0, io.EOF
}

func (s *openStream) Close() error { return nil }

// client-go hides such failures of watches: it tries again, and at last returns a watch without events.
func TestFactory_IsNotSyncedWhileTheServerCanNotBeReached(t *testing.T) {
	withConfig := func(u *unreached) (*dynamicinformer.Factory, error) {
		return dynamicinformer.NewForConfigAndClient(&rest.Config{Host: "http://server"}, &http.Client{Transport: u}, dynamicinformer.WithDiscovery(nil))
	}
	withClient := func(u *unreached) (*dynamicinformer.Factory, error) {
		client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://server"}, &http.Client{Transport: u})
		if err != nil {
			return nil, err
		}
		return dynamicinformer.New(client)
	}
	for constructor, tc := range map[string]struct {
		create func(*unreached) (*dynamicinformer.Factory, error)
		within time.Duration // the failure is known; client-go's client makes eleven attempts
	}{"NewForConfigAndClient": {withConfig, 31 * time.Second}, "New": {withClient, 6 * time.Minute}} {
		for name, cause := range map[string]error{
			"timeout": &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded},
			"closed":  io.EOF,
		} {
			t.Run(constructor+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, lines := logging(t, 0)
					u := &unreached{err: cause, began: make(chan struct{}), over: make(chan struct{})}
					f, err := tc.create(u)
					if err != nil {
						t.Fatal(err)
					}
					f.Start(ctx)
					l := acquire(t, f, widgets)
					if err := l.WaitForSync(t.Context()); err != nil {
						t.Fatal(err)
					}
					close(u.began)
					time.Sleep(tc.within)
					for minute := range 2 * 60 {
						if minute == 7 { // client-go's client has made eleven attempts
							if diff := cmp.Diff([]string{"Failed to list or watch, retrying Unavailable"}, lines()); diff != "" {
								t.Errorf("lines at the begin of the failure (-want +got):\n%s", diff)
							}
						}
						if now := l.Status(); now.State != status.StateDegraded || now.Reason != status.ReasonUnavailable || now.StaleSince.IsZero() {
							t.Fatalf("state %s, reason %q, stale since %v, error %v", now.State, now.Reason, now.StaleSince, now.Err)
						}
						time.Sleep(time.Minute)
					}
					if more := lines(); more != nil {
						t.Errorf("more lines during the failure: %q", more)
					}
					close(u.over)
					time.Sleep(time.Hour)
					if diff := cmp.Diff([]string{"Recovered Unavailable"}, lines()); diff != "" {
						t.Errorf("lines after the failure (-want +got):\n%s", diff)
					}
					l.Release()
					shutdown(t, f)
				})
			})
		}
	}
}

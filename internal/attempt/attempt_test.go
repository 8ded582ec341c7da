package attempt_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/gvrkit/gvrkit/internal/attempt"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func respond(code int, after string) roundTripper {
	return func(*http.Request) (*http.Response, error) {
		res := &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body"))}
		if after != "" {
			res.Header.Set("Retry-After", after)
		}
		return res, nil
	}
}

func fail(err error) roundTripper {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func TestClient_ReportsAttemptsThatClientGoHides(t *testing.T) {
	for name, tc := range map[string]struct {
		next roundTripper
		want func(error) bool // nil: nothing is told
	}{
		"a good answer":                  {respond(200, ""), nil},
		"a good answer that may be had":  {respond(200, "1"), nil},
		"unavailable":                    {respond(503, "1"), apierrors.IsServiceUnavailable},
		"throttled":                      {respond(429, "7"), apierrors.IsTooManyRequests},
		"an internal error, to be tried": {respond(500, "0"), apierrors.IsInternalError},
		"an error that is returned":      {respond(503, ""), nil},
		"a date":                         {respond(503, "Wed, 21 Oct 2015 07:28:00 GMT"), nil},
		"forbidden":                      {respond(403, "1"), nil},
		"a connection that was reset":    {fail(syscall.ECONNRESET), utilnet.IsConnectionReset},
		"one that was closed":            {fail(io.EOF), utilnet.IsProbableEOF},
		"one that was refused":           {fail(syscall.ECONNREFUSED), nil},
		"an HTTP/2 connection lost":      {fail(errLost), utilnet.IsHTTP2ConnectionLost},
		"a dial that timed out":          {fail(errDial), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var told []error
			ctx := attempt.Observe(t.Context(), attempt.Observer{Failed: func(err error) { told = append(told, err) }, Received: func(int) {}})
			request(t, ctx, attempt.Client(&http.Client{Transport: tc.next}))
			switch {
			case tc.want == nil && told != nil:
				t.Errorf("told of %v", told)
			case tc.want != nil && (len(told) != 1 || !tc.want(told[0])):
				t.Errorf("told of %v", told)
			}
		})
	}
}

// client-go retries a watch after other errors than a list.
func TestClient_ReportsAttemptsOfWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		told int
	}{
		"a connection that was reset":  {syscall.ECONNRESET, 1},
		"one that was closed":          {io.EOF, 1},
		"one that was refused":         {syscall.ECONNREFUSED, 0},
		"an HTTP/2 connection lost":    {errLost, 0},
		"a dial that timed out":        {errDial, 1},
		"the timeout of a TCP segment": {&net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			ctx := attempt.Observe(t.Context(), attempt.Observer{Failed: func(error) { told++ }, Received: func(int) {}})
			requestAt(t, ctx, attempt.Client(&http.Client{Transport: fail(tc.err)}), "http://localhost/?watch=true")
			if told != tc.told {
				t.Errorf("told %d times, want %d", told, tc.told)
			}
		})
	}
}

var (
	errLost = errors.New("http2: client connection lost")
	errDial = &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
)

// The timeout of an HTTP client ends the context of the attempt and closes Cancel, and client-go retries the watch. The error of an
// http.Transport depends on which of them it notices first.
func TestClient_ReportsTheTimeoutOfTheHTTPClient(t *testing.T) {
	for name, ended := range map[string]roundTripper{
		"by its context": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, context.Cause(req.Context())
		},
		"by Cancel": func(req *http.Request) (*http.Response, error) {
			<-req.Cancel //nolint:staticcheck // as http.Transport
			return nil, errors.New("net/http: request canceled")
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []error
			ctx := attempt.Observe(t.Context(), attempt.Observer{Failed: func(err error) { told = append(told, err) }, Received: func(int) {}})
			requestAt(t, ctx, attempt.Client(&http.Client{Timeout: time.Minute, Transport: ended}), "http://localhost/?watch=true")
			if len(told) != 1 || !errors.Is(told[0], context.DeadlineExceeded) {
				t.Errorf("%s: told %v, want one timeout", name, told)
			}
		})
	}
}

// request makes one, and leaves what it answers unread.
func request(t *testing.T, ctx context.Context, client *http.Client) {
	t.Helper()
	requestAt(t, ctx, client, "http://localhost/")
}

func requestAt(t *testing.T, ctx context.Context, client *http.Client, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "body" {
		t.Errorf("the answer is %q, %v", body, err)
	}
}

func TestClient_WithoutAnObserver(t *testing.T) {
	request(t, t.Context(), attempt.Client(&http.Client{Transport: respond(503, "1")}))
}

func TestClient_EndOfTheCallersContextIsNotReported(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	ctx = attempt.Observe(ctx, attempt.Observer{Failed: func(error) { told++ }, Received: func(int) {}})
	request(t, ctx, attempt.Client(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		cancel()
		return nil, errors.Join(io.EOF, context.Canceled)
	})}))
	if told != 0 {
		t.Errorf("told %d times", told)
	}
}

type closer struct {
	roundTripper
	closed bool
}

func (c *closer) CloseIdleConnections() { c.closed = true }

func TestClient_ConnectionsCanBeClosed(t *testing.T) {
	c := &closer{roundTripper: respond(200, "")}
	attempt.Client(&http.Client{Transport: c}).CloseIdleConnections()
	if !c.closed {
		t.Error("not closed")
	}
}

// What is read of an answer is counted as it comes, and whoever reads gets all of it.
func TestClient_ReportsTheBytesRead(t *testing.T) {
	received := 0
	ctx := attempt.Observe(t.Context(), attempt.Observer{Failed: func(error) {}, Received: func(n int) { received += n }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := attempt.Client(&http.Client{Transport: respond(200, "")}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.ReadFull(res.Body, make([]byte, 3)); err != nil || received != 3 {
		t.Errorf("after three bytes: %d, error %v", received, err)
	}
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "y" || received != len("body") {
		t.Errorf("after %q: %d, error %v", rest, received, err)
	}
}

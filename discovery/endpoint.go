package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	urlpath "path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// maxDocument is the maximum size of a response body. The aggregated document of 1,000 CRDs has about
// 3 MB.
const maxDocument = 64 << 20

// maxFault is the maximum number of bytes that are read of the body of an error response.
const maxFault = 64 << 10

// endpoint sends requests to the API server over HTTP. client-go's discovery client is not used,
// since it does not return the headers ETag and Retry-After, and repeats a request up to ten times
// when the server sends Retry-After.
type endpoint struct {
	base    *url.URL
	client  *http.Client
	limiter flowcontrol.RateLimiter // nil: none
	sent    atomic.Uint64           // requests
	pauses  pauses

	recovery recovery
}

// askedError is an error with the time of the request.
type askedError struct {
	at  time.Time
	err error
}

func (e *askedError) Error() string { return e.err.Error() }

func (e *askedError) Unwrap() error { return e.err }

func newEndpoint(cfg *rest.Config, client *http.Client) (*endpoint, error) {
	root := rest.CopyConfig(cfg)
	root.APIPath, root.GroupVersion = "", nil // of another client
	base, _, err := rest.DefaultServerUrlFor(root)
	if err != nil {
		return nil, err
	}
	base.Path, base.RawPath, base.RawQuery, base.Fragment = urlpath.Join("/", base.Path), "", "", "" // as client-go's clients
	unlimited := *client
	unlimited.Timeout = 0 // it would end watches; the contexts of requests have timeouts
	return &endpoint{base: base, client: &unlimited, limiter: cfg.RateLimiter}, nil
}

// get returns the server's response if its status code is 200 or 304. The caller closes the body.
// Otherwise it returns an error with the server's Status, if the server has sent one. During the
// pause of a path, it sends no request. Retry-After starts a pause; failures start one if the caller
// passes them to [pauses.settle].
func (e *endpoint) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	if err := e.pauses.of(path); err != nil {
		return nil, err
	}
	if e.limiter != nil {
		if err := e.limiter.Wait(ctx); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	e.sent.Add(1)
	res, err := e.client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			return nil, fmt.Errorf("%w: %w", cause, err)
		}
		return nil, err
	}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotModified {
		e.recovery.succeeded(path)
		return res, nil
	}
	defer res.Body.Close() //nolint:errcheck // read only
	fault := faultOf(res)
	if _, wanted := apierrors.SuggestsClientDelay(fault); wanted {
		e.pauses.settle(path, fault)
	}
	return nil, fault
}

// faultOf returns the error for a response with an error status code.
func faultOf(res *http.Response) *apierrors.StatusError {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFault)) // an incomplete body has a message, too
	after := retryAfter(res.Header.Get("Retry-After"))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status != metav1.StatusSuccess {
		status.Message = errtext.Text(status.Message) // the error may be stored
		if status.Code == 0 {
			status.Code = int32(res.StatusCode) //nolint:gosec // three digits
		}
		if after > 0 {
			if status.Details == nil {
				status.Details = &metav1.StatusDetails{}
			}
			status.Details.RetryAfterSeconds = int32(min(after, 1<<30)) //nolint:gosec // bounded
		}
		if status.Code == http.StatusUnauthorized && strings.EqualFold(status.Message, "unauthorized") {
			status.Message = "the server has asked for the client to provide credentials" // client-go's text
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	message := strings.TrimSpace(string(body))
	if message == "" || len(message) > 200 || strings.ContainsAny(message, "<\n") || errtext.MayHaveSecret(message) { // HTML, for example
		message = http.StatusText(res.StatusCode)
	}
	// The message has the path, since there is no resource.
	fault := apierrors.NewGenericServerResponse(res.StatusCode, "get", schema.GroupResource{}, "", message, min(after, 1<<30), true)
	fault.ErrStatus.Message = fmt.Sprintf("GET %s: %d %s", res.Request.URL.Path, res.StatusCode, message)
	return fault
}

// retryAfter returns the seconds of a Retry-After header, which has seconds or a date. It returns 0 for
// any other value.
func retryAfter(header string) int {
	if seconds, err := strconv.Atoi(header); err == nil {
		return max(seconds, 0)
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(int(time.Until(date)/time.Second)+1, 0)
	}
	return 0
}

// read returns the body of a response, which may have at most maxDocument bytes.
func read(res *http.Response) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(min(max(res.ContentLength, 0), 1<<20)) + bytes.MinRead) // the length is -1 if it is unknown
	_, err := body.ReadFrom(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && body.Len() > maxDocument {
		err = fmt.Errorf("the response exceeds %d bytes", maxDocument)
	}
	if err != nil {
		err = fmt.Errorf("GET %s: %w", res.Request.URL.Path, err)
	}
	return body.Bytes(), err
}

const (
	// maxPause is the maximum pause for a Retry-After of the server.
	maxPause = 10 * time.Minute
	// firstBackoff is the pause of a path after its second failure in a row. It doubles with each
	// failure, up to maxBackoff. There is no pause after the first failure.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
	// forgetAfter is how long a path still counts as failing after its pause.
	forgetAfter = 10 * time.Second
	// maxPaused is the maximum number of stored paths. If there are more, any path is removed: its
	// next request is sent too early.
	maxPaused = 4096
)

// pauses are the paths of a server to which no requests are sent at present, because the server has
// sent Retry-After, or several requests in a row have failed. The zero value has no pauses.
type pauses struct {
	mu    sync.Mutex // not held during requests
	paths map[string]*pauseError
	// look is the earliest time of the next search for paths to forget.
	look time.Time
}

// pauseError is the error of requests for a path during its pause.
type pauseError struct {
	until   time.Time
	asked   time.Time    // the time of the last request
	wanted  bool         // the server has sent Retry-After
	backoff wait.Backoff // the pauses after the next failures
	err     error
}

func (e *pauseError) Error() string {
	if !e.wanted {
		return e.err.Error()
	}
	return fmt.Sprintf("%v (Retry-After: no request before %s)", e.err, e.until.Format(time.RFC3339))
}

func (e *pauseError) Unwrap() error { return e.err }

// pausedUntil reports whether err consists only of pauses, so that no request was sent, and returns
// the end of the first pause.
func pausedUntil(err error) (until time.Time, paused bool) {
	causes := []error{err}
	if several, is := errors.AsType[*causesError](err); is {
		causes = several.errs
	}
	for _, cause := range causes {
		pause, is := errors.AsType[*pauseError](cause)
		if !is {
			return time.Time{}, false
		}
		if until.IsZero() || pause.until.Before(until) {
			until = pause.until
		}
	}
	return until, true
}

// of returns the error for a path during its pause, or nil.
func (p *pauses) of(path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused := p.paths[path]; paused != nil && time.Now().Before(paused.until) {
		return paused
	}
	return nil
}

// settle records the result of a request for a path.
func (p *pauses) settle(path string, err error) {
	if paused, is := errors.AsType[*pauseError](err); is && paused != nil {
		return // no request was sent
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsNotAcceptable(err):
		delete(p.paths, path)
		return
	case errors.Is(err, context.Canceled): // the callers have left; the server has not failed
		return
	}
	next := &pauseError{asked: now, err: err, backoff: newBackoff(firstBackoff, maxBackoff)}
	last, known := p.paths[path]
	if known {
		next.backoff = last.backoff
		next.until = now.Add(next.backoff.Step())
	}
	if after, wanted := apierrors.SuggestsClientDelay(err); wanted && after > 0 {
		next.wanted = true
		next.until = now.Add(min(time.Duration(after)*time.Second, maxPause))
	}
	if !known {
		p.makeRoomLocked(now)
	}
	if p.paths == nil {
		p.paths = map[string]*pauseError{}
	}
	p.paths[path] = next
}

// makeRoomLocked removes paths if there are maxPaused paths: all whose pause is over, or one of the
// others. It searches for the former at most once in forgetAfter. Caller holds p.mu.
func (p *pauses) makeRoomLocked(now time.Time) {
	if len(p.paths) < maxPaused {
		return
	}
	if !now.Before(p.look) {
		p.look = now.Add(forgetAfter)
		for path, paused := range p.paths {
			if now.Sub(paused.until) > forgetAfter && now.Sub(paused.asked) > forgetAfter {
				delete(p.paths, path)
			}
		}
	}
	for path := range p.paths {
		if len(p.paths) < maxPaused {
			return
		}
		delete(p.paths, path)
	}
}

// recovery ends back-offs after an outage: when a request succeeds for a path whose last request
// failed, all paths are tried again at once. The success of other paths has no effect. Otherwise two
// sources that can be listed, but not watched, would end each other's back-off forever.
type recovery struct {
	mu      sync.Mutex
	failing map[string]bool // by path; for watches, only their lists
	healed  chan struct{}   // closed when a path of failing succeeds
}

// failed records that a request for path has failed. It returns a channel that is closed when a
// request for a path that had failed succeeds.
func (r *recovery) failed(path string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing == nil {
		r.failing = map[string]bool{}
	}
	r.failing[path] = true
	return r.waitingLocked()
}

// waiting returns the same channel for a watch. The start of a watch does not count as success,
// since the watch may end at once.
func (r *recovery) waiting() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waitingLocked()
}

func (r *recovery) waitingLocked() <-chan struct{} {
	if r.healed == nil {
		r.healed = make(chan struct{})
	}
	return r.healed
}

// succeeded records that a request for path has succeeded.
func (r *recovery) succeeded(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.failing[path] {
		return
	}
	delete(r.failing, path)
	if r.healed != nil {
		close(r.healed)
		r.healed = nil
	}
}

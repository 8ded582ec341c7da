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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// maxDocument bounds what is read of one answer: the aggregated document of 1,000
// CRDs has some 3 MB.
const maxDocument = 64 << 20

// maxFault bounds what is read of an answer that only says what went wrong.
const maxFault = 64 << 10

// endpoint is the API server over HTTP. client-go's discovery client tells neither
// ETag nor Retry-After, and repeats a request that the server wants later, up to ten
// times, before it says so; hence requests of our own.
type endpoint struct {
	base    *url.URL
	client  *http.Client
	limiter flowcontrol.RateLimiter // nil: none
	sent    atomic.Uint64           // requests
	pauses  pauses

	recovery recovery
}

// askedError is what an answer lacks, and when it was asked for.
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
	unhurried := *client
	unhurried.Timeout = 0 // it would end watches; requests have a context that ends
	return &endpoint{base: base, client: &unhurried, limiter: cfg.RateLimiter}, nil
}

// get returns the server's answer if its status is 200 or 304; the caller closes
// its body. Any other is an error that has the server's Status, where it sent one.
// A path is not asked for during its pause. Retry-After begins one; failures do where the
// caller reports them to [pauses.settle].
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

// faultOf makes the error of an answer that is none.
func faultOf(res *http.Response) *apierrors.StatusError {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFault)) // what there is of it
	after := retryAfter(res.Header.Get("Retry-After"))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status != metav1.StatusSuccess {
		status.Message = errtext.Text(status.Message) // it may be kept for a while
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
			status.Message = "the server has asked for the client to provide credentials" // as client-go says it
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	message := strings.TrimSpace(string(body))
	if len(message) > 200 || strings.ContainsAny(message, "<{\n") { // HTML, or an object
		message = http.StatusText(res.StatusCode)
	}
	// The path goes into the message: there is no resource to name.
	fault := apierrors.NewGenericServerResponse(res.StatusCode, "get", schema.GroupResource{}, "", message, min(after, 1<<30), true)
	fault.ErrStatus.Message = fmt.Sprintf("GET %s: %d %s", res.Request.URL.Path, res.StatusCode, message)
	return fault
}

// retryAfter reads the header of that name: seconds, or a date. What is neither is 0.
func retryAfter(header string) int {
	if seconds, err := strconv.Atoi(header); err == nil {
		return max(seconds, 0)
	}
	if date, err := http.ParseTime(header); err == nil {
		return max(int(time.Until(date)/time.Second)+1, 0)
	}
	return 0
}

// read reads a document to its end, and not beyond what one can be.
func read(res *http.Response) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(min(max(res.ContentLength, 0), 1<<20)) + bytes.MinRead) // -1 if it is not known
	_, err := body.ReadFrom(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && body.Len() > maxDocument {
		err = fmt.Errorf("GET %s: the answer exceeds %d bytes", res.Request.URL.Path, maxDocument)
	}
	return body.Bytes(), err
}

const (
	// maxPause is the longest pause that a server's Retry-After makes.
	maxPause = 10 * time.Minute
	// firstBackoff is how long a path is not asked for after it has failed twice in a row. It
	// doubles with each failure, up to maxBackoff. One failure may be tried again at once.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
	// forgetAfter is how long after its pause a path still counts as failing.
	forgetAfter = 10 * time.Second
	// maxPaused is how many paths are remembered. Of more, any are forgotten: they are asked
	// for too early, once each.
	maxPaused = 4096
)

// pauses are the paths of a server that are not asked for at present: the server has sent
// Retry-After, or asking has failed several times in a row. The zero value has none.
type pauses struct {
	mu    sync.Mutex // never held over a request
	paths map[string]*pauseError
	// look is when it is worth looking for paths to forget.
	look time.Time
}

// pauseError is what a path answers until then.
type pauseError struct {
	until   time.Time
	asked   time.Time        // when the server was last asked
	wanted  bool             // the server has sent Retry-After
	backoff utilwait.Backoff // after the next failures
	err     error
}

func (e *pauseError) Error() string {
	if !e.wanted {
		return e.err.Error()
	}
	return fmt.Sprintf("%v (not asked again before %s, as the server wants)", e.err, e.until.Format(time.RFC3339))
}

func (e *pauseError) Unwrap() error { return e.err }

// pausedUntil returns when what err says can be asked for again, if err consists of pauses
// alone: then nothing was asked for.
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

// of returns the error of a path that is not to be asked for yet, or nil.
func (p *pauses) of(path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused := p.paths[path]; paused != nil && time.Now().Before(paused.until) {
		return paused
	}
	return nil
}

// settle takes how a request for a path has ended.
func (p *pauses) settle(path string, err error) {
	if paused, is := errors.AsType[*pauseError](err); is && paused != nil {
		return // there was none
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsNotAcceptable(err):
		delete(p.paths, path)
		return
	case errors.Is(err, context.Canceled): // by the callers: it says nothing of the server
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

// makeRoomLocked forgets a path if there are maxPaused: all those that are over, if there can
// be any, or else one of the others. Caller holds p.mu.
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

// recovery ends back-offs after an outage. What waits is tried again at once when a request that
// had failed succeeds. One that has not failed tells nothing: the server was not out, and with
// two sources, of which each can be listed and not watched, each would hasten the other for ever.
type recovery struct {
	mu      sync.Mutex
	failing map[string]bool // by path; of watches, only their lists
	healed  chan struct{}   // closed when a path of failing succeeds
}

// failed notes that a request for path has failed, and returns a channel that is closed when
// another that had failed succeeds.
func (r *recovery) failed(path string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing == nil {
		r.failing = map[string]bool{}
	}
	r.failing[path] = true
	return r.waitingLocked()
}

// waiting returns the same channel, for a request whose own success tells nothing: a watch that is
// opened may be of no use.
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

// succeeded notes that a request for path has succeeded.
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

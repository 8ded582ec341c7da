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
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

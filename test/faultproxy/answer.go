package faultproxy

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// status is a Kubernetes Status of a failure.
type status struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   struct{}       `json:"metadata"`
	Status     string         `json:"status"`
	Message    string         `json:"message"`
	Reason     string         `json:"reason"`
	Details    *statusDetails `json:"details,omitempty"`
	Code       int            `json:"code"`

	generated bool // by failure: it may depend on the request
}

type statusDetails struct {
	Name              string `json:"name,omitempty"`
	Group             string `json:"group,omitempty"`
	Kind              string `json:"kind,omitempty"` // the resource
	RetryAfterSeconds *int   `json:"retryAfterSeconds,omitempty"`
}

func newStatus(code int, reason, message string) status {
	return status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: message, Reason: reason, Code: answerable(code)}
}

// answerable returns code, or 500 if code is not a valid status of a response: net/http would panic.
func answerable(code int) int {
	if code < 200 || code > 999 {
		return http.StatusInternalServerError
	}
	return code
}

// ServeHTTP responds with the status.
func (s status) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.generated && s.Code == http.StatusForbidden {
		s = s.forbidding(ParseRequest(r))
	}
	w.Header().Set("Content-Type", "application/json")
	if s.Details != nil && s.Details.RetryAfterSeconds != nil {
		w.Header().Set("Retry-After", strconv.Itoa(*s.Details.RetryAfterSeconds))
	}
	w.WriteHeader(s.Code)
	_ = json.NewEncoder(w).Encode(s) // an error means that the client has disconnected
}

// forbidding returns s with the resource and the name of r, as an API server's authorizer responds.
func (s status) forbidding(r Request) status {
	details := statusDetails{Name: r.Name, Group: r.Group, Kind: r.Resource}
	if s.Details != nil {
		details.RetryAfterSeconds = s.Details.RetryAfterSeconds
	}
	s.Details = &details
	what := strings.TrimSuffix(r.Resource+"."+r.Group, ".")
	if r.Name != "" {
		what += fmt.Sprintf(" %q", r.Name)
	}
	if r.Resource != "" {
		what += " is "
	}
	s.Message = what + "forbidden: " + s.Message
	return s
}

// reasons are the reasons that API servers send with each code.
var reasons = map[int]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusUnauthorized:          "Unauthorized",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusMethodNotAllowed:      "MethodNotAllowed",
	http.StatusNotAcceptable:         "NotAcceptable",
	http.StatusConflict:              "Conflict",
	http.StatusGone:                  "Expired",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusUnsupportedMediaType:  "UnsupportedMediaType",
	http.StatusUnprocessableEntity:   "Invalid",
	http.StatusTooManyRequests:       "TooManyRequests",
	http.StatusInternalServerError:   "InternalError",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
	http.StatusGatewayTimeout:        "Timeout",
}

// Status returns a handler that responds with an HTTP status code and a Kubernetes
// Status with reason and message. A code outside 200 to 999 becomes 500.
func Status(code int, reason, message string) http.Handler { return newStatus(code, reason, message) }

// Fail returns a fault that responds with an HTTP status code and a Kubernetes Status
// with the reason for that code. The Status of code 403 names the resource and the object of
// the request, as API servers do; those of other codes don't. A code outside 200 to 999 becomes 500.
func Fail(code int) Fault { return Respond(failure(code)) }

func failure(code int) status {
	code = answerable(code)
	s := newStatus(code, reasons[code], fmt.Sprintf("faultproxy: %d %s", code, http.StatusText(code)))
	s.generated = true
	return s
}

// RetryAfter is Fail with d in the Retry-After header and in the Status, in seconds and
// rounded up. A negative d is zero.
func RetryAfter(code int, d time.Duration) Fault {
	s := failure(code)
	seconds := max(0, int(math.Ceil(d.Seconds())))
	s.Details = &statusDetails{RetryAfterSeconds: &seconds}
	return Respond(s)
}

// GoneStatus returns a fault that responds that the resource version of the request is
// too old: HTTP status 410 with the reason Expired.
func GoneStatus() Fault { return Respond(expired()) }

func expired() status {
	return newStatus(http.StatusGone, "Expired", "too old resource version: faultproxy")
}

// ExpireContinue returns a fault for lists in pages that last too long: each list gets its
// first pages, and a request for a later page gets the response of GoneStatus. It reads
// lists in JSON; others get no further page. If pages is less than one, it is one.
func ExpireContinue(pages int) Fault {
	return func(next http.Handler) http.Handler {
		var mu sync.Mutex
		number := map[string]int{} // the number of the page that a token requests
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if ParseRequest(r).Verb != "list" {
				next.ServeHTTP(w, r)
				return
			}
			token, page := r.URL.Query().Get("continue"), 1
			if token != "" {
				mu.Lock()
				page = number[token]
				mu.Unlock()
				if page == 0 || page > pages {
					expired().ServeHTTP(w, r)
					return
				}
			}
			got := &document{header: http.Header{}, code: http.StatusOK}
			next.ServeHTTP(got, legible(r))
			var list struct{ Metadata struct{ Continue string } }
			if json.Unmarshal(got.body.Bytes(), &list) == nil && list.Metadata.Continue != "" {
				mu.Lock()
				number[list.Metadata.Continue] = page + 1
				mu.Unlock()
			}
			got.send(w, "")
		})
	}
}

// HTML returns a fault that responds as a server that is not an API server: status 200
// with an HTML page.
func HTML() Fault {
	return Respond(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><p>It works.</p></body></html>\n")
	}))
}

// Hang returns a fault that sends no response. The request ends when the client
// disconnects or the proxy closes; Heal does not end it.
func Hang() Fault {
	return Respond(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http detects that a client disconnects only after this
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // a return would send a response
	}))
}

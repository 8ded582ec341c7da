package trial

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// purpose is what a request is for.
type purpose int

const (
	forDocuments purpose = iota
	forDefinitions
	forObjects
)

// purposeOf returns what a GET of path is for.
func purposeOf(path string) purpose {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 3 && (parts[1] == "apiextensions.k8s.io" || parts[1] == "apiregistration.k8s.io"):
		return forDefinitions
	case parts[0] == "api" && len(parts) > 2, parts[0] == "apis" && len(parts) > 3:
		return forObjects
	}
	return forDocuments
}

// traffic counts what a program asks and what it reads. It is safe for concurrent use.
type traffic struct {
	// mu guards the fields below.
	mu       sync.Mutex
	requests [forObjects + 1]int64
	before   int64 // requests, when the first one for objects was sent
	bytes    int64 // of answers that are not for objects
	last     time.Time
}

// wrap returns a transport that t counts.
func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper { return &transport{t, next} }

type transport struct {
	traffic *traffic
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	p := purposeOf(req.URL.Path)
	t.traffic.ask(p)
	res, err := t.next.RoundTrip(req)
	t.traffic.read(p, 0)
	if err == nil {
		res.Body = &body{res.Body, t.traffic, p}
	}
	return res, err
}

// ask counts a request.
func (t *traffic) ask(p purpose) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == forObjects && t.requests[p] == 0 {
		t.before = t.requests[forDocuments] + t.requests[forDefinitions]
	}
	t.requests[p]++
	t.last = time.Now()
}

// read counts n bytes.
func (t *traffic) read(p purpose, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last = time.Now(); p != forObjects {
		t.bytes += int64(n)
	}
}

// rest waits until nothing has been asked or read for d.
func (t *traffic) rest(ctx context.Context, d time.Duration) error {
	for {
		t.mu.Lock()
		left := d - time.Since(t.last)
		t.mu.Unlock()
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// into puts what has been counted into f.
func (t *traffic) into(f *Figures) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.Documents, f.Definitions, f.Objects = t.requests[forDocuments], t.requests[forDefinitions], t.requests[forObjects]
	f.Before, f.Bytes = t.before, t.bytes
}

// body is that of an answer.
type body struct {
	io.ReadCloser

	traffic *traffic
	purpose purpose
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.traffic.read(b.purpose, n)
	return n, err
}

// Package usage measures the CPU time, the memory and the requests of this process.
package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// CPU returns the CPU time of this process, user and system.
func CPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic("usage: bug: getrusage: " + err.Error()) // it fails only for a wrong argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// PeakRSS returns the peak resident set size of this process, or 0 without /proc. Getrusage is not
// used because a child process begins with the peak of its parent.
func PeakRSS() (bytes int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, invalid := fmt.Sscanf(peak, "%d kB", &bytes)
	return bytes << 10, errors.Join(err, invalid)
}

// LiveMemory returns the size of reachable memory, and of goroutine stacks after they have shrunk:
// one garbage collection at most halves a stack.
func LiveMemory() (heap, stacks int64) {
	const collections = 8 // until stacks no longer shrink
	var stats runtime.MemStats
	before := uint64(math.MaxUint64)
	for n := range collections {
		runtime.GC() // the second one frees memory of finalizers and pools
		runtime.ReadMemStats(&stats)
		if n > 0 && stats.StackInuse >= before {
			break
		}
		before = stats.StackInuse
	}
	return int64(stats.HeapAlloc), int64(stats.StackInuse) //nolint:gosec // sizes
}

// Collection returns the CPU time of one full garbage collection: the median of three.
func Collection() time.Duration {
	times := make([]time.Duration, 3)
	for i := range times {
		before := CPU()
		runtime.GC()
		times[i] = CPU() - before
	}
	slices.Sort(times)
	return times[1]
}

// Counts are numbers of requests, and of bytes that were read from responses, after decompression.
// A watch is one request.
type Counts struct {
	// Documents, Definitions and Objects are the requests for discovery documents, for CRDs and
	// APIServices, and for other objects.
	Documents, Definitions, Objects int
	// First is the number of requests before the first one for objects.
	First int
	// Bytes are those of responses with documents and definitions, and Received those with other objects.
	Bytes, Received int
}

// Traffic counts the requests of a client. It is safe for concurrent use.
type Traffic struct {
	// mu guards the fields below.
	mu     sync.Mutex
	counts Counts
	last   time.Time // of the last request, response or read
}

// Count counts the requests of all clients that are made of cfg after the call.
func Count(cfg *rest.Config) *Traffic {
	t := &Traffic{last: time.Now()}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			path := req.URL.Path
			t.add(path, 1, 0)
			res, err := next.RoundTrip(req)
			t.add(path, 0, 0)
			if err == nil {
				res.Body = &body{res.Body, func(n int) { t.add(path, 0, n) }}
			}
			return res, err
		})
	})
	return t
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// body is the body of a response. It reports the number of bytes of each read.
type body struct {
	io.ReadCloser

	read func(n int)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read(n)
	return n, err
}

// Counts returns the counts so far.
func (t *Traffic) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// Requests returns the number of all requests so far.
func (t *Traffic) Requests() float64 {
	c := t.Counts()
	return float64(c.Documents + c.Definitions + c.Objects)
}

// WaitIdle waits until nothing has been sent or read for d.
func (t *Traffic) WaitIdle(ctx context.Context, d time.Duration) error {
	for {
		t.mu.Lock()
		left := d - time.Since(t.last)
		t.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if err := Sleep(ctx, left); err != nil {
			return err
		}
	}
}

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add adds requests for path, or bytes that were read from a response.
func (t *Traffic) add(path string, requests, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch c := &t.counts; {
	case len(parts) > 3 && (parts[1] == "apiextensions.k8s.io" || parts[1] == "apiregistration.k8s.io"):
		c.Definitions += requests
		c.Bytes += bytes
	case parts[0] == "api" && len(parts) > 2, parts[0] == "apis" && len(parts) > 3:
		if c.Objects == 0 {
			c.First = c.Documents + c.Definitions
		}
		c.Objects += requests
		c.Received += bytes
	default:
		c.Documents += requests
		c.Bytes += bytes
	}
}

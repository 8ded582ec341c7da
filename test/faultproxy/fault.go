package faultproxy

import (
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is what goes wrong: given the handler that would serve a request well, it
// returns the one that does not. It is called once per injection, so that a fault
// given twice counts for each; its handler is called concurrently. A nil Fault, and
// one that returns nil, does nothing.
type Fault func(next http.Handler) http.Handler

func (f Fault) around(next http.Handler) http.Handler {
	if f == nil {
		return next
	}
	if faulty := f(next); faulty != nil {
		return faulty
	}
	return next
}

// Respond is the fault that handler answers in place of the server.
func Respond(handler http.Handler) Fault {
	return func(http.Handler) http.Handler { return handler }
}

// For applies fault for the time d, which begins with the first request that
// meets it: a slow set-up does not use it up. With a d that is not positive,
// never.
func For(d time.Duration, fault Fault) Fault {
	return gated(fault, func() func() bool {
		var first sync.Once
		var end time.Time
		return func() bool {
			now := time.Now()
			first.Do(func() { end = now.Add(d) })
			return now.Before(end)
		}
	})
}

// Times applies fault to the first n requests that meet it. With an n that is not
// positive, to none.
func Times(n int, fault Fault) Fault {
	return gated(fault, func() func() bool {
		var met atomic.Int64
		return func() bool { return met.Add(1) <= int64(n) }
	})
}

// Alternate applies fault to every second request that meets it: the first
// passes.
func Alternate(fault Fault) Fault { return Share(0.5, fault) }

// Share applies fault to the share p of the requests that meet it, spread evenly
// and without chance: of the first n, to n×p rounded down. A p below 0 and one
// that is no number count as 0, one above 1 as 1.
func Share(p float64, fault Fault) Fault {
	p = min(p, 1) // infinity would never rise; below 0, and without a number, nothing does
	return gated(fault, func() func() bool {
		var met atomic.Int64
		return func() bool {
			n := met.Add(1)
			return share(n, p) > share(n-1, p)
		}
	})
}

// share is n×p rounded down, where a product such as 100×0.29 comes out a little
// below what it is.
func share(n int64, p float64) float64 { return math.Floor(float64(n)*p + 1e-9) }

// gated applies fault to the requests for which a gate is open. Each injection has
// a gate of its own, which is asked once per request, concurrently.
func gated(fault Fault, gate func() (open func() bool)) Fault {
	return func(next http.Handler) http.Handler {
		faulty, open := fault.around(next), gate()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if open() {
				faulty.ServeHTTP(w, r)
			} else {
				next.ServeHTTP(w, r)
			}
		})
	}
}

package faultproxy

import (
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Fault wraps the handler that serves a request, and returns the handler that fails. It
// is called once per injection, so that a fault that is injected twice has two counters.
// Its handler is called concurrently. A nil Fault, or a nil result, has no effect.
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

// Respond returns a fault that calls handler instead of the server.
func Respond(handler http.Handler) Fault {
	return func(http.Handler) http.Handler { return handler }
}

// For applies fault for the time d. The time begins with the first matching request, so
// that it does not depend on the duration of a test's setup. If d is not positive, fault
// is never applied.
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

// Times applies fault to the first n matching requests. Requests that fault does not change count, too:
// for a fault of watches, the match needs Verb("watch"). If n is not positive, fault is never applied.
func Times(n int, fault Fault) Fault {
	return gated(fault, func() func() bool {
		var met atomic.Int64
		return func() bool { return met.Add(1) <= int64(n) }
	})
}

// Alternate applies fault to every second matching request. The first request passes.
func Alternate(fault Fault) Fault { return Share(0.5, fault) }

// AlternateConnections applies fault to all matching requests of every second connection of
// clients. The requests of the first connection pass.
func AlternateConnections(fault Fault) Fault {
	return func(next http.Handler) http.Handler {
		faulty := fault.around(next)
		var mu sync.Mutex
		var met int
		odd := map[string]bool{} // by the client's address, which is that of a connection
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			applies, known := odd[r.RemoteAddr]
			if !known {
				applies = met%2 == 1
				odd[r.RemoteAddr] = applies
				met++
			}
			mu.Unlock()
			if applies {
				faulty.ServeHTTP(w, r)
			} else {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// Share applies fault to the share p of the matching requests, evenly and not randomly:
// to n×p of the first n requests, rounded down. A p below 0 or NaN is 0, and a p above 1
// is 1.
func Share(p float64, fault Fault) Fault {
	p = min(p, 1) // fault is never applied for a negative p or NaN, nor for infinity without this
	return gated(fault, func() func() bool {
		var met atomic.Int64
		return func() bool {
			n := met.Add(1)
			return share(n, p) > share(n-1, p)
		}
	})
}

// share returns n×p rounded down. It corrects floating-point products, such as 100×0.29,
// that are slightly too small.
func share(n int64, p float64) float64 { return math.Floor(float64(n)*p + 1e-9) }

// gated applies fault to the requests for which open returns true. Each injection has its
// own open function, which is called once per request, concurrently.
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

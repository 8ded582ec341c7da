package faultproxy

import (
	"cmp"
	"net/http"
	"slices"
)

// injection is an active fault.
type injection struct {
	id      int // increases in the order of Inject
	match   Match
	handler http.Handler // the fault around the following handlers
}

// Inject applies fault to the requests that match selects, until remove or Heal is
// called. Faults nest: the first matching fault is nearest to the client, and later
// faults get only requests that it passes on. Inject and remove do not affect requests in
// progress, such as a request that hangs. A nil fault has no effect.
func (p *Proxy) Inject(match Match, fault Fault) (remove func()) {
	p.mu.Lock()
	p.last++
	added := &injection{id: p.last, match: match}
	p.mu.Unlock()
	added.handler = fault.around(p.following(added)) // it may send requests, for which added has no effect yet
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(slices.Clip(p.faults), added)
	slices.SortFunc(p.faults, func(a, b *injection) int { return cmp.Compare(a.id, b.id) })
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(slices.Clone(p.faults), func(i *injection) bool { return i == added })
	}
}

// Answer makes handler serve the requests that match selects, instead of the server. If
// several answers match, the first one counts. The proxy counts these requests like all
// others. It is Inject with Respond; only Heal removes it.
func (p *Proxy) Answer(match Match, handler http.Handler) { p.Inject(match, Respond(handler)) }

// Heal removes all faults and answers: every new request reaches the server again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// following returns a handler that calls the first matching fault after i, or the server.
// If i is nil, it begins with the first fault. It uses the faults that are active when the
// request arrives; i may have been removed by then.
func (p *Proxy) following(i *injection) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		faults := p.faults
		p.mu.Unlock()
		req := ParseRequest(r)
		for _, f := range faults {
			if (i == nil || f.id > i.id) && f.match.picks(req) {
				f.handler.ServeHTTP(w, r)
				return
			}
		}
		p.forward.ServeHTTP(w, r)
	})
}

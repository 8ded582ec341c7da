package faultproxy

import (
	"net/http"
	"slices"
)

// injection is a fault in place.
type injection struct {
	id      int // rising, in the order of Inject; set before anyone can reach it
	match   Match
	handler http.Handler // the fault around what follows it
}

// Inject lets the requests that match picks meet fault on their way, until
// remove or Heal. Faults nest: of several that match, the one given first is the
// nearest to the client, and those after it see only what it passes on. Requests
// that are being served when a fault comes or goes stay as they are, and so does
// one that hangs. A nil fault does nothing.
func (p *Proxy) Inject(match Match, fault Fault) (remove func()) {
	added := &injection{match: match}
	added.handler = fault.around(p.following(added))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	added.id = p.last
	p.faults = append(slices.Clip(p.faults), added)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(slices.Clone(p.faults), func(i *injection) bool { return i == added })
	}
}

// Answer lets handler serve the requests that match picks, in place of the
// server. Of several answers that match the one given first counts. They are
// counted like all others. It is Inject of Respond, never removed but by Heal.
func (p *Proxy) Answer(match Match, handler http.Handler) { p.Inject(match, Respond(handler)) }

// Heal removes all faults and answers: every new request reaches the server again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// following serves by the first matching fault after i, or by the server. With a
// nil i it begins with the first fault. What is in place counts when the request
// comes, so i may have been removed by then.
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

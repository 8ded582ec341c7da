package discovery

import "sync"

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

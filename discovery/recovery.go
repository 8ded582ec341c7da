package discovery

import "sync"

// recovery ends back-offs. What has failed is tried again at once when another request to
// the same server succeeds.
type recovery struct {
	mu      sync.Mutex
	failing map[string]bool // by path
	healed  chan struct{}   // closed when another path than those of failing succeeds
}

// failed notes that a request for path has failed, and returns a channel that is closed
// when a request for another path succeeds.
func (r *recovery) failed(path string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing == nil {
		r.failing, r.healed = map[string]bool{}, make(chan struct{})
	}
	r.failing[path] = true
	return r.healed
}

// succeeded notes that a request for path has succeeded. A path does not end its own
// back-off: one that can be listed and not watched would then be listed all the time.
func (r *recovery) succeeded(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failing, path)
	if len(r.failing) == 0 {
		return
	}
	close(r.healed)
	r.failing, r.healed = nil, nil
}

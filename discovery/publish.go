package discovery

// begin registers a run.
func (r *Resolver) begin(l *live) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != nil {
		return ErrRunning
	}
	r.live, r.said, r.saidBy = l, nil, nil
	close(r.running)
	l.crds, l.apis, l.docs = SourceStatus{State: SourceConnecting}, SourceStatus{State: SourceConnecting}, SourceStatus{State: SourceConnecting}
	if _, rest := r.server.(*restServer); !rest {
		l.crds = SourceStatus{State: SourceForbidden, Err: errNoWatch}
		l.apis = l.crds
	}
	return nil
}

// end ends a run: what it knew is not kept up to date any more.
func (r *Resolver) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live, r.running = nil, make(chan struct{})
	r.current.Store(nil)
	r.denied = nil
	r.signalLocked()
}

// lastKnown returns the last snapshot of a run, which may have ended; nil if there was none.
func (r *Resolver) lastKnown() *snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// askedSoFar returns the number of requests for documents so far.
func (r *Resolver) askedSoFar() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// forgetDenials removes the stored refusals, which may be out of date.
func (r *Resolver) forgetDenials() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = nil
}

// replace makes c the snapshot of l, and sends events to the subscribers.
func (r *Resolver) replace(l *live, c *snapshot, events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != l || r.current.Load() == c && len(events) == 0 {
		return // c stays, with its memo
	}
	l.begun = true
	r.last = c
	r.current.Store(c)
	r.denied = nil
	for _, event := range events { // removed versions are denied
		was := event.Old
		if event.Type == Removed {
			was = event.Resource
		}
		for _, version := range was.Versions {
			gvr := was.GVR.GroupResource().WithVersion(version)
			if c.served(gvr) == nil {
				r.denyLocked(questionOfGVR(gvr), nil)
			}
		}
	}
	for box := range r.boxes {
		box.put(events)
	}
	r.signalLocked()
}

func (r *Resolver) signalLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// maxDenied is the maximum number of stored refusals.
const maxDenied = 4096

// denyLocked stores the refusal of q until the next change. If refusal is nil, the next question computes
// it. Caller holds r.mu.
func (r *Resolver) denyLocked(q question, refusal error) {
	if r.denied == nil {
		r.denied = map[question]error{}
	}
	if len(r.denied) < maxDenied {
		r.denied[q] = refusal
	}
}

// join adds a subscriber, which gets an Added for each served type.
func (r *Resolver) join(box *mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes == nil {
		r.boxes = map[*mailbox]bool{}
	}
	r.boxes[box] = true
	var events []Event
	if r.last != nil {
		for _, group := range r.last.groups {
			for i := range group.types {
				events = append(events, Event{Type: Added, Resource: group.types[i].resource})
			}
		}
	}
	box.put(events)
}

func (r *Resolver) part(box *mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.boxes, box)
}

package discovery

// begin registers l as the run. A narrow run widens at once if it has to compare what it finds with an
// earlier run, or if a program waits for its results.
func (r *Resolver) begin(l *live) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != nil {
		return ErrRunning
	}
	if l.narrow != nil && (r.last != nil || r.observedLocked()) {
		close(l.narrow.widened)
		l.narrow = nil
	}
	r.live, r.plainSnapshot, r.plainDoc = l, nil, nil
	close(r.running)
	l.connectLocked()
	if _, rest := r.server.(*restServer); !rest {
		l.crds = SourceStatus{State: SourceForbidden, Err: errNoWatch}
		l.apis = l.crds
	}
	return nil
}

// connectLocked sets all sources to SourceConnecting. Caller holds the resolver's lock.
func (l *live) connectLocked() {
	connecting := SourceStatus{State: SourceConnecting}
	l.crds, l.apis, l.docs = connecting, connecting, connecting
}

// liveRun returns the current run, or nil.
func (r *Resolver) liveRun() *live {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// observedLocked reports whether a caller waits for a type, or a program subscribes. Caller holds
// r.mu.
func (r *Resolver) observedLocked() bool {
	for _, w := range r.wanted {
		if w.callers > 0 {
			return true
		}
	}
	for queue := range r.queues {
		if !queue.informers {
			return true
		}
	}
	return false
}

// rememberNarrow takes what a narrow run knows.
func (r *Resolver) rememberNarrow(c *snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.unreported = c, true
}

// end ends the run: its snapshot is not current any more.
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
	others := events
	if r.unreported {
		r.unreported, others = false, added(c)
	}
	for queue := range r.queues {
		if queue.informers {
			queue.put(events)
		} else {
			queue.put(others)
		}
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

// addSubscriber adds a subscriber, which gets an Added for each served type.
func (r *Resolver) addSubscriber(queue *eventQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues == nil {
		r.queues = map[*eventQueue]bool{}
	}
	r.queues[queue] = true
	if r.last != nil && (queue.informers || !r.unreported) {
		queue.put(added(r.last))
	}
}

// added returns an Added event of each type of c.
func added(c *snapshot) (events []Event) {
	for _, group := range c.groups {
		for i := range group.types {
			events = append(events, Event{Type: Added, Resource: group.types[i].resource})
		}
	}
	return events
}

// removeSubscriber removes a subscriber.
func (r *Resolver) removeSubscriber(queue *eventQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queues, queue)
}

package discovery

import "time"

// begin registers a run.
func (r *Resolver) begin(l *live) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != nil {
		return ErrRunning
	}
	r.live, r.said, r.saidBy = l, nil, nil
	l.crds, l.apis, l.docs = SourceStatus{State: SourceConnecting}, SourceStatus{State: SourceConnecting}, SourceStatus{State: SourceConnecting}
	if _, rest := r.server.(*restServer); !rest {
		l.crds = SourceStatus{State: SourceForbidden, Err: errNoWatch}
		l.apis = l.crds
	}
	return nil
}

// open lets a run publish what it knows, once its watches have been heard.
func (r *Resolver) open(l *live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.open = true
	l.publishLocked(time.Now())
}

// end ends a run: what it knew is not kept up to date any more.
func (r *Resolver) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = nil
	r.current.Store(nil)
	r.denied = nil
	r.signalLocked()
}

// replaceLocked makes c what is known, and tells subscribers. Caller holds r.mu.
func (r *Resolver) replaceLocked(c *catalogue, events []Event) {
	r.current.Store(c)
	r.denied = nil
	for _, event := range events { // they answer questions
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

// maxDenied bounds how many negative answers are kept.
const maxDenied = 4096

// denyLocked remembers that q is refused for good, until something changes. Where the
// refusal is nil it is worked out by whoever asks. Caller holds r.mu.
func (r *Resolver) denyLocked(q question, refusal error) {
	if r.denied == nil {
		r.denied = map[question]error{}
	}
	if len(r.denied) < maxDenied {
		r.denied[q] = refusal
	}
}

// update lets a source of a run say what it has learned: whether anything that is known
// differs by it, and whether documents are to be asked for.
func (r *Resolver) update(l *live, learn func(now time.Time) (differs, ask bool)) {
	r.mu.Lock()
	now := time.Now()
	differs, ask := learn(now)
	if differs || ask {
		r.denied = nil // it may be otherwise now
	}
	if differs {
		l.publishLocked(now)
	}
	r.mu.Unlock()
	if ask {
		l.ask()
	}
}

// join adds a subscriber, and tells it what is there.
func (r *Resolver) join(box *mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes == nil {
		r.boxes = map[*mailbox]bool{}
	}
	r.boxes[box] = true
	var events []Event
	for _, gr := range r.types.order {
		events = append(events, Event{Type: Added, Resource: r.types.states[gr].resource})
	}
	box.put(events)
}

func (r *Resolver) part(box *mailbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.boxes, box)
}

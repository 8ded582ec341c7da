package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// objectRef names a CRD or an APIService: the path of its collection, and its name.
type objectRef struct{ path, name string }

// lookup is the state of the reads of one object.
type lookup struct {
	busy     bool // a read is in progress
	changed  bool // the object has changed since the read began
	failures int
	backoff  wait.Backoff // the pauses after the next failures
	after    time.Time    // the earliest time of the next read
}

// The limits of the reads of single CRDs and APIServices.
const (
	readAtOnce  = 4                // concurrent reads
	readBackoff = time.Second      // the pause after the first failure; it doubles
	readAgain   = 30 * time.Second // the maximum pause
)

// toRead records that an object has changed and may have to be read.
func (k *knowledge) toRead(path, name string) {
	if k.unread == nil {
		k.unread = map[objectRef]*lookup{}
	}
	ref := objectRef{path, name}
	if old := k.unread[ref]; old != nil {
		old.after, old.changed = time.Time{}, true
		return
	}
	k.unread[ref] = &lookup{backoff: newBackoff(readBackoff, readAgain)}
}

// mayRead records that an object that has not changed may have to be read.
func (k *knowledge) mayRead(path, name string) {
	if k.unread[objectRef{path, name}] == nil {
		k.toRead(path, name)
	}
}

// unreadable reports whether the last read of an object failed.
func (k *knowledge) unreadable(path, name string) bool {
	state := k.unread[objectRef{path, name}]
	return state != nil && state.failures > 0
}

// due returns at most n objects to read now, which it marks as busy, and the time until the next object
// is due; 0 if there is none.
func (k *knowledge) due(n int, wanted func(schema.GroupResource) bool, readAfter time.Duration, now time.Time) (refs []objectRef, next time.Duration) {
	for ref, state := range k.unread {
		if state.busy {
			continue
		}
		at, needed := k.needed(ref, wanted, readAfter, now)
		if state.after.After(at) {
			at = state.after
		}
		switch wait := at.Sub(now); {
		case !needed:
			delete(k.unread, ref)
		case wait > 0:
			if next == 0 || wait < next {
				next = wait
			}
		case len(refs) < n:
			state.busy, state.changed = true, false
			refs = append(refs, ref)
		}
	}
	return refs, next
}

// needed reports whether an object must be read, and when. A CRD must be read if a caller waits for its
// type and the last document is older than the CRD's last change; if documents may describe the CRD
// before it; and if it is not served for some time, for the reason.
func (k *knowledge) needed(ref objectRef, wanted func(schema.GroupResource) bool, readAfter time.Duration, now time.Time) (at time.Time, needed bool) {
	if ref.path == apiServicePath {
		item := k.api(groupVersionOf(ref.name))
		return now, item != nil && !item.isAutomanaged()
	}
	gr := groupResourceOf(ref.name)
	state := k.crd(gr)
	if state == nil || state.meta == nil || k.fresh(state) {
		return now, false
	}
	listed := k.lists(gr)
	switch {
	case state.gone != nil, k.doubts(gr):
		return now, true
	case listed && k.namedAt > state.changedAt:
		return now, false
	case wanted(gr):
		return now, true
	case listed:
		return now, false // the next document has it
	}
	return state.firstSeen.Add(readAfter), true
}

// doubts reports whether gr was served and is not listed any more.
func (k *knowledge) doubts(gr schema.GroupResource) bool {
	for gvr := range k.doubted {
		if gvr.GroupResource() == gr {
			return true
		}
	}
	return false
}

// readObjects reads CRDs and APIServices until ctx ends.
func (l *live) readObjects(ctx context.Context, s *restServer) {
	var wg sync.WaitGroup
	defer wg.Wait()
	free := readAtOnce
	done := make(chan struct{}, readAtOnce)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.mu.Lock()
		refs, next := l.known.due(free, l.resolver.wants, l.pace.readAfter, time.Now())
		l.mu.Unlock()
		for _, ref := range refs {
			free--
			wg.Go(func() {
				l.readObject(ctx, s, ref)
				done <- struct{}{}
			})
		}
		if next == 0 {
			next = time.Hour
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-done:
			free++
		case <-l.reads:
		case <-timer.C:
		}
	}
}

// readObject reads one object, and learns it.
func (l *live) readObject(ctx context.Context, s *restServer, ref objectRef) {
	var learn func() (differs, ask bool)
	definition, api := &crd{}, &apiService{}
	var err error
	asked, cancel := context.WithTimeout(ctx, l.resolver.options.requestTimeout)
	defer cancel()
	switch ref.path {
	case crdPath:
		err = s.object(asked, ref, acceptLegacy, definition, &definition.Metadata)
		learn = func() (differs, ask bool) { return l.known.read(definition), false }
	default:
		err = s.object(asked, ref, acceptLegacy, api, &api.Metadata)
		learn = func() (differs, ask bool) { return true, l.known.readAPI(api) }
	}
	l.learnObject(func(now time.Time) (differs, ask bool) {
		state := l.known.unread[ref]
		if state == nil {
			state = &lookup{}
		}
		state.busy = false
		if err == nil {
			if state.failures, state.backoff = 0, newBackoff(readBackoff, readAgain); !state.changed {
				state.after = now.Add(readBackoff) // if the object is not current, the server is behind
			}
			if ref.path == apiServicePath && l.known.readVersion(ref.name, api) {
				delete(l.known.unread, ref)
			}
			return learn()
		}
		state.after = now.Add(state.backoff.Step())
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			state.after = now.Add(readAgain)
		}
		state.failures++
		return false, false
	})
}

// readVersion reports whether item has the current resourceVersion.
func (k *knowledge) readVersion(name string, item *apiService) bool {
	now := k.api(groupVersionOf(name))
	return now == nil || now.Metadata.ResourceVersion == item.Metadata.ResourceVersion
}

// object reads an object into a value whose metadata is meta.
func (s *restServer) object(ctx context.Context, ref objectRef, accept string, into any, meta *slimMeta) error {
	res, err := s.endpoint.get(ctx, ref.path+"/"+ref.name, http.Header{"Accept": {accept}})
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	body, err := read(res)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil || meta.Name != ref.name || meta.UID == "" {
		return errors.Join(errNoList, err)
	}
	return nil
}

// readChanged reads the CRDs that may define what q asks for and have changed so recently that documents may
// be older. It reports whether c, the snapshot of a run that refuses q, is out of date after that.
func (r *Resolver) readChanged(ctx context.Context, q question, c *snapshot) bool {
	l := r.liveRun()
	s, ok := r.server.(*restServer)
	if l == nil || !ok {
		return false
	}
	l.mu.Lock()
	names := l.known.changedFor(q, c, time.Now())
	l.mu.Unlock()
	for _, name := range names {
		definition, err := r.readCRD(ctx, s, name)
		l.mu.Lock()
		switch {
		case err == nil:
			l.known.read(definition)
		case ctx.Err() == nil:
			l.known.mayRead(crdPath, name)
			l.known.unread[objectRef{crdPath, name}].failures++ // it is not read again for a question
		}
		l.mu.Unlock()
	}
	if len(names) > 0 {
		l.mu.Lock()
		l.publishLocked(time.Now())
		l.mu.Unlock()
	}
	return r.current.Load() != c && ctx.Err() == nil
}

// changedFor returns the names of the CRDs that readChanged reads: the CRD of the resource if its plural is
// known, or else those of the group. There are none if they are many: the documents answer sooner.
func (k *knowledge) changedFor(q question, c *snapshot, now time.Time) (names []string) {
	changed := func(gr schema.GroupResource) bool {
		state := k.crd(gr)
		return state != nil && state.meta != nil && now.Sub(state.changed) <= recently && !k.fresh(state) && !k.unreadable(crdPath, state.meta.Name)
	}
	for _, r := range q.readings() {
		r.version = ""
		for _, res := range c.find(r) {
			if gr := res.GVR.GroupResource(); changed(gr) {
				return []string{gr.String()}
			}
		}
		if r.anyGroup || r.prefix {
			continue
		}
		for plural := range k.crds[r.group] {
			if gr := (schema.GroupResource{Group: r.group, Resource: plural}); changed(gr) && !slices.Contains(names, gr.String()) {
				names = append(names, gr.String())
			}
		}
	}
	if name := q.definition(); slices.Contains(names, name) {
		return []string{name}
	}
	if len(names) > readAtOnce {
		return nil
	}
	return names
}

package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/internal/errtext"
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
	readAnyway  = time.Minute      // the age of a CRD that is read though no document has the named groups
	readRate    = 5                // reads a second, after readBurst: an object may change without end
	readBurst   = 300
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
// type and the documents do not list it; if it was created again, and documents may describe the CRD before it; if the
// documents do not list its type any more; and if its type is not served for readAfter, for the reason, or, while no document
// has the named groups, for readAnyway. changedFor has the CRDs that are read for a question.
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
	case listed && k.describes(state):
		return now, false
	case wanted(gr):
		return now, true
	case listed && k.namedAt <= state.changedAt:
		return now, false // the next document has it
	case k.namedAt == 0:
		return state.firstSeen.Add(readAnyway), true // the first document may list it, and may never come
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
	rate := flowcontrol.NewTokenBucketRateLimiter(readRate, readBurst)
	done := make(chan struct{}, readAtOnce)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.mu.Lock()
		refs, next := l.knowledge.due(free, l.resolver.wants, l.pace.readAfter, time.Now())
		l.mu.Unlock()
		for _, ref := range refs {
			free--
			wg.Go(func() {
				if rate.Wait(ctx) == nil {
					l.readObject(ctx, s, ref)
				}
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

// readObject reads one object, and stores it.
func (l *live) readObject(ctx context.Context, s *restServer, ref objectRef) {
	var store func() (differs, ask bool)
	definition, api := &crd{}, &apiService{}
	var err error
	asked, cancel := context.WithTimeout(ctx, l.resolver.options.requestTimeout)
	defer cancel()
	switch ref.path {
	case crdPath:
		err = s.object(asked, ref, acceptLegacy, definition, &definition.Metadata)
		store = func() (differs, ask bool) { return l.knowledge.read(definition), false }
	default:
		err = s.object(asked, ref, acceptLegacy, api, &api.Metadata)
		store = func() (differs, ask bool) { return true, l.knowledge.readAPI(api) }
	}
	l.updateObjects(func(now time.Time) (differs, ask bool) {
		state := l.knowledge.unread[ref]
		if state == nil {
			state = &lookup{}
		}
		state.busy = false
		if err == nil {
			if state.failures, state.backoff = 0, newBackoff(readBackoff, readAgain); !state.changed {
				state.after = now.Add(readBackoff) // if the object is not current, the server is behind
			}
			if ref.path == apiServicePath && l.knowledge.readVersion(ref.name, api) {
				delete(l.knowledge.unread, ref)
			}
			return store()
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
	body, err := s.fetch(ctx, ref.path+"/"+ref.name, accept)
	if err != nil {
		return errtext.Clean(err)
	}
	if err := json.Unmarshal(body, into); err != nil || meta.Name != ref.name || meta.UID == "" {
		return errtext.Clean(errors.Join(errNoList, err))
	}
	return nil
}

// readChanged reads the CRDs that may define what q asks for and have changed so recently that documents may
// be older. It reports whether c, the snapshot of a run that refuses q, is out of date after that, or a CRD may have
// to be read again. For each of its events, a CRD is read once; questions that come meanwhile wait for that.
func (r *Resolver) readChanged(ctx context.Context, q question, c *snapshot) bool {
	l := r.liveRun()
	s, ok := r.server.(*restServer)
	if l == nil || !ok {
		return false
	}
	l.mu.Lock()
	metas := l.knowledge.changedFor(q, c, time.Now())
	l.mu.Unlock()
	again := false
	for _, meta := range metas {
		definition, joined, err := r.readCRD(ctx, s, meta.Name)
		if ctx.Err() != nil {
			return false
		}
		l.mu.Lock()
		if err == nil {
			l.knowledge.read(definition)
		}
		if state := l.knowledge.crd(groupResourceOf(meta.Name)); state != nil && !l.knowledge.fresh(state) {
			if !joined { // otherwise the response may be older than the event
				state.readFor = meta
			}
			again = again || state.readFor != state.meta
		}
		l.publishLocked(time.Now())
		l.mu.Unlock()
	}
	return (again || r.current.Load() != c) && ctx.Err() == nil
}

// changedFor returns the metadata of the CRDs that readChanged reads: the CRD of the resource if its plural is
// known, or else those of the group. There are none if they are many: the documents answer sooner.
func (k *knowledge) changedFor(q question, c *snapshot, now time.Time) (metas []*slimMeta) {
	changed := func(gr schema.GroupResource) *slimMeta {
		state := k.crd(gr)
		if state == nil || now.Sub(state.changed) > recently || k.fresh(state) || state.readFor == state.meta {
			return nil
		}
		return state.meta
	}
	name := q.definition()
	for _, r := range q.readings() {
		r.version = ""
		for _, res := range c.find(r) {
			if meta := changed(res.GVR.GroupResource()); meta != nil {
				return []*slimMeta{meta}
			}
		}
		if r.anyGroup || r.prefix {
			continue
		}
		for plural := range k.crds[r.group] {
			meta := changed(schema.GroupResource{Group: r.group, Resource: plural})
			switch {
			case meta == nil:
			case meta.Name == name:
				return []*slimMeta{meta}
			case !slices.Contains(metas, meta):
				metas = append(metas, meta)
			}
		}
	}
	if len(metas) > readAtOnce {
		return nil
	}
	return metas
}

package dynamicinformer

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typestate"
)

// life is that of one type, as far as one entry is concerned with it: what discovery
// says about it, what that means for its requests, and what is the evidence.
type life struct {
	gvr       schema.GroupVersionResource
	versions  VersionPolicy
	resolver  *discovery.Resolver
	available *source.Availability
	trouble   *trouble
	news      chan struct{} // has one if discovery is to be asked now

	mu         sync.Mutex
	followed   bool               // by the entry's own goroutine
	resource   discovery.Resource // as last served; zero: it has never been
	evidence   discovery.Evidence // that it has gone since; zero: there is none
	generation int
	since      time.Time // when it came to be served as it is
	doubt      time.Time // when a request was last answered NotFound
	absent     time.Time // since when discovery has denied what was served; zero: it has not
}

// newLife returns that of gvr. Without a resolver everything is taken to be there, and
// to have namespaces: the requests tell.
func newLife(gvr schema.GroupVersionResource, versions VersionPolicy, resolver *discovery.Resolver, trouble *trouble) *life {
	serving := source.Held
	if resolver == nil {
		serving = source.Served
	}
	return &life{
		gvr: gvr, versions: versions, resolver: resolver, trouble: trouble,
		available: source.NewAvailability(source.Type{Serving: serving, GVR: gvr, Namespaced: true}),
		news:      make(chan struct{}, 1),
	}
}

// settle makes of discovery's answer what the source is to do.
func (l *life) settle(res discovery.Resource, err error) {
	switch {
	case err == nil:
		l.serve(res)
	case errors.Is(err, discovery.ErrInconclusive) && l.known():
		// What cannot be asked about stands as it was, and its requests go on.
	default:
		l.refuse(err)
	}
}

// known reports whether the type has been served.
func (l *life) known() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resource.GVR != schema.GroupVersionResource{}
}

func (l *life) serve(res discovery.Resource) {
	l.mu.Lock()
	if uid := l.evidence.CRDUID; l.evidence.Kind == discovery.CRDDeleted && uid != "" && uid == res.CRDUID {
		l.mu.Unlock()
		l.look() // it was asked about before that was known
		return
	}
	replaced := l.replacedLocked(res)
	if replaced {
		l.generation++
	}
	again := replaced || !l.serving()
	if again {
		l.since = time.Now()
	}
	if res.CRDUID == "" && l.evidence.Kind == "" {
		res.CRDUID = l.resource.CRDUID // it is only not known at the moment
	}
	l.resource, l.evidence, l.absent = res, discovery.Evidence{}, time.Time{}
	now := source.Type{
		Serving: source.Served, GVR: res.GVR, Kind: res.GVK.Kind, Namespaced: res.Namespaced,
		Aggregated: res.Backing == discovery.BackingAggregated, Generation: l.generation, UID: string(res.CRDUID),
	}
	l.mu.Unlock()
	l.available.Set(now)
	if again {
		l.trouble.begins()
	}
	l.trouble.admitted(res.Namespaced)
}

// replacedLocked reports whether res is another type than the one that was served before,
// with the same name. Caller holds mu.
func (l *life) replacedLocked(res discovery.Resource) bool {
	old := l.resource
	if old.GVR == (schema.GroupVersionResource{}) {
		return false
	}
	return old.Namespaced != res.Namespaced || l.evidence.Kind == discovery.CRDDeleted ||
		old.CRDUID != "" && res.CRDUID != "" && old.CRDUID != res.CRDUID
}

func (l *life) refuse(err error) {
	defer l.trouble.refused(err) // which tells who waits
	l.miss(err, time.Now())
	now, _ := l.available.Current()
	before := now.Serving
	now.Serving = source.Held
	switch evidence := l.evidenceOfEnd().Kind; {
	case evidence == discovery.CRDDeleted: // whatever there is in its place
		now.Serving = source.Gone
		l.trouble.journal.vanished(typestate.Classify(err), l.evidenceOfEnd())
	case evidence == discovery.NotListed && errors.Is(err, discovery.ErrNotServed) && !elsewhere(err):
		now.Serving = source.Missing
		if before == source.Gone { // the type itself has said so
			now.Serving = source.Gone
		}
	}
	l.available.Set(now)
}

// absentFor is how long discovery must have denied a type for that to be evidence, where a
// resolver has none: longer than one that polls leaves a type unasked about that is awaited.
const absentFor = 15 * time.Second

// miss notes that discovery has denied, by err, a type that was served. A resolver that has
// not known the type, as it came to run only when that was gone, never tells of its end: what
// it says twice is the evidence then, and the type itself is asked, too.
func (l *life) miss(err error, now time.Time) {
	if !errors.Is(err, discovery.ErrNotServed) || elsewhere(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.resource.GVR == (schema.GroupVersionResource{}), l.evidence.Kind != "":
	case l.absent.IsZero():
		l.absent = now
	case now.Sub(l.absent) >= absentFor:
		l.evidence = discovery.Evidence{Kind: discovery.NotListed, At: now}
	}
}

// missing reports whether a type is denied for which there is no evidence yet.
func (l *life) missing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.absent.IsZero() && l.evidence.Kind == ""
}

// elsewhere reports whether err says that the objects are there, in another version or
// behind a CRD that is not served.
func elsewhere(err error) bool {
	notServed, is := errors.AsType[*discovery.NotServedError](err)
	return errors.Is(err, discovery.ErrNotEstablished) || is && len(notServed.Versions) > 0
}

// hear takes note of what a running resolver tells. It does not block.
func (l *life) hear(event discovery.Event) {
	if event.Type == discovery.Removed {
		l.mu.Lock()
		// A CRD that was deleted before the one that is known was created is no news.
		if uid := event.Evidence.CRDUID; uid == "" || l.resource.CRDUID == "" || uid == l.resource.CRDUID {
			l.evidence = event.Evidence
		}
		l.mu.Unlock()
	}
	l.look()
}

// look has discovery asked again. It does not block.
func (l *life) look() {
	select {
	case l.news <- struct{}{}:
	default: // it is to be asked already
	}
}

// serving reports whether the type is served, as far as is known.
func (l *life) serving() bool {
	now, _ := l.available.Current()
	return now.Serving == source.Served
}

// servedSince returns when the type came to be served as it is; zero if it never was.
func (l *life) servedSince() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// evidenceOfEnd returns why the type is taken to be gone.
func (l *life) evidenceOfEnd() discovery.Evidence {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evidence
}

// current returns the resource as it was served last.
func (l *life) current() discovery.Resource {
	l.mu.Lock()
	defer l.mu.Unlock()
	if res := l.resource; res.GVR != (schema.GroupVersionResource{}) {
		return res
	}
	return discovery.Resource{GVR: l.gvr}
}

// confirm reports whether the type is still of the CRD that it is known to be of, as far
// as the server tells. If not, discovery is asked what it is now.
func (l *life) confirm(ctx context.Context, _ source.Type) bool {
	l.mu.Lock()
	res := l.resource
	l.mu.Unlock()
	if l.resolver == nil || res.CRDUID == "" {
		return true
	}
	uid, err := l.resolver.CRDUID(ctx, res.GVR.GroupResource())
	switch {
	case err == nil && uid == res.CRDUID:
		return true
	case err != nil && !errors.Is(err, discovery.ErrNotServed):
		return true // nobody can tell
	}
	l.look()
	return false
}

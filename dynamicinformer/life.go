package dynamicinformer

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
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
	doubt      time.Time // when a request was last answered NotFound
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

// attend asks discovery about the type until it is served, for an informer that is run
// by hand. One that the factory runs is followed.
func (l *life) attend(ctx context.Context) {
	l.mu.Lock()
	followed := l.followed
	l.mu.Unlock()
	if l.resolver != nil && !followed {
		l.ask(ctx, func() bool { return false })
	}
}

// follow asks discovery about the type as long as ctx lasts, and calls served each time
// that it is served.
func (l *life) follow(ctx context.Context, served func()) {
	l.mu.Lock()
	l.followed = true
	l.mu.Unlock()
	l.ask(ctx, func() bool {
		served()
		return true
	})
}

// ask asks discovery about the type, again when there is news of it, until ctx ends.
// Each time that it is served it calls served, which returns whether to go on. It waits
// here, for there may be many that do: what learn needs is not on the stack meanwhile.
func (l *life) ask(ctx context.Context, served func() bool) {
	backoff := newBackoff()
	expected := func() {}
	defer func() { expected() }()
	for {
		pending := l.pending()
		err := l.learn(ctx)
		if ctx.Err() != nil {
			return
		}
		expected()
		var told bool
		if err == nil {
			if !served() {
				return
			}
			told = l.awaitServed(ctx)
		} else {
			expected = l.resolver.Expect()
			told = l.awaitFor(ctx, l.pause(err, &backoff), pending)
		}
		if ctx.Err() != nil {
			return
		}
		if told || err == nil {
			backoff = newBackoff()
		}
	}
}

// learn asks discovery once, and tells the source what that means, unless ctx has ended.
func (l *life) learn(ctx context.Context) error {
	res, err := l.versions.resolve(ctx, l.resolver, l.gvr)
	if ctx.Err() == nil {
		l.settle(res, err)
	}
	return err
}

// awaitServed waits for news of a type that is served. While it answers NotFound all the
// same, a resolver that has to poll is made to do so more often.
func (l *life) awaitServed(ctx context.Context) (told bool) {
	l.mu.Lock()
	doubt := l.doubt
	l.mu.Unlock()
	left := doubtFor - time.Since(doubt)
	if left <= 0 {
		return l.await(ctx, nil)
	}
	defer l.resolver.Expect()()
	timer := time.NewTimer(left)
	defer timer.Stop()
	return l.await(ctx, timer.C)
}

// notFound is told that a request for the type was answered so. It does not block.
func (l *life) notFound() {
	if l.resolver == nil {
		return
	}
	l.mu.Lock()
	l.doubt = time.Now()
	l.mu.Unlock()
	l.look()
}

// await waits for news, which it reports, for elapsed or for the end of ctx.
func (l *life) await(ctx context.Context, elapsed <-chan time.Time) (told bool) {
	select {
	case <-l.news:
		return true
	case <-elapsed:
	case <-ctx.Done():
	}
	return false
}

// awaitFor waits for news, or for another reason than pending why the type is not served,
// for d.
func (l *life) awaitFor(ctx context.Context, d time.Duration, pending string) (told bool) {
	end := time.Now().Add(d)
	for {
		timer := time.NewTimer(min(time.Until(end), wait.Jitter(lookEvery, 0.1)))
		told = l.await(ctx, timer.C)
		timer.Stop()
		if told || ctx.Err() != nil || !time.Now().Before(end) || l.pending() != pending {
			return told
		}
	}
}

// pending returns why a CRD that is there is not served; empty if none is.
func (l *life) pending() string {
	if err := l.resolver.Pending(l.gvr.GroupResource()); err != nil {
		return err.Error()
	}
	return ""
}

// newBackoff is how often a resolver is asked that does not run: 1, 2, 4 … 30 s.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
}

const (
	// lookEvery is how often it is looked whether a CRD is there that is not served, of
	// which a resolver does not tell. It costs next to nothing.
	lookEvery = 2 * time.Second
	// doubtFor is how long a NotFound lasts that discovery does not explain.
	doubtFor = 30 * time.Second
	// askEvery is how often a resolver is asked that runs and tells what is new.
	askEvery = 10 * time.Minute
)

// pause returns how long to wait for news before asking again, after err.
func (l *life) pause(err error, backoff *wait.Backoff) time.Duration {
	if inconclusive, is := errors.AsType[*discovery.InconclusiveError](err); is {
		return max(backoff.Step(), time.Until(inconclusive.Again))
	}
	if !l.resolver.Status().Running {
		return backoff.Step()
	}
	return wait.Jitter(askEvery, 0.1)
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
	if l.replacedLocked(res) {
		l.generation++
	}
	if res.CRDUID == "" && l.evidence.Kind == "" {
		res.CRDUID = l.resource.CRDUID // it is only not known at the moment
	}
	l.resource, l.evidence = res, discovery.Evidence{}
	now := source.Type{
		Serving: source.Served, GVR: res.GVR, Kind: res.GVK.Kind, Namespaced: res.Namespaced,
		Aggregated: res.Backing == discovery.BackingAggregated, Generation: l.generation, UID: string(res.CRDUID),
	}
	l.mu.Unlock()
	l.available.Set(now)
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
	now, _ := l.available.Current()
	before := now.Serving
	now.Serving = source.Held
	switch evidence := l.evidenceOfEnd().Kind; {
	case evidence == discovery.CRDDeleted: // whatever there is in its place
		now.Serving = source.Gone
	case evidence == discovery.NotListed && errors.Is(err, discovery.ErrNotServed) && !elsewhere(err):
		now.Serving = source.Missing
		if before == source.Gone { // the type itself has said so
			now.Serving = source.Gone
		}
	}
	l.available.Set(now)
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

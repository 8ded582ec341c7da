package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// randomFactory uses a resolver as a factory with a few informers does: it subscribes, and each
// informer asks for its type, again after each event of it, and now and then while it is not served.
type randomFactory struct {
	w         *memoryServer
	r         *discovery.Resolver
	events    *subscriber
	informers []*randomInformer
}

type randomInformer struct {
	gvr    schema.GroupVersionResource
	begins time.Duration
	news   chan struct{}

	mu  sync.Mutex
	res discovery.Resource
	err error
	at  time.Time // of the answer
}

func newRandomFactory(w *memoryServer, r *discovery.Resolver, lags []time.Duration) *randomFactory {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &randomFactory{w: w, r: r, events: newSubscriber(w, lags)}
	f.events.informers = true
	for range 1 + w.rng.IntN(2) {
		gr := schema.ParseGroupResource(randomTypes[w.rng.IntN(len(randomTypes))])
		if len(f.informers) == 0 { // rather one that is served
			for _, name := range randomTypes {
				if w.crds.objs[name] != nil && w.rng.IntN(2) == 0 {
					gr = schema.ParseGroupResource(name)
				}
			}
		}
		version := "v1"
		if w.rng.IntN(4) == 0 {
			version = "v2"
		}
		f.informers = append(f.informers, &randomInformer{
			gvr: gr.WithVersion(version), news: make(chan struct{}, 1), err: errors.New("it has not asked"),
			begins: []time.Duration{0, 0, 0, 100 * time.Millisecond, 5 * time.Second}[w.rng.IntN(5)],
		})
	}
	return f
}

// run returns when ctx ends.
func (f *randomFactory) run(ctx context.Context) {
	ctx = typefacts.WithInformers(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, i := range f.informers {
		wg.Go(func() { i.run(ctx, f) })
	}
	for e := range f.r.Subscribe(ctx) {
		f.events.take(e)
		for _, i := range f.informers {
			if i.gvr.GroupResource() == e.Resource.GVR.GroupResource() {
				select {
				case i.news <- struct{}{}:
				default:
				}
			}
		}
	}
}

func (i *randomInformer) run(ctx context.Context, f *randomFactory) {
	time.Sleep(i.begins)
	stop := func() {}
	defer func() { stop() }()
	for ctx.Err() == nil {
		res, err := f.r.ValidateVersion(ctx, i.gvr, discovery.Exact())
		i.mu.Lock()
		i.res, i.err, i.at = res, err, time.Now()
		i.mu.Unlock()
		f.w.mu.Lock()
		f.w.logf("    informer of %v: uid=%s backing=%s versions=%v narrow=%v, %v", i.gvr, res.CRDUID, res.Backing, res.Versions, f.r.Status().Narrow, err)
		f.w.mu.Unlock()
		stop()
		stop = func() {}
		again := 24 * time.Hour // never
		switch {
		case errors.Is(err, discovery.ErrInconclusive), err != nil && !f.r.Status().Running:
			again = 10 * time.Second
		case err != nil:
			again = 10 * time.Minute
		case res.Backing == discovery.BackingUnknown: // there is no event when that becomes known
			again = time.Minute
		}
		if err != nil {
			stop = typefacts.Of(f.r).Expect(i.gvr.GroupResource())
		}
		select {
		case <-i.news:
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// differs returns how what the factory knows differs from the truth.
func (f *randomFactory) differs(r *discovery.Resolver, uids bool) (out []string) {
	truth := f.w.truth()
	for _, i := range f.informers {
		i.mu.Lock()
		res, err, at := i.res, i.err, i.at
		i.mu.Unlock()
		want, there := truth[i.gvr.GroupResource().String()]
		there = there && strings.Contains(want.versions, i.gvr.Version+" ")
		if f.w.mixed(i.gvr.GroupResource(), at.Add(-time.Minute-f.events.lag)) {
			continue
		}
		switch {
		case !there && err == nil:
			out = append(out, fmt.Sprintf("informer of %v has it, and it is gone", i.gvr))
		case there && err != nil:
			out = append(out, fmt.Sprintf("informer of %v: %v", i.gvr, err))
		case there && (uids && res.CRDUID != "" && string(res.CRDUID) != want.uid || res.GVK.Kind != want.kind || res.Namespaced != want.namespaced):
			out = append(out, fmt.Sprintf("informer of %v: %+v, want %+v", i.gvr, res, want))
		}
	}
	if s := r.Status(); s.Running && !s.Narrow {
		out = append(out, f.events.differs("factory")...)
	}
	return out
}

// mistakes returns what was wrong with what the factory was told since the last call.
func (f *randomFactory) mistakes() []string {
	f.events.mu.Lock()
	defer f.events.mu.Unlock()
	mistakes := f.events.errors
	f.events.errors = nil
	return mistakes
}

// mixed reports whether, lately, one version of a type was of a CRD, and another of another server.
// Events are about the preferred version only.
func (w *memoryServer) mixed(gr schema.GroupResource, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.history {
		if s.mixed[gr.String()] && (i+1 == len(w.history) || w.history[i+1].at.After(since)) {
			return true
		}
	}
	return false
}

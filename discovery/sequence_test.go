package discovery_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

var (
	firstSequence = flag.Uint64("sequence.seed", 1000, "the first seed of TestRun_RandomSequences")
	sequences     = flag.Uint64("sequence.count", 38, "how many seeds TestRun_RandomSequences has")
)

var randomTypes = []string{"alphas.g1.io", "betas.g1.io", "gammas.g2.io", "deltas.g3.io"}

// changeAtRandom changes an object at random, and logs the change.
func (w *memoryServer) changeAtRandom() {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := randomTypes[w.rng.IntN(len(randomTypes))]
	old, _ := w.crds.objs[name].(*crdObject)
	plural, group, _ := strings.Cut(name, ".")
	fresh := crdObject{
		name: name, group: group, plural: plural, kind: strings.ToUpper(plural[:1]) + plural[1:len(plural)-1], established: true,
		namespaced: w.rng.IntN(2) == 0, versions: [][]string{{"v1"}, {"v2", "v1"}, {"v2"}}[w.rng.IntN(3)],
	}
	switch op := w.rng.IntN(12); {
	case old == nil && op < 9:
		fresh.uid = w.uid()
		fresh.established = w.rng.IntN(4) > 0
		w.logf("create %s %s %v ns=%v", name, fresh.uid, fresh.versions, fresh.namespaced)
		w.setCRD(fresh)
	case old == nil || op < 3:
		gv := "v1." + group
		a, _ := w.apis.objs[gv].(*apiServiceObject)
		switch {
		case a != nil && a.service && w.rng.IntN(3) == 0:
			b := *a
			b.available = !a.available
			w.logf("APIService %s available=%v", gv, b.available)
			w.setAPI(&b)
		case a != nil && a.service && w.rng.IntN(4) == 0:
			b := *a
			b.server = fmt.Sprint("server-", w.rng.IntN(3))
			w.logf("APIService %s by the service %s", gv, b.server)
			w.setAPI(&b)
		case a != nil && a.service && w.rng.IntN(2) == 0:
			w.logf("APIService %s deleted", gv)
			w.drop(w.apis, gv)
			time.AfterFunc(time.Second, w.autoregister)
		case a != nil && a.service:
			w.logf("APIService %s made local in place", gv)
			w.setAPI(&apiServiceObject{name: gv, auto: "true", available: true})
			time.AfterFunc(time.Second, w.autoregister)
		default:
			w.backends[gv] = [][]string{{plural}, {plural, "others"}, {"others"}}[w.rng.IntN(3)]
			if a != nil && w.rng.IntN(2) == 0 {
				w.drop(w.apis, gv)
			}
			w.logf("APIService %s by a service with %v", gv, w.backends[gv])
			w.setAPI(&apiServiceObject{name: gv, service: true, server: fmt.Sprint("server-", w.rng.IntN(3)), available: true})
		}
	case op < 5:
		w.logf("delete %s %s", name, old.uid)
		w.dropCRD(name)
	case op < 7:
		uid := w.uid()
		if w.rng.IntN(4) == 0 {
			uid = old.uid
		}
		w.drop(w.crds, name)
		fresh.uid = uid
		w.logf("recreate %s %s -> %s %v ns=%v", name, old.uid, uid, fresh.versions, fresh.namespaced)
		w.setCRD(fresh)
	case op < 9:
		c := *old
		c.versions = fresh.versions
		w.logf("versions of %s %s: %v", name, c.uid, c.versions)
		w.setCRD(c)
	case op == 9:
		c := *old
		c.labels = map[string]string{"x": fmt.Sprint(w.rng.IntN(3))}
		w.logf("labels of %s", name)
		w.setCRD(c)
	case op == 10:
		c := *old
		if c.established { // it stays so for the life of a CRD
			return
		}
		c.established = true
		w.logf("established %s %s: %v", name, c.uid, c.established)
		w.setCRD(c)
	default:
		c := *old
		c.terminating = true
		w.logf("terminating %s %s", name, c.uid)
		w.setCRD(c)
		time.AfterFunc(time.Duration(w.rng.IntN(3000))*time.Millisecond, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if now, ok := w.crds.objs[name].(*crdObject); ok && now.uid == c.uid && now.terminating {
				w.logf("terminated %s %s", name, c.uid)
				w.dropCRD(name)
			}
		})
	}
}

// subscriber has the state of a subscriber, and the errors in its events.
type subscriber struct {
	mu           sync.Mutex
	w            *memoryServer
	known        map[string]discovery.Resource
	adds         map[string]int
	added        map[string]time.Time
	ended        map[types.UID]time.Time // the time of the event for the end of a CRD
	unlisted     map[string]bool         // the types that are not listed, and of whose CRDs nothing was told since then
	errors       []string
	skipEvidence bool
	lag          time.Duration
	// informers says that the subscriber is a factory. It may get no Added of the types that its
	// informers have asked for.
	informers bool
}

func newSubscriber(w *memoryServer, lags []time.Duration) *subscriber {
	p := &subscriber{w: w, known: map[string]discovery.Resource{}, adds: map[string]int{}, added: map[string]time.Time{}, ended: map[types.UID]time.Time{}, unlisted: map[string]bool{}}
	for _, lag := range lags {
		p.lag = max(p.lag, lag)
	}
	return p
}

func (p *subscriber) take(e discovery.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	key := e.Resource.GVR.GroupResource().String()
	p.w.logf("    event %v uid=%s backing=%s versions=%v ev=%+v", e, e.Resource.CRDUID, e.Resource.Backing, e.Resource.Versions, e.Evidence.CRDUID)
	old, there := p.known[key]
	if p.informers && !there && e.Type != discovery.Added {
		old, there = e.Resource, true
		if e.Type == discovery.Changed {
			old = e.Old
		}
	}
	bad := func(format string, args ...any) {
		text := fmt.Sprintf("%8.2f %v: ", time.Since(p.w.start).Seconds(), e) + fmt.Sprintf(format, args...)
		p.errors = append(p.errors, text)
		p.w.logf("    !!! %s", text)
	}
	switch e.Type {
	case discovery.Added:
		if there {
			bad("is there already")
		}
		p.known[key], p.added[key] = e.Resource, p.w.now()
		delete(p.unlisted, key)
		p.adds[key]++
	case discovery.Changed:
		if !there {
			bad("is not there")
		}
		p.known[key] = e.Resource
		if slices.Contains(e.Changes, discovery.BackingChanged) {
			p.adds[key]++
		}
		if old.CRDUID != "" && e.Resource.CRDUID != "" && old.CRDUID != e.Resource.CRDUID {
			bad("UID changed without Removed: %s to %s", old.CRDUID, e.Resource.CRDUID)
		}
	case discovery.Removed:
		end := e.Evidence.Kind == discovery.CRDDeleted && p.w.unserved[e.Evidence.CRDUID]
		crd := e.Evidence.Kind != discovery.NotListed && (p.unlisted[key] || p.adds[key] == 0 && p.w.unlisted[key])
		if !there && !end && !crd {
			bad("is not there")
		}
		delete(p.known, key)
		if p.unlisted[key] = e.Evidence.Kind == discovery.NotListed; p.unlisted[key] {
			p.w.unlisted[key] = true
		}
		if e.Evidence.Kind == discovery.NoVersionServed {
			p.w.unserved[e.Evidence.CRDUID] = true
		}
		if crd, is := p.w.crds.objs[key].(*crdObject); is && crd.uid != string(e.Evidence.CRDUID) {
			p.w.unserved[types.UID(crd.uid)] = true // the event that it serves no version may be merged into this one
		}
		if uid := e.Evidence.CRDUID; e.Evidence.Kind == discovery.CRDDeleted && uid != e.Resource.CRDUID && uid != "" && e.Resource.CRDUID != "" {
			bad("the evidence is about the CRD %s", uid) // an informer ignores it
		}
		if p.skipEvidence {
			break
		}
		if reason := p.unfounded(key, old, e); reason != "" {
			bad("invented: %s", reason)
		}
	}
}

// unfounded returns what is wrong with the end of a type, of which old was known.
func (p *subscriber) unfounded(key string, old discovery.Resource, e discovery.Event) string {
	lately := time.Now().Add(-2*time.Minute - p.lag)
	if uid := e.Evidence.CRDUID; e.Evidence.Kind == discovery.CRDDeleted && uid != "" {
		switch deleted := p.w.deleted[string(uid)]; {
		case deleted.IsZero():
			return "its CRD was never deleted"
		case old.CRDUID == uid: // it was told of that CRD
			p.ended[uid] = time.Now()
			return ""
		case !p.ended[uid].Before(deleted):
			return "the end of that CRD was told before"
		case old.Backing == discovery.BackingUnknown && deleted.After(lately):
			p.ended[uid] = time.Now()
			return "" // that CRD may have served it: APIServices can't be read
		}
	}
	if crd, there := p.w.crds.objs[key].(*crdObject); there && e.Evidence.Kind == discovery.CRDDeleted && e.Evidence.CRDUID == "" {
		oldest := p.added[key].Add(-time.Minute - p.lag) // document that may have made the type known
		if old.Backing == discovery.BackingUnknown && crd.created.After(oldest) {
			return "" // it may serve the type from now on
		}
		return "its CRD is not younger than the type"
	}
	// There must have been a moment lately when it was not served, or of another UID.
	var before *servedType
	for i, s := range p.w.history {
		if i+1 < len(p.w.history) && p.w.history[i+1].at.Before(lately) {
			continue
		}
		there, served := s.truth[key]
		if !served || before != nil && before.uid != there.uid {
			return ""
		}
		before = &there
	}
	return "it was served all the time"
}

func servedTypeOf(r discovery.Resource) servedType {
	s := servedType{uid: string(r.CRDUID), kind: r.GVK.Kind, namespaced: r.Namespaced}
	for _, v := range r.Versions {
		s.versions += v + " "
	}
	return s
}

// differs returns the differences between the subscriber's state and the served types.
func (p *subscriber) differs(name string) (out []string) {
	truth := p.w.truth()
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, want := range truth {
		got, there := p.known[key]
		s := servedTypeOf(got)
		s.uid = want.uid
		if !there {
			out = append(out, fmt.Sprintf("%s lacks %s", name, key))
		} else if s != want {
			out = append(out, fmt.Sprintf("%s: %s is %+v, want %+v", name, key, s, want))
		} else if service := p.w.serviceOf(got); got.Service != "" && got.Service != service {
			out = append(out, fmt.Sprintf("%s: %s is served by %s, want %s", name, key, got.Service, service))
		}
	}
	for key := range p.known {
		if _, there := truth[key]; !there {
			out = append(out, fmt.Sprintf("%s has %s, which is gone", name, key))
		}
	}
	return out
}

// serviceOf returns the service of the API server of res.
func (w *memoryServer) serviceOf(res discovery.Resource) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, _ := w.apis.objs[res.GVR.Version+"."+res.GVR.Group].(*apiServiceObject)
	if a == nil || !a.service {
		return ""
	}
	return "x/" + cmp.Or(a.server, "y")
}

// answersDiffer returns how the answers of r differ from the truth.
func (w *memoryServer) answersDiffer(ctx context.Context, r *discovery.Resolver, uids bool) (out []string) {
	truth := w.truth()
	for key, want := range truth {
		gr := schema.ParseGroupResource(key)
		res, err := r.ResolveGR(ctx, gr)
		s := servedTypeOf(res)
		if !uids {
			s.uid = want.uid
		}
		if err != nil || s != want {
			out = append(out, fmt.Sprintf("resolver: %s is %+v (%v), want %+v", key, s, err, want))
		} else if service := w.serviceOf(res); res.Backing == discovery.BackingAggregated && res.Service != service {
			out = append(out, fmt.Sprintf("resolver: %s is served by %q, want %q", key, res.Service, service))
		}
	}
	for _, key := range randomTypes {
		if _, there := truth[key]; !there {
			if res, err := r.ResolveGR(ctx, schema.ParseGroupResource(key)); err == nil {
				out = append(out, fmt.Sprintf("resolver has %s, which is gone: %+v", key, servedTypeOf(res)))
			}
		}
	}
	return out
}

// sequence is what may happen.
type sequence struct {
	seed         uint64
	faults       bool            // requests fail, and watches are cut
	late         bool            // responses are on their way for a second, watches are cut, and informers ask for CRDs
	forbid       string          // crds, apis, both, crdwatch or get
	lags         []time.Duration // by which documents are behind, in turn
	reruns       bool            // Run ends and begins again
	skew         time.Duration   // of the server's clock
	bare         bool            // answers have no ETag and no Date
	json, legacy bool            // formats of documents
	narrow       bool            // Run begins for informers
}

// runSequence lets things happen in rounds, and compares what is known with the truth after each.
func runSequence(t *testing.T, plan sequence) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryServer(plan.seed)
		w.skew, w.noETag, w.noDate, w.asJSON, w.legacy = plan.skew, plan.bare, plan.bare, plan.json, plan.legacy
		w.lasts = 280 * time.Second // less than client-go asks for
		if plan.lags != nil {
			w.lags = plan.lags
		}
		steady := map[string]string{}
		if plan.forbid == "crds" || plan.forbid == "both" {
			steady["crds.list"], steady["crds.watch"], steady["crds.get"] = "403", "403", "403"
		}
		if plan.forbid == "crdwatch" {
			steady["crds.watch"] = "403"
		}
		if plan.forbid == "get" {
			steady["crds.get"], steady["apis.get"] = "403", "403"
		}
		if plan.forbid == "apis" || plan.forbid == "both" {
			steady["apis.list"], steady["apis.watch"], steady["apis.get"] = "403", "403", "403"
		}
		if plan.narrow && w.rng.IntN(2) == 0 {
			for class, fault := range steady {
				if fault == "403" && !strings.HasSuffix(class, ".get") {
					steady[class] = "403all"
				}
			}
		}
		w.fault = maps.Clone(steady)
		for range 5 {
			w.changeAtRandom()
		}
		r, err := discovery.NewForConfig(&rest.Config{Host: "http://server", Transport: w}, discovery.WithJitter(w.rng.Float64()), discovery.WithForbiddenPace(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		start := func() (stop func()) {
			ctx, stop := context.WithCancel(ctx)
			if plan.narrow {
				ctx = typefacts.WithInformers(ctx)
			}
			wg.Go(func() {
				if err := r.Run(ctx); err != nil {
					t.Errorf("Run: %v", err)
				}
			})
			return stop
		}
		var f *randomFactory
		begins := 0 // the round in which the program begins to use the resolver
		if plan.narrow {
			f = newRandomFactory(w, r, plan.lags)
			w.mu.Lock()
			begins = w.rng.IntN(5)
			pause := time.Duration(w.rng.IntN(60)) * time.Second
			w.mu.Unlock()
			time.Sleep(pause)
		}
		stopRun := start()
		if plan.narrow {
			synctest.Wait() // a factory waits for Running
			wg.Go(func() { f.run(ctx) })
		}
		p := newSubscriber(w, plan.lags)
		use := func() { // by the program
			w.mu.Lock()
			w.logf("the program subscribes")
			question := plan.narrow && w.rng.IntN(2) == 0
			w.mu.Unlock()
			if question {
				_, _ = r.ResolveGR(ctx, schema.ParseGroupResource(randomTypes[0]))
			}
			wg.Go(func() {
				for e := range r.Subscribe(ctx) {
					p.take(e)
				}
			})
		}
		if !plan.narrow {
			use()
		}
		settle := 240*time.Second + p.lag // a watch that hangs for 90 s, a back-off, and what documents may still list for a minute
		uids := plan.forbid != "crds" && plan.forbid != "both" && plan.forbid != "crdwatch" && plan.forbid != "apis" && plan.forbid != "get"
		var lastTruth map[string]servedType
		lastAdds := map[string]int{}
		rounds := 6
		for round := range rounds {
			w.mu.Lock()
			w.logf("--- round %d", round)
			if plan.faults {
				for _, class := range []string{"crds.list", "crds.watch", "crds.get", "apis.list", "apis.watch", "apis.get", "core", "named", "version"} {
					if w.rng.IntN(3) == 0 {
						f := []string{"500", "503", "hang", "flaky", "reset", "garbage", "html", "emptyjson", "retry", "401", "endsatonce", "404"}[w.rng.IntN(12)]
						if f == "404" && (class == "named" || class == "core" || class == "version") {
							f = "500"
						}
						if steady[class] == "" {
							w.fault[class] = f
							w.logf("fault %s %s", class, f)
						}
					}
				}
			}
			if plan.late {
				for _, class := range []string{"crds.list", "crds.watch", "crds.get", "apis.list", "apis.watch", "apis.get", "core", "named", "version"} {
					if f := []string{"", "late", "late", "500"}[w.rng.IntN(4)]; f != "" && (f == "late" || strings.HasSuffix(class, ".watch")) {
						w.fault[class] = f
						w.logf("fault %s %s", class, f)
					}
				}
			}
			n := 1 + w.rng.IntN(8)
			if round < begins {
				n = w.rng.IntN(3)
			}
			at := -1 // after which change the program begins to use the resolver
			if plan.narrow && round == begins {
				at = w.rng.IntN(n + 1)
			}
			w.mu.Unlock()
			if at == 0 {
				use()
			}
			for i := range n {
				w.changeAtRandom()
				if at == i+1 {
					use()
				}
				w.mu.Lock()
				d := []time.Duration{0, time.Millisecond, 30 * time.Millisecond, time.Second, 4 * time.Second, 20 * time.Second}[w.rng.IntN(6)]
				if plan.late {
					gr := schema.ParseGroupResource(randomTypes[w.rng.IntN(len(randomTypes))])
					wg.Go(func() { _, _ = typefacts.Of(r).CRDUID(ctx, gr) })
				}
				if (plan.faults || plan.late) && w.rng.IntN(4) == 0 {
					c := []*objectStore{w.crds, w.apis}[w.rng.IntN(2)]
					expire := w.rng.IntN(2) == 0
					w.logf("cut crds=%v expire=%v", c == w.crds, expire)
					w.endWatches(c, expire)
				}
				w.mu.Unlock()
				time.Sleep(d)
				w.mu.Lock()
				rare := 6
				if round < begins {
					rare = 2
				}
				again := plan.reruns && w.rng.IntN(rare) == 0
				w.mu.Unlock()
				if again {
					w.mu.Lock()
					w.logf("rerun")
					w.mu.Unlock()
					stopRun()
					synctest.Wait()
					time.Sleep(3 * time.Second)
					stopRun = start()
				}
			}
			w.mu.Lock()
			w.fault = maps.Clone(steady)
			w.logf("healed")
			for _, name := range slices.Sorted(maps.Keys(w.apis.objs)) {
				if a := w.apis.objs[name].(*apiServiceObject); !a.available {
					b := *a
					b.available = true
					w.setAPI(&b)
				}
			}
			clear(w.counts)
			w.mu.Unlock()
			time.Sleep(settle)
			synctest.Wait()
			w.mu.Lock()
			w.logf("check; requests since healed: %v", w.counts)
			total := 0
			for _, n := range w.counts {
				total += n
			}
			w.mu.Unlock()
			if limit := 250; !plan.legacy && total > limit {
				t.Errorf("round %d: %d requests in %v: %v", round, total, settle, w.counts)
			}
			var differences []string
			if plan.narrow {
				differences = f.differs(r, uids)
			}
			if round >= begins {
				differences = append(differences, p.differs("subscriber")...)
				differences = append(differences, w.answersDiffer(ctx, r, uids)...)
			}
			if differences != nil {
				slices.Sort(differences)
				t.Errorf("round %d at %.2f: not converged:\n%s", round, time.Since(w.start).Seconds(), strings.Join(differences, "\n"))
			}
			truth := w.truth()
			p.mu.Lock()
			if uids && !plan.reruns && round > begins {
				for key, now := range truth {
					if before, was := lastTruth[key]; was && before.uid != now.uid && before.uid != "" && now.uid != "" && p.adds[key] == lastAdds[key] {
						t.Errorf("round %d: %s went from %s to %s without Removed and Added", round, key, before.uid, now.uid)
					}
				}
			}
			lastTruth, lastAdds = truth, maps.Clone(p.adds)
			for _, e := range p.errors {
				t.Errorf("round %d: %s", round, e)
			}
			p.errors = nil
			p.mu.Unlock()
			if plan.narrow {
				for _, e := range f.mistakes() {
					t.Errorf("round %d: informers: %s", round, e)
				}
			}
			if t.Failed() {
				break
			}
		}
		cancel()
		stopRun()
		wg.Wait()
		if t.Failed() {
			t.Logf("what has happened:\n%s", strings.Join(w.log, "\n"))
		}
	})
}

// What a resolver tells must become the truth, and it must invent nothing, whatever happens to CRDs
// and APIServices, documents, watches and permissions. A seed decides on what happens, and on the
// length of waits; the order of goroutines may differ.
func TestRun_RandomSequences(t *testing.T) {
	lagging := []time.Duration{0, 3 * time.Second, 8 * time.Second}
	modes := []struct {
		name string
		sequence
	}{
		{"plain", sequence{}},
		{"lag", sequence{lags: lagging}},
		{"long lag", sequence{lags: []time.Duration{20 * time.Second}}},
		{"faults", sequence{faults: true}},
		{"faults and lag", sequence{faults: true, lags: lagging}},
		{"runs", sequence{reruns: true}},
		{"runs and faults", sequence{reruns: true, faults: true}},
		{"no CRDs", sequence{forbid: "crds"}},
		{"no APIServices", sequence{forbid: "apis"}},
		{"neither", sequence{forbid: "both"}},
		{"no watch of CRDs", sequence{forbid: "crdwatch"}},
		{"no get", sequence{forbid: "get"}},
		{"no get, and lag", sequence{forbid: "get", lags: lagging}},
		{"clock is ahead", sequence{skew: time.Hour, lags: lagging}},
		{"clock is behind", sequence{skew: -time.Hour, lags: lagging}},
		{"bare", sequence{bare: true, json: true, lags: lagging}},
		{"legacy", sequence{legacy: true}},
		{"no APIServices, and faults", sequence{forbid: "apis", faults: true}},
		{"no CRDs, and faults", sequence{forbid: "crds", faults: true}},
	}
	found := []uint64{1029, 1208, 10285} // seeds of runs for programs that have found something
	seeds := slices.Clone(found)
	for seed := *firstSequence; seed < *firstSequence+*sequences; seed++ {
		seeds = append(seeds, seed)
	}
	slices.Sort(seeds)
	for _, seed := range slices.Compact(seeds) {
		mode := modes[seed%uint64(len(modes))]
		mode.seed = seed
		if mode.narrow = seed/uint64(len(modes))%2 == 1 && !slices.Contains(found, seed); mode.narrow {
			mode.name = "narrow, " + mode.name
		}
		t.Run(fmt.Sprintf("%s/seed=%d", mode.name, seed), func(t *testing.T) { runSequence(t, mode.sequence) })
	}
}

// A response that was on its way is older than what was seen since it was requested.
func TestRun_LateResponses(t *testing.T) {
	for seed := *firstSequence; seed < *firstSequence+*sequences; seed++ {
		plan := sequence{seed: seed, late: true, narrow: seed%4 == 3}
		if seed%2 == 1 {
			plan.lags = []time.Duration{0, 3 * time.Second}
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { runSequence(t, plan) })
	}
}

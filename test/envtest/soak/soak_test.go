// Package soak_test runs a factory for a long time, with types, objects and leases that come and go, faults, and
// handlers that are slow, panic or call the factory. It checks each event, what is left at the end, and that no log line, page, metric,
// status or error has a secret that objects, tokens and responses have.
//
//	go test ./test/envtest/soak                                                 # a few types, half a minute
//	go test ./test/envtest/soak -v -soak.types 200 -soak.duration 2h -timeout 0 # as make soak SOAK=2h
//
// Package churn checks short scripts, with more kinds of changes, against a model of everything that a
// program may see. It keeps each state of each object; this package runs for hours, and keeps one state.
package soak_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metrics"
	"github.com/gvrkit/gvrkit/test/churn"
	"github.com/gvrkit/gvrkit/test/churn/leases"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var (
	duration = flag.Duration("soak.duration", 14*time.Second, "how long types, objects and leases change")
	count    = flag.Int("soak.types", 12, "the number of types")
	seed     = flag.Uint64("soak.seed", 1, "the seed of random decisions")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// group is the API group of the types.
const group = "soak.example.com"

// everyType stands for the plural of a fault that concerns all types that are not calm.
const everyType = "all"

// patience is how long caches may take to have everything after the last fault, and what was used to end.
var patience = 45 * time.Second

func init() {
	if os.Getenv("GVRKIT_MUTANT") != "" {
		patience = 10 * time.Second // the test with a mutant must fail, and not run into its time limit
	}
}

// soak is a server, a proxy in front of it, and a program.
type soak struct {
	*testing.T
	begun    time.Time
	direct   *http.Client // to the server
	exchange *exchange
	front    *http.Client // to the proxy
	proxy    *faultproxy.Proxy
	writer   *writer
	targets  []*target
	ledgers  []*ledger       // of the targets
	calm     map[string]bool // by plural: no fault concerns the type
	program  *program
	registry *prometheus.Registry
	result   *result
	leaks    func() error // returns the goroutines that the factory has left
}

func TestSoak_NothingIsLostAndNothingIsLeft(t *testing.T) {
	s := start(t)
	rounds := 2
	if *duration >= 5*time.Minute {
		rounds = max(4, int(*duration/(10*time.Minute)))
	}
	stop := s.progress()
	var base, end figures
	before := series(t, s.registry)
	for n := range rounds {
		if s.round(*duration/time.Duration(rounds), n); closed(s.result.failed) {
			break
		}
		// The first round starts and allocates what the factory keeps until its end: the goroutines of discovery, and tables, pools and
		// maps of their full size. Its end is the base: what a round leaves behind, the next one leaves again. What is left only once is no
		// growth of the heap; goroutines of that kind are found after the shutdown. Series of metrics must be those before all rounds.
		if end = s.rest(base); n == 0 {
			base = end
			base.series = before
		}
		s.Logf("round %d of %d:\n%s", n+1, rounds, table(base, end, s.result.count()))
		if len(end.grown(base)) > 0 {
			break
		}
	}
	stop()
	s.checkShown(t.Context())
	s.shutDown()
	s.checkShown(t.Context())
	found := append(s.result.violations(), end.grown(base)...)
	for _, text := range found {
		s.Error(text)
	}
	if len(found) > 0 {
		s.Logf("what was done before:\n%s", strings.Join(s.result.notesOf(found), "\n"))
	}
	if !s.Failed() && (s.exchange.secrets.Load() == 0 || s.result.leaked.Load() == 0 || s.result.lines.Load() == 0 || s.result.errors.Load() == 0) {
		s.Errorf("%d requests with a token, %d responses with a secret, %d lines, %d errors", s.exchange.secrets.Load(), s.result.leaked.Load(), s.result.lines.Load(), s.result.errors.Load())
	}
	s.Logf("%d requests with the secret as token, and %d responses with it; it is not in %d texts, of which %d are errors, and %d lines of the log",
		s.exchange.secrets.Load(), s.result.leaked.Load(), s.result.shown.Load(), s.result.errors.Load(), s.result.lines.Load())
	s.Logf("%d types: %d CRDs created, %d leases acquired, %d writes, %d events, %d faults; seed %d", *count,
		s.result.definitions.Load(), s.result.acquired.Load(), s.result.writes.Load(), s.result.events.Load(), s.result.faults.Load(), *seed)
	if s.Failed() {
		s.Errorf("seed %d", *seed)
	}
}

// start starts a server, a proxy and a factory.
func start(t *testing.T) *soak {
	t.Helper()
	server := fixture.StartEmbedded(t)
	s := &soak{T: t, begun: time.Now(), registry: prometheus.NewRegistry(), calm: map[string]bool{}, result: &result{failed: make(chan struct{})}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	config := server.Config()
	var err error
	s.direct, err = rest.HTTPClientFor(config)
	must(err)
	client, err := dynamic.NewForConfigAndClient(config, s.direct)
	must(err)
	s.writer = &writer{client: client, install: server.InstallCRDs, result: s.result}
	for n := range *count {
		s.targets = append(s.targets, newTarget(n))
		l := s.targets[n].ledger
		s.ledgers, s.calm[l.gvr.Resource] = append(s.ledgers, l), l.calm
	}
	s.exchange = &exchange{RoundTripper: s.direct.Transport}
	s.proxy, err = faultproxy.Start(config.Host, s.exchange)
	must(err)
	t.Cleanup(func() { _ = s.proxy.Close() }) // nothing is sent any more
	behind := &rest.Config{Host: s.proxy.URL(), QPS: -1, BearerToken: secret}
	s.front = &http.Client{Transport: bearer{&http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(s.closeIdle)

	klog.SetLogger(s.logger()) // for lines of client-go that do not go to the logger of the context
	t.Cleanup(klog.ClearLogger)
	before := goleak.IgnoreCurrent()
	name, err := cache.NewInformerName("soak")
	must(err)
	t.Cleanup(name.Release)
	informers := metrics.NewInformerMetrics()
	tables := dynamicclient.NewTables()
	must(fill(t.Context(), tables, s.ledgers[0]))
	f, err := dynamicinformer.NewForConfigAndClient(behind, s.front, dynamicinformer.WithInformerMetrics(name, informers),
		dynamicinformer.WithClientOptions(dynamicclient.WithTables(tables)))
	must(err)
	s.registry.MustRegister(metrics.NewCollector(f), informers)
	f.Start(klog.NewContext(context.WithoutCancel(t.Context()), s.logger())) // the factory ends by Shutdown
	s.program = &program{factory: f, result: s.result, leases: map[*lease]bool{}, followed: map[schema.GroupVersionResource]*lease{}}
	s.leaks = func() error { return goleak.Find(before) }
	return s
}

// logger returns a logger whose lines are notes, for the report of a violation.
func (s *soak) logger() klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(4), textlogger.Output(notebook{s.result})))
}

// notebook is a log.
type notebook struct{ result *result }

var plural = regexp.MustCompile(`boat\d+s`)

// Write implements [io.Writer].
func (n notebook) Write(line []byte) (int, error) {
	n.result.lines.Add(1)
	if bytes.Contains(line, []byte(secret)) {
		n.result.report("a line of the log has the secret: %.2000s", line)
	}
	n.result.note(string(plural.Find(line)), "log: %s", bytes.TrimSpace(line))
	return len(line), nil
}

// progress logs the progress every few seconds, until stop is called.
func (s *soak) progress() (stop func()) {
	period := min(max(*duration/60, 2*time.Second), time.Minute)
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for wait(over, period); !closed(over); wait(over, period) {
			s.proxy.Forget()
			s.checkShown(s.Context())
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			s.Logf("%v: %d CRDs created, %d leases, %d acquired, %d writes, %d events, %d faults, %d MB, %d goroutines, %d violations", time.Since(s.begun).Round(time.Second),
				s.result.definitions.Load(), len(s.program.all()), s.result.acquired.Load(), s.result.writes.Load(), s.result.events.Load(), s.result.faults.Load(),
				stats.HeapAlloc>>20, runtime.NumGoroutine(), s.result.count())
		}
	})
	return func() { close(over); running.Wait() }
}

// random returns the random decisions of one goroutine of a round.
func random(round, goroutine int) *rand.Rand {
	return rand.New(rand.NewPCG(*seed, uint64(round)<<32|uint64(goroutine))) //nolint:gosec // reproducible
}

// round lets types, objects, leases and faults come and go for d, compares everything with the server at rest, and
// removes all types and leases.
func (s *soak) round(d time.Duration, round int) {
	ctx := s.Context()
	stop := make(chan struct{})
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	var follower, changes sync.WaitGroup
	follower.Go(func() { s.program.follow(following, s.ledgers) })
	for n, l := range s.ledgers {
		s.program.keep(ctx, n, l)
	}
	if err := s.writer.define(ctx, s.targets...); err != nil {
		s.result.report("%v", err)
	}
	targets := make(chan *target, len(s.targets))
	for _, t := range s.targets {
		targets <- t
	}
	for n := range 4 + *count/50 {
		changes.Go(func() {
			if err := s.writer.churn(ctx, stop, random(round, n), targets); err != nil {
				s.result.report("%v", err)
			}
		})
	}
	for n := range max(4, *count/10) {
		changes.Go(func() { s.program.visit(ctx, stop, random(round, 100+n), s.ledgers) })
	}
	changes.Go(func() { s.disturb(ctx, stop, random(round, 99)) })
	wait(s.result.failed, d)
	close(stop)
	changes.Wait()
	if !closed(s.result.failed) {
		s.settle(ctx)
	}
	s.checkShown(ctx)
	unfollow()
	follower.Wait()
	for _, l := range s.program.all() {
		s.program.release(l)
	}
	if err := s.writer.reset(ctx, s.targets); err != nil {
		s.result.report("%v", err)
	}
}

// requestsFor matches requests for a type, by its plural, or for all types that are not calm.
func (s *soak) requestsFor(plural string) faultproxy.Match {
	return func(req faultproxy.Request) bool {
		return req.Group == group && !s.calm[req.Resource] && (plural == everyType || req.Resource == plural)
	}
}

// disturb injects and heals faults, and cuts watches, until stop closes.
func (s *soak) disturb(ctx context.Context, stop <-chan struct{}, r *rand.Rand) {
	faults := churn.NewFaults(s.proxy, group, s.requestsFor)
	var active []string
	var heal []func() // the responses with the secret
	most := max(4, *count/10)
	for n := 0; !closed(stop); n++ {
		plural := everyType
		if r.IntN(5) > 0 {
			plural = pick(r, s.ledgers...).gvr.Resource
		}
		switch roll := r.IntN(7); {
		case roll == 6:
			s.result.note(plural, "respond with the secret")
			heal = append(heal, s.proxy.Inject(s.requestsFor(plural), faultproxy.Times(1+r.IntN(2), s.counted(pick(r, leaking...)))))
			s.result.faults.Add(1)
		case len(active) == most || len(active) > 0 && roll < 2:
			i := r.IntN(len(active))
			s.result.note(everyType, "heal %s", active[i])
			faults.Heal(active[i])
			active = slices.Delete(active, i, i+1)
		case roll == 5:
			s.result.note(plural, "cut the watches")
			s.result.faults.Add(int64(s.proxy.CutWatches(s.requestsFor(plural))))
		default:
			name := fmt.Sprint(n)
			active = append(active, name)
			s.result.faults.Add(1)
			op := churn.RandomFault(r, name, plural)
			s.result.note(plural, "%v", op)
			if err := faults.Inject(ctx, op); err != nil {
				s.result.report("%v", err)
			}
		}
		wait(stop, time.Duration(r.IntN(400))*time.Millisecond)
	}
	faults.Heal("")
	for _, f := range heal {
		f()
	}
}

// unaided is how long the program may come to rest without calls of Retry. Earlier calls could hide that it has missed
// an event.
const unaided = 8 * time.Second

// settle waits until all caches and handlers have what the server has.
func (s *soak) settle(ctx context.Context) {
	server := map[*ledger]map[string]seen{}
	for _, t := range s.targets {
		var err error
		if server[t.ledger], err = s.writer.list(ctx, t); err != nil {
			s.result.report("list %s: %v", t.gvr.Resource, err)
			return
		}
		for _, text := range differences("the writer", server[t.ledger], t.objects) {
			s.result.report("%s", text)
		}
	}
	begun := time.Now()
	for {
		var found []string
		for _, l := range s.program.all() {
			found = append(found, l.atRest(s.defined(l.view.of), server[l.view.of])...)
			if time.Since(begun) > unaided && leases.IsWaiting(l.Status()) {
				l.Retry()
			}
		}
		for _, t := range s.targets {
			if is := s.program.isFollowed(t.gvr); is != t.defined {
				found = append(found, fmt.Sprintf("%s: followed: %v, and defined: %v", t.gvr.Resource, is, t.defined))
			}
		}
		if len(found) == 0 {
			s.Logf("at rest after %v", time.Since(begun).Round(time.Millisecond))
			return
		}
		if time.Since(begun) > patience {
			for _, text := range found {
				s.result.report("%s", text)
			}
			return
		}
		wait(ctx.Done(), 200*time.Millisecond)
	}
}

func (s *soak) defined(of *ledger) bool {
	return slices.ContainsFunc(s.targets, func(t *target) bool { return t.ledger == of && t.defined })
}

// rest returns the figures when no lease is left. It waits until what was used has ended: at first, until the number
// of goroutines does not change, and later, until it is that of the base.
func (s *soak) rest(base figures) figures {
	var f figures
	same := 0
	for begun := time.Now(); time.Since(begun) < patience; wait(s.Context().Done(), 200*time.Millisecond) {
		before := f.goroutines
		f = s.figures()
		if same++; f.goroutines != before {
			same = 0
		}
		switch {
		case f.watches > 0 || f.informers > 0:
		case base.goroutines == 0 && same >= 10, base.goroutines > 0 && len(f.grown(base)) == 0:
			return f
		}
	}
	return f
}

// closeIdle closes the connections that are not in use. http.Client does not do that if the transport adds credentials.
func (s *soak) closeIdle() {
	utilnet.CloseIdleConnectionsFor(s.front.Transport)
	utilnet.CloseIdleConnectionsFor(s.direct.Transport)
}

func (s *soak) figures() figures {
	s.closeIdle()
	s.proxy.Forget()
	f := figures{
		watches:   s.proxy.OpenWatches(func(req faultproxy.Request) bool { return req.Group == group }),
		informers: len(s.program.factory.Status()),
		series:    series(s.T, s.registry),
	}
	f.goroutines, f.heap = measure()
	return f
}

// shutDown shuts the factory down, and checks that nothing of it is left.
func (s *soak) shutDown() {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.program.factory.Shutdown(ctx); err != nil {
		s.Error(err)
	}
	var err error
	for begun := time.Now(); time.Since(begun) < patience; { // a connection is idle when the proxy has noticed the end of its request
		s.closeIdle()
		if err = s.leaks(); err == nil {
			break
		}
	}
	if err != nil {
		s.Error(err)
	}
	if open := s.proxy.OpenWatches(nil); open > 0 {
		s.Errorf("%d watches are open after the shutdown", open)
	}
}

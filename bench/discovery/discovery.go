// Package discovery compares implementations of discovery: the start, the cost of an answer, and
// the time until a new type is found. A run checks every answer.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// size is the amount of work of a run. On a server without CRDs, it measures only the start.
type size struct {
	cluster.Server

	// idle is the time without requests until a system is at rest. gvrkit may send another
	// request after half a second.
	idle time.Duration
	// poll is the interval of questions to a system that can't wait for a new type.
	poll time.Duration
	// asks is the number of questions about a type that is not served.
	asks int
}

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{
		Name: "discovery", About: "implementations of discovery: start, answers, and new types",
		Cases: func(quick bool) []harness.Case {
			s := size{
				Server: cluster.Server{Name: cluster.KubeAPIServer, Plain: true, Size: cluster.Size{CRDs: 300, SchemaBytes: 100_000}},
				idle:   700 * time.Millisecond, poll: 100 * time.Millisecond, asks: 1000,
			}
			rounds := 5
			if quick {
				s.Name, s.CRDs, rounds = cluster.Embedded, 30, 2
			}
			without := s
			without.CRDs = 0
			return []harness.Case{without.newCase(rounds), s.newCase(rounds)}
		},
	}
}

func (s size) newCase(rounds int) harness.Case {
	return harness.Case{
		Name: fmt.Sprintf("%s-%d-crds", s.Name, s.CRDs), Rounds: rounds, Metrics: s.metrics(), Contestants: s.contestants(), Start: s.Start,
		Title: fmt.Sprintf("%s with %d CRDs of %d KB each, and %d answers about a type that is not served", s.Name, s.CRDs, s.SchemaBytes/1000, s.asks),
	}
}

// The names of metrics.
const (
	firstAnswer   = "first answer"
	firstRequests = "requests until then"
	allAnswers    = "all types answered"
	allRequests   = "requests until all are"
	restRequests  = "requests until at rest"
	restBytes     = "received until at rest"
	restCPU       = "CPU until at rest"
	peakRSS       = "peak RSS"
	heap          = "retained heap, asked in every way"

	mapping = "RESTMapping"
	ofKind  = "ResolveGVK, or RESTMapping"
	ofName  = "Resolve, or ResourceFor"

	noticed = "unknown type, noticed when it comes"
	arrival = "new type, awaited or polled"
)

// known has the questions about a known type.
var known = []string{mapping, ofKind, ofName}

func (s size) metrics() []harness.Metric {
	all := []harness.Metric{
		{Name: firstAnswer, Format: "%.1f ms"},
		{Name: firstRequests, Format: "%.0f"},
		{Name: allAnswers, Format: "%.1f ms"},
		{Name: allRequests, Format: "%.0f"},
		{Name: restRequests, Format: "%.0f"},
		{Name: restBytes, Format: "%.2f MB"},
		{Name: restCPU, Format: "%.1f ms"},
		{Name: peakRSS, Format: "%.0f MiB"},
		{Name: heap, Format: "%.0f KB"},
	}
	if s.CRDs == 0 {
		return all
	}
	for _, name := range known {
		all = append(all, harness.BenchmarkMetrics(name)...)
	}
	return append(all,
		harness.Metric{Name: noticed, Format: "%.1f µs"},
		harness.Metric{Name: noticed + harness.Requests, Format: "%.0f"},
		harness.Metric{Name: arrival, Format: "%.1f ms"},
		harness.Metric{Name: arrival + harness.Requests, Format: "%.0f"},
	)
}

const (
	// lead is the time of questions about a new type before it is created. A part of the polling
	// interval is added.
	lead = 500 * time.Millisecond
	// resetDivisor divides the number of questions to a system that must be reset before each
	// question: each of these takes long, and the same time.
	resetDivisor = 20
)

// run is one job.
type run struct {
	system

	phase   float64 // time of the creation of the new type between two polls, from 0 to 1
	server  cluster.Connection
	cfg     *rest.Config
	traffic *usage.Traffic
	types   []*served
	mapper  *mapper
	beside  func(run func(context.Context) error) // runs a function until the end of the last step
	figures harness.Figures
}

// served is a type, and the arguments of questions about it. They are prepared, because their cost
// is not that of the system.
type served struct {
	cluster.Type

	kind     schema.GroupKind
	versions []string
	resource schema.GroupVersionResource // of any version
	ref      string
}

func newServed(t cluster.Type) *served {
	return &served{t, t.GVK.GroupKind(), []string{t.GVK.Version}, t.GVR.GroupResource().WithVersion(""), t.GVR.GroupResource().String()}
}

func additional(i int) *served { return newServed(cluster.Additional(i).Types[0]) }

// phase distributes the creation of a new type between two polls over the rounds. It is the same
// for all systems in a round.
func phase(round, rounds int) float64 { return (float64(round%rounds) + .5) / float64(rounds) }

func (s system) newRun(server cluster.Connection) *run {
	r := &run{system: s, server: server, cfg: server.Config(), figures: harness.Figures{}}
	r.traffic = usage.Count(r.cfg)
	r.types = []*served{newServed(cluster.Type{GVR: cluster.CRDs, GVK: cluster.CRDs.GroupVersion().WithKind("CustomResourceDefinition")})}
	for _, d := range cluster.Definitions(s.CRDs) {
		for _, of := range d.Types {
			r.types = append(r.types, newServed(of))
		}
	}
	return r
}

func (s system) measure(ctx context.Context, job harness.Job, server cluster.Connection) (harness.Figures, error) {
	r := s.newRun(server)
	r.phase = phase(job.Round, job.Rounds)
	steps := []func(context.Context) error{r.start, r.allWarm, r.unknown, r.arrive}
	if s.CRDs == 0 {
		steps = steps[:1]
	}
	return r.figures, r.do(ctx, steps...)
}

// do runs steps. When it returns, the functions of beside have ended.
func (r *run) do(ctx context.Context, steps ...func(context.Context) error) (err error) {
	beside, ctx := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(ctx)
	defer stop()
	r.beside = func(run func(context.Context) error) { beside.Go(func() error { return run(running) }) }
	for _, step := range steps {
		if err == nil {
			err = step(running)
		}
	}
	stop()
	return errors.Join(beside.Wait(), err)
}

// start opens the mapper, asks about all types, and measures until the mapper is at rest.
func (r *run) start(ctx context.Context) error {
	empty, _ := usage.LiveMemory()
	cpu := usage.CPU()
	if err := errors.Join(r.answers(), ctx.Err()); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := r.untilAtRest(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	r.figures[restRequests], r.figures[restBytes] = r.traffic.Requests(), float64(r.traffic.Counts().Bytes)/1e6
	r.figures[restCPU] = harness.Millis(usage.CPU() - cpu)
	peak, err := usage.PeakRSS()
	r.figures[peakRSS] = float64(peak) / (1 << 20)
	for _, of := range r.types {
		err = errors.Join(err, r.mapper.mapping(of), r.mapper.kind(ctx, of), r.mapper.name(ctx, of), r.mapper.resource(of))
	}
	if err := errors.Join(err, r.askUnknown(additional(9))); err != nil {
		return err
	}
	full, _ := usage.LiveMemory()
	r.figures[heap] = float64(full-empty) / 1e3
	runtime.KeepAlive(r.mapper)
	return nil
}

// answers measures until the first answer, and until the answers about all types.
func (r *run) answers() (err error) {
	begin := time.Now()
	if r.mapper, err = r.open(r.cfg); err != nil {
		return err
	}
	if r.mapper.run != nil {
		r.beside(r.mapper.run)
	}
	if err := r.mapper.mapping(r.types[len(r.types)/2]); err != nil {
		return err
	}
	first := time.Since(begin)
	r.figures[firstAnswer], r.figures[firstRequests] = harness.Millis(first), r.traffic.Requests()
	again := time.Now()
	for _, of := range r.types {
		if err := r.mapper.mapping(of); err != nil {
			return err
		}
	}
	r.figures[allAnswers], r.figures[allRequests] = harness.Millis(first+time.Since(again)), r.traffic.Requests()
	return nil
}

// untilAtRest waits until the mapper has completed its start and sends no more requests.
func (r *run) untilAtRest(ctx context.Context) error {
	for r.mapper.settled != nil && !r.mapper.settled() {
		if err := usage.Sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the end of the start: %w", err)
		}
	}
	return r.traffic.WaitIdle(ctx, r.idle)
}

// allWarm measures answers about all known types, one type after another.
func (r *run) allWarm(ctx context.Context) error {
	for name, ask := range map[string]func(context.Context, *served) error{
		mapping: func(_ context.Context, of *served) error { return r.mapper.mapping(of) }, ofKind: r.mapper.kind, ofName: r.mapper.name,
	} {
		if err := r.figures.Benchmark(name, r.traffic.Requests, func(n int) error {
			for i := range n {
				if err := ask(ctx, r.types[i%len(r.types)]); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// unknown measures answers about a type that is not served. The answers must change when the type
// is served, so a mapper that would not notice is reset before each question.
func (r *run) unknown(context.Context) error {
	n, of, before, begin := r.asks, additional(7), r.traffic.Requests(), time.Now()
	if r.mapper.reset != nil {
		n = max(1, n/resetDivisor)
	}
	for range n {
		if r.mapper.reset != nil {
			r.mapper.reset()
		}
		if err := r.askUnknown(of); err != nil {
			return fmt.Errorf("%s: %w", noticed, err)
		}
	}
	r.figures[noticed] = harness.Micros(time.Since(begin), n)
	r.figures[noticed+harness.Requests] = (r.traffic.Requests() - before) * float64(r.asks) / float64(n)
	return nil
}

// arrive measures the time until a new type is known. It deletes the type at the end.
func (r *run) arrive(ctx context.Context) error {
	crd, err := r.server.TemporaryCRD(ctx, cluster.Additional(r.additional), r.SchemaBytes)
	if err != nil {
		return err
	}
	defer crd.Stop()
	before := r.traffic.Requests()
	var begun, established, known time.Time
	waits, waiting := errgroup.WithContext(ctx)
	waits.Go(func() (err error) {
		if err := usage.Sleep(waiting, lead+time.Duration(r.phase*float64(r.poll))); err != nil {
			return err
		}
		begun = time.Now()
		established, err = crd.Create(waiting)
		return err
	})
	waits.Go(func() error {
		err := r.untilKnown(waiting, additional(r.additional))
		known = time.Now()
		return err
	})
	if err := waits.Wait(); err != nil {
		return fmt.Errorf("%s: %w", arrival, err)
	}
	if known.Before(begun) {
		return fmt.Errorf("%s: the type was known before its creation", arrival)
	}
	if err := r.untilAtRest(ctx); err != nil {
		return err
	}
	r.figures[arrival], r.figures[arrival+harness.Requests] = harness.Millis(known.Sub(established)), r.traffic.Requests()-before
	_, err = crd.Delete(ctx)
	return errors.Join(err, r.untilAtRest(ctx))
}

// untilKnown waits until a type is known: it calls await, or asks repeatedly.
func (r *run) untilKnown(ctx context.Context, of *served) error {
	if r.mapper.await != nil {
		if err := r.mapper.await(ctx, of.GVR); err != nil {
			return err
		}
		return r.mapper.mapping(of)
	}
	ticker := time.NewTicker(r.poll)
	defer ticker.Stop()
	for {
		last := r.mapper.mapping(of)
		if last == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		}
		if r.mapper.reset != nil {
			r.mapper.reset()
		}
	}
}

// askUnknown asks about a type that is not served.
func (r *run) askUnknown(of *served) error {
	switch _, err := r.mapper.RESTMapping(of.kind, of.versions...); {
	case err == nil:
		return errors.New("a type that is not served is mapped")
	case !meta.IsNoMatchError(err):
		return fmt.Errorf("want a no-match error: %w", err)
	}
	return nil
}

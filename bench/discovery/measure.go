package discovery

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

const (
	// lead is how long a new type is asked for before it comes. A part of an interval of polls
	// is added.
	lead = 500 * time.Millisecond
	// forgetful is by how much fewer answers are measured of a system that must forget all it
	// knows before each: these take long, and each takes the same.
	forgetful = 20
)

// run is one job.
type run struct {
	Params

	brief   bool
	phase   float64 // when between two polls the new type comes, from 0 to 1
	server  stub.Client
	traffic *usage.Traffic
	types   []served
	mapper  *mapper
	figures harness.Figures
}

// served is a type that the server serves, and the arguments of questions about it: they are
// made beforehand, since they are not at the cost of the system.
type served struct {
	stub.Type

	kind     schema.GroupKind
	versions []string
	resource schema.GroupVersionResource // of any version
	ref      string
}

func newServed(t stub.Type) served {
	return served{
		Type: t, kind: t.GVK.GroupKind(), versions: []string{t.GVK.Version},
		resource: t.GVR.GroupResource().WithVersion(""), ref: t.Ref(),
	}
}

func newcomer(i int) *served {
	of := newServed(stub.Newcomer(i).Types[0])
	return &of
}

// phase spreads the time at which a new type comes between two polls over the rounds. It is the
// same for all systems of a round.
func phase(round, rounds int) float64 { return (float64(round%rounds) + .5) / float64(rounds) }

func measure(ctx context.Context, job harness.Job) (harness.Figures, error) {
	s, err := harness.Find(systems(), job.Contestant, func(s system) string { return s.Name })
	if err != nil {
		return nil, err
	}
	r := &run{brief: s.brief, phase: phase(job.Round, job.Rounds)}
	if err := job.Decode(&r.Params); err != nil {
		return nil, err
	}
	if err := r.measure(ctx, s.open, job.Part == plain); err != nil {
		return nil, fmt.Errorf("%d CRDs: %w", r.CRDs, err)
	}
	return r.figures, nil
}

// measure opens the mapper and measures it. What runs beside it has ended when measure returns.
func (r *run) measure(ctx context.Context, open func(*rest.Config) (*mapper, error), startOnly bool) error {
	r.figures, r.server = harness.Figures{}, stub.Client{Host: r.Host}
	types, err := stub.BuiltIn()
	if err != nil {
		return err
	}
	for _, d := range stub.Definitions(r.CRDs) {
		types = append(types, d.Types...)
	}
	for _, of := range types {
		r.types = append(r.types, newServed(of))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	err = r.start(ctx, open, func(run func(context.Context) error) {
		beside.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	})
	for _, next := range []func(context.Context) error{r.allWarm, r.allUnknown, r.allNew} {
		if err == nil && !startOnly && !r.brief {
			err = next(ctx)
		}
	}
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, cause) {
		return errors.Join(err, cause)
	}
	return err
}

// start opens the mapper, asks for all types, and measures until it is at rest.
func (r *run) start(ctx context.Context, open func(*rest.Config) (*mapper, error), beside func(run func(context.Context) error)) error {
	empty, cpu := usage.LiveHeap(), usage.CPU()
	if err := r.answers(open, beside); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := r.rest(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	r.figures[restRequests], r.figures[restBytes] = r.requests(), float64(r.traffic.Counts().Bytes)/1e6
	r.figures[restCPU] = harness.Millis(usage.CPU() - cpu)
	_, peak, err := usage.RSS()
	if err != nil {
		return err
	}
	r.figures[peakRSS] = float64(peak) / (1 << 20)
	if r.brief {
		return nil
	}
	for i := range r.types {
		of := &r.types[i]
		if err := errors.Join(r.ask(of), r.askKind(ctx, of), r.askName(ctx, of)); err != nil {
			return err
		}
	}
	r.figures[heap] = float64(usage.LiveHeap()-empty) / 1e3
	for i := range r.types {
		if err := r.askResource(&r.types[i]); err != nil {
			return err
		}
	}
	if err := r.askUnknown(newcomer(9)); err != nil {
		return err
	}
	r.figures[heapFull] = float64(usage.LiveHeap()-empty) / 1e3
	runtime.KeepAlive(r.mapper)
	return nil
}

// answers measures until there is a first answer, and one about each type.
func (r *run) answers(open func(*rest.Config) (*mapper, error), beside func(run func(context.Context) error)) (err error) {
	cfg := &rest.Config{Host: r.Host, QPS: -1}
	r.traffic = usage.Count(cfg)
	begin := time.Now()
	if r.mapper, err = open(cfg); err != nil {
		return err
	}
	if r.mapper.run != nil {
		beside(r.mapper.run)
	}
	if err := r.ask(&r.types[len(r.types)/2]); err != nil {
		return err
	}
	first := time.Since(begin)
	r.figures[firstAnswer], r.figures[firstRequests] = harness.Millis(first), r.requests()
	if r.brief {
		return nil
	}
	again := time.Now()
	for i := range r.types {
		if err := r.ask(&r.types[i]); err != nil {
			return err
		}
	}
	r.figures[allAnswers], r.figures[allRequests] = harness.Millis(first+time.Since(again)), r.requests()
	return nil
}

// requests returns how many requests the mapper has sent.
func (r *run) requests() float64 { return r.traffic.Counts().Requests() }

// rest waits until the mapper has completed its start and sends no more requests.
func (r *run) rest(ctx context.Context) error {
	for r.mapper.settled != nil && !r.mapper.settled() {
		if err := usage.Sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("it does not settle: %w", err)
		}
	}
	return r.traffic.Rest(ctx, r.Rest)
}

// allWarm measures answers about known types.
func (r *run) allWarm(ctx context.Context) error {
	for name, ask := range map[string]func(*served) error{
		mapping: r.ask,
		ofKind:  func(of *served) error { return r.askKind(ctx, of) },
		ofName:  func(of *served) error { return r.askName(ctx, of) },
	} {
		if err := r.warm(name, ask); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// warm measures one answer: the median of batches, each of which asks for all types in turn.
func (r *run) warm(name string, ask func(*served) error) error {
	const fewest, most, enough = 5, 100, 300 * time.Millisecond
	var types []*served
	for i := range r.types {
		if name != ofName || r.types[i].hasName() {
			types = append(types, &r.types[i])
		}
	}
	before := r.requests()
	var times, counts []float64
	for begin := time.Now(); len(times) < fewest || len(times) < most && time.Since(begin) < enough; {
		var earlier, later runtime.MemStats
		runtime.ReadMemStats(&earlier)
		from := time.Now()
		for i := range r.Asks {
			if err := ask(types[i%len(types)]); err != nil {
				return err
			}
		}
		took := time.Since(from)
		runtime.ReadMemStats(&later)
		times = append(times, perAsk(took, r.Asks))
		counts = append(counts, float64(later.Mallocs-earlier.Mallocs)/float64(r.Asks))
	}
	r.figures[name], r.figures[name+allocs] = harness.Median(times), harness.Median(counts)
	r.figures[name+requests] = (r.requests() - before) / float64(len(times))
	return nil
}

// perAsk returns the microseconds of one of n.
func perAsk(took time.Duration, n int) float64 {
	return float64(took) / float64(time.Microsecond) / float64(n)
}

// allUnknown measures answers about a type that is not served, and answers that would be other
// ones once it is served: without forget, both are the same.
func (r *run) allUnknown(context.Context) error {
	err := r.unknown(unknown, r.Asks, func() {})
	if r.mapper.forget != nil {
		return errors.Join(err, r.unknown(noticed, max(1, r.Asks/forgetful), r.mapper.forget))
	}
	r.figures[noticed], r.figures[noticed+requests] = r.figures[unknown], r.figures[unknown+requests]
	return err
}

func (r *run) unknown(name string, n int, forget func()) error {
	of, before, begin := newcomer(7), r.requests(), time.Now()
	for range n {
		forget()
		if err := r.askUnknown(of); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	r.figures[name] = perAsk(time.Since(begin), n)
	r.figures[name+requests] = (r.requests() - before) * float64(r.Asks) / float64(n)
	return nil
}

// allNew measures types that come.
func (r *run) allNew(ctx context.Context) error {
	if err := r.arrival(ctx, polled, 0, r.poll); err != nil || r.mapper.await == nil {
		r.figures[awaited], r.figures[awaited+requests] = r.figures[polled], r.figures[polled+requests]
		return err
	}
	return r.arrival(ctx, awaited, 1, func(ctx context.Context, of *served) error {
		if err := r.mapper.await(ctx, of.GVR); err != nil {
			return err
		}
		return r.ask(of)
	})
}

// arrival creates the i-th newcomer while until waits for it, and deletes it again.
func (r *run) arrival(ctx context.Context, name string, i int, until func(context.Context, *served) error) error {
	before := r.requests()
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	created := make(chan time.Time, 1)
	go func() {
		var at time.Time
		err := usage.Sleep(waiting, lead+time.Duration(r.phase*float64(r.Poll)))
		if err == nil {
			at, err = r.server.Create(waiting, i)
		}
		if err != nil {
			cancel(err)
		}
		created <- at
	}()
	err := until(waiting, newcomer(i))
	now := time.Now()
	if err != nil {
		cancel(err)
	}
	at := <-created
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case waiting.Err() != nil:
		return fmt.Errorf("%s: %w", name, context.Cause(waiting))
	case at.IsZero() || now.Before(at):
		return fmt.Errorf("%s: it was served before it was created", name)
	}
	if err := r.rest(ctx); err != nil {
		return err
	}
	r.figures[name], r.figures[name+requests] = harness.Millis(now.Sub(at)), r.requests()-before
	if err := r.server.Delete(ctx, i); err != nil {
		return err
	}
	return r.rest(ctx)
}

// poll asks for a type until it is served.
func (r *run) poll(ctx context.Context, of *served) error {
	ticker := time.NewTicker(r.Poll)
	defer ticker.Stop()
	for {
		last := r.ask(of)
		if last == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		}
		if r.mapper.forget != nil {
			r.mapper.forget()
		}
	}
}

// ask asks for a type by RESTMapping and checks the answer.
func (r *run) ask(of *served) error {
	mapping, err := r.mapper.RESTMapping(of.kind, of.versions...)
	if err != nil {
		return err
	}
	if mapping.Resource != of.GVR || (mapping.Scope.Name() == meta.RESTScopeNameNamespace) != of.Namespaced {
		return fmt.Errorf("%v is mapped to %v with scope %q", of.GVK, mapping.Resource, mapping.Scope.Name())
	}
	return nil
}

// askKind asks for a type by its kind in the system's own way.
func (r *run) askKind(ctx context.Context, of *served) error {
	if r.mapper.resolveGVK == nil {
		return r.ask(of)
	}
	got, err := r.mapper.resolveGVK(ctx, of.GVK)
	if err == nil && got != of.GVR {
		err = fmt.Errorf("%v is resolved to %v", of.GVK, got)
	}
	return err
}

// hasName reports whether plural and group name the type alone. Plurals of the core group
// without a group may be others', too.
func (s *served) hasName() bool { return s.GVR.Group != "" }

// askName asks for a type by plural and group in the system's own way, if it has such a name.
func (r *run) askName(ctx context.Context, of *served) error {
	if r.mapper.resolve == nil {
		return r.askResource(of)
	}
	if !of.hasName() {
		return nil
	}
	got, err := r.mapper.resolve(ctx, of.ref)
	return of.check(got, err)
}

// askResource asks for a type by ResourceFor, if it has a name.
func (r *run) askResource(of *served) error {
	if !of.hasName() {
		return nil
	}
	return of.check(r.mapper.ResourceFor(of.resource))
}

func (s *served) check(got schema.GroupVersionResource, err error) error {
	if err == nil && (got.Group != s.resource.Group || got.Resource != s.resource.Resource) {
		err = fmt.Errorf("%s is resolved to %v", s.ref, got)
	}
	return err
}

// askUnknown asks for a type that is not served.
func (r *run) askUnknown(of *served) error {
	switch _, err := r.mapper.RESTMapping(of.kind, of.versions...); {
	case err == nil:
		return errors.New("a type that is not served is mapped")
	case !meta.IsNoMatchError(err):
		return fmt.Errorf("not a refusal: %w", err)
	}
	return nil
}

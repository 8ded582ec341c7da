package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/usage"
)

const (
	// patience only ends a test that hangs: under load everything takes long.
	patience = 3 * time.Minute
	// shortRest is enough for a fake.
	shortRest = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.benchtime", "20ms"); err != nil { // of testing.Benchmark
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestMeasure_OnARealServer(t *testing.T) {
	size := cluster.Size{CRDs: 5, SchemaBytes: 2000}
	servers, err := cluster.StartPlain(t.Context(), cluster.Embedded, io.Discard, size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	}()
	server := servers.Reached.(cluster.Connection)
	reached, err := json.Marshal(map[string]any{plain: server, "": server})
	if err != nil {
		t.Fatal(err)
	}
	everyContestant(t, size, reached)
	t.Run("plain", func(t *testing.T) { onlyTheStart(t, size, reached) })
	findWhatIsServed(t, server)
	t.Run("arrival", func(t *testing.T) { arrivals(t, server) })
}

func everyContestant(t *testing.T, of cluster.Size, reached []byte) {
	t.Helper()
	const asks = 40
	s := size{server: cluster.Embedded, Size: of, rest: 700 * time.Millisecond, poll: 20 * time.Millisecond, asks: asks}
	for _, c := range s.contestants() {
		t.Run(c.Name, func(t *testing.T) {
			f, err := c.Measure(t.Context(), harness.Job{Servers: reached, Round: 1, Rounds: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range s.metrics() {
				if _, ok := f[m.Name]; !ok && !strings.HasPrefix(m.Name, plain) {
					t.Errorf("%q is not measured", m.Name)
				}
			}
			if slices.Min([]float64{f[firstAnswer], f[restBytes], f[restCPU], f[peakRSS], f[firstRequests] - 1, f[restRequests] - f[firstRequests] + 1}) <= 0 {
				t.Errorf("start: %v", f)
			}
			if slices.Min([]float64{f[mapping], f[allAnswers] - f[firstAnswer]}) <= 0 || f[mapping+requests]+f[ofKind+requests]+f[ofName+requests] != 0 {
				t.Errorf("%v", f)
			}
			want, known := map[string]float64{"client-go": 2 * asks, "controller-runtime": asks}[c.Name] // forgets, or asks each time
			if known && f[noticed+requests] != want || !known && f[noticed+requests] > 4 {
				t.Errorf("%v requests for a type that is not served, want %v", f[noticed+requests], want)
			}
		})
	}
}

func onlyTheStart(t *testing.T, of cluster.Size, reached []byte) {
	t.Helper()
	s := size{server: cluster.Embedded, Size: of, rest: shortRest}
	job := harness.Job{Part: plain, Servers: reached, Rounds: 1}
	f, err := s.contestants()[0].Measure(t.Context(), job)
	if err != nil || f[restRequests] != 2 || f[mapping] != 0 || f[arrival] != 0 {
		t.Errorf("%v, %v", f, err)
	}
	s.CRDs++
	job.Part = ""
	if _, err := s.contestants()[0].Measure(t.Context(), job); err == nil || !strings.Contains(err.Error(), "6 CRDs: start: ") {
		t.Errorf("a server with less: %v", err)
	}
}

func arrivals(t *testing.T, server cluster.Connection) {
	t.Helper()
	f := newFake()
	r := newTestRun(server, newMapper(f))
	r.phase, r.poll, r.comes = .4, time.Second, 20
	const late = 150 * time.Millisecond
	begin := time.Now()
	var came time.Time
	r.mapper.await = func(ctx context.Context, gvr schema.GroupVersionResource) error {
		client, err := upstream.NewDiscoveryClientForConfig(server.Config())
		if err != nil {
			return err
		}
		for {
			if _, err := client.WithLegacy().ServerResourcesForGroupVersion(gvr.GroupVersion().String()); err == nil {
				break
			}
			if err := usage.Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		came = time.Now()
		of := cluster.Newcomer(r.comes).Types[0]
		f.types[of.GVK] = of
		return usage.Sleep(ctx, late)
	}
	err := r.arrive(t.Context())
	if took := r.figures[arrival]; err != nil || took < harness.Millis(late)-100 || took > harness.Millis(patience) {
		t.Errorf("%v, %v", r.figures, err)
	}
	if after := came.Sub(begin); after < lead+400*time.Millisecond {
		t.Errorf("it came after %v", after)
	}
	r.comes++
	r.mapper.await = func(context.Context, schema.GroupVersionResource) error { return nil }
	f.types[newcomer(r.comes).GVK] = newcomer(r.comes).Type
	if err := r.arrive(t.Context()); err == nil || !strings.Contains(err.Error(), "before it was created") {
		t.Errorf("too early: %v", err)
	}
	r.mapper.await = func(ctx context.Context, _ schema.GroupVersionResource) error { return usage.Sleep(ctx, time.Hour) }
	if err := r.arrive(t.Context()); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("it can't be created: %v", err)
	}
}

func TestPhase_IsSpreadOverTheRounds(t *testing.T) {
	for rounds := 1; rounds < 8; rounds++ {
		var sum float64
		seen := map[float64]bool{}
		for n := 1; n <= rounds; n++ {
			p := phase(n, rounds)
			if p <= 0 || p >= 1 || seen[p] {
				t.Errorf("round %d of %d: %v", n, rounds, p)
			}
			seen[p] = true
			sum += p
		}
		if mean := sum / float64(rounds); mean < .49 || mean > .51 {
			t.Errorf("%d rounds: the mean is %v", rounds, mean)
		}
	}
}

// fake is a mapper that knows the types of a server with two CRDs, and calls asked at each question.
type fake struct {
	meta.RESTMapper // none

	types map[schema.GroupVersionKind]cluster.Type
	asked func(known bool) error
}

func newFake() *fake {
	f := &fake{types: map[schema.GroupVersionKind]cluster.Type{}, asked: func(bool) error { return nil }}
	for _, of := range (system{}).newRun(cluster.Connection{}, 2).types {
		f.types[of.GVK] = of.Type
	}
	return f
}

func (f *fake) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	of, known := f.types[gk.WithVersion(versions[0])]
	if err := f.asked(known); err != nil {
		return nil, err
	}
	if !known {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	scope := meta.RESTScopeRoot
	if of.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: of.GVR, GroupVersionKind: of.GVK, Scope: scope}, nil
}

func (f *fake) ResourceFor(gvr schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return gvr, nil
}

// request sends one request by the client of cfg.
func request(ctx context.Context, cfg *rest.Config) error {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/api", http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

// newTestRun returns a run with a mapper, which knows the types of a server with two CRDs.
func newTestRun(server cluster.Connection, m *mapper) *run {
	s := system{size: size{rest: shortRest, asks: 50, poll: 10 * time.Millisecond}, open: func(*rest.Config) (*mapper, error) { return m, nil }}
	r := s.newRun(server, 2)
	r.mapper = m
	return r
}

// start measures the start of m on a server that answers everything.
func start(t *testing.T, m *mapper, change func(r *run)) (harness.Figures, error) {
	t.Helper()
	r := newTestRun(answers(t), m)
	if change != nil {
		change(r)
	}
	err := r.do(t.Context(), r.start)
	return r.figures, err
}

// answers returns a server that answers everything, until the test ends.
func answers(t *testing.T) cluster.Connection {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(server.Close)
	return cluster.Connection{Host: server.URL}
}

func TestWarm_CountsRequestsAndAllocations(t *testing.T) {
	f := newFake()
	kept := make([]*[100]byte, 3)
	f.asked = func(bool) error {
		kept = append(kept[:0:len(kept)], new([100]byte), new([100]byte), new([100]byte))
		return nil
	}
	r := newTestRun(answers(t), newMapper(f))
	if err := r.allWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.figures[mapping+allocs]; n != 4 || r.figures[mapping+requests] != 0 { // the mapping is the fourth
		t.Errorf("%v", r.figures)
	}
	f.asked = func(bool) error { return request(t.Context(), r.cfg) }
	if err := r.allWarm(t.Context()); err != nil || r.figures[ofKind+requests] < 50 || r.figures[ofKind+allocs] < 10 {
		t.Errorf("with requests: %v, %v", r.figures, err)
	}
	broken := errors.New("broken")
	f.asked = func(bool) error { return broken }
	if err := r.allWarm(t.Context()); !errors.Is(err, broken) {
		t.Errorf("no answers: %v", err)
	}
}

func TestWarm_IsTheTimeOfOneAnswer(t *testing.T) {
	const delay = 2 * time.Millisecond
	f := newFake()
	f.asked = func(bool) error { return usage.Sleep(t.Context(), delay) }
	r := newTestRun(answers(t), newMapper(f))
	err := r.allWarm(t.Context())
	if took := r.figures[mapping] / 1000; err != nil || took < harness.Millis(delay) || took > 50*harness.Millis(delay) {
		t.Errorf("%v ms, %v", took, err)
	}
}

func TestStart_CountsWhatIsRetainedAndAskedAfterTheAnswers(t *testing.T) {
	const size = 8 << 20
	f := newFake()
	var kept []byte
	before := make([]byte, 2*size) // not the mapper's
	f.asked = func(bool) error {
		if kept == nil {
			kept = make([]byte, size)
		}
		return nil
	}
	m := newMapper(f)
	figures, err := start(t, m, func(r *run) {
		m.run = func(ctx context.Context) error {
			for range 6 {
				if err := errors.Join(usage.Sleep(ctx, shortRest/10), request(ctx, r.cfg)); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if figures[heap] < size*.875/1e3 || figures[heap] > size*1.125/1e3 {
		t.Errorf("heap: %v", figures)
	}
	if figures[restRequests] != 6 || figures[firstRequests] != 0 || figures[restBytes] == 0 {
		t.Errorf("requests: %v", figures)
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(kept)
}

func TestStart_FailsIfRunDoes(t *testing.T) {
	broken, cut := errors.New("it does not run"), errors.New("cut off")
	f := newFake()
	m := newMapper(f)
	m.settled, m.run = func() bool { return false }, func(context.Context) error { return broken }
	if _, err := start(t, m, nil); !errors.Is(err, broken) {
		t.Errorf("it never settles: %v", err)
	}
	failed := make(chan struct{})
	m.run = func(ctx context.Context) error {
		context.AfterFunc(ctx, func() { close(failed) })
		return broken
	}
	f.asked = func(bool) error {
		<-failed
		return cut
	}
	if _, err := start(t, m, nil); !errors.Is(err, broken) || !errors.Is(err, cut) {
		t.Errorf("a question fails: %v", err)
	}
}

func TestStart_NoWrongAnswerCounts(t *testing.T) {
	kind := cluster.NewDefinition(1).Types[0].GVK
	for name, spoil := range map[string]func(*fake, *mapper){
		"another resource": func(f *fake, _ *mapper) {
			of := f.types[kind]
			of.GVR.Resource = "others"
			f.types[kind] = of
		},
		"another scope": func(f *fake, _ *mapper) {
			of := f.types[kind]
			of.Namespaced = !of.Namespaced
			f.types[kind] = of
		},
		"by name": func(_ *fake, m *mapper) {
			m.name = func(_ context.Context, of *served) error { return of.check(schema.GroupVersionResource{}, nil) }
		},
		"by kind": func(_ *fake, m *mapper) {
			m.kind = func(_ context.Context, of *served) error { return of.check(schema.GroupVersionResource{}, nil) }
		},
		"a type that is not served": func(f *fake, _ *mapper) {
			of := cluster.Newcomer(9).Types[0]
			f.types[of.GVK] = of
		},
		"not a refusal": func(f *fake, _ *mapper) {
			f.asked = func(known bool) error {
				if known {
					return nil
				}
				return errors.New("broken")
			}
		},
	} {
		f := newFake()
		m := newMapper(f)
		spoil(f, m)
		if _, err := start(t, m, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := start(t, newMapper(newFake()), nil); err != nil {
		t.Errorf("right answers: %v", err)
	}
}

func TestUnknown_ForgetsBeforeEachQuestionWhereThatIsNeeded(t *testing.T) {
	f := newFake()
	var asked, forgotten int
	f.asked = func(bool) error { asked++; return nil }
	m := newMapper(f)
	r := newTestRun(answers(t), m)
	if err := r.unknown(t.Context()); err != nil || asked != 50 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	asked = 0
	m.forget = func() { forgotten++ }
	if err := r.unknown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if few := 50 / forgetful; asked != few || forgotten != few {
		t.Errorf("asked %d times, forgotten %d times", asked, forgotten)
	}
}

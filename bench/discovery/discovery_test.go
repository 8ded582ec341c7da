package discovery

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/cluster/clustertest"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/usage"
)

const (
	// timeout is longer than any step of a test takes.
	timeout = 3 * time.Minute
	// shortIdle is the time without requests for fakes.
	shortIdle = 100 * time.Millisecond
)

// twoCRDs is a server with two CRDs.
var twoCRDs = cluster.Server{Size: cluster.Size{CRDs: 2}}

func TestMain(m *testing.M) {
	if err := flag.Set("test.benchtime", "20ms"); err != nil { // of testing.Benchmark
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestMeasure_OnARealServer(t *testing.T) {
	size := cluster.Size{CRDs: 5, SchemaBytes: 2000}
	server := clustertest.Start(t, cluster.Server{Plain: true, Size: size})
	job := clustertest.Job(t, server)
	eachContestant(t, size, job)
	t.Run("without CRDs", func(t *testing.T) { onlyTheStart(t, size, job) })
	findTypes(t, server)
	t.Run("arrival", func(t *testing.T) { arrivals(t, server) })
}

func eachContestant(t *testing.T, of cluster.Size, job harness.Job) {
	t.Helper()
	const asks = 40
	s := size{Server: cluster.Server{Size: of}, idle: 700 * time.Millisecond, poll: 20 * time.Millisecond, asks: asks}
	job.Round, job.Rounds = 1, 2
	for _, c := range s.contestants() {
		t.Run(c.Name, func(t *testing.T) {
			f, err := c.Measure(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range s.metrics() {
				if _, ok := f[m.Name]; !ok {
					t.Errorf("%q is not measured", m.Name)
				}
			}
			if slices.Min([]float64{f[firstAnswer], f[restBytes], f[restCPU], f[peakRSS], f[firstRequests] - 1, f[restRequests] - f[firstRequests] + 1}) <= 0 {
				t.Errorf("start: %v", f)
			}
			if slices.Min([]float64{f[mapping], f[allAnswers] - f[firstAnswer]}) <= 0 || f[mapping+harness.Requests]+f[ofKind+harness.Requests]+f[ofName+harness.Requests] != 0 {
				t.Errorf("%v", f)
			}
			want, known := map[string]float64{"client-go": 2 * asks, "controller-runtime": asks}[c.Name] // both ask the server each time
			if known && f[noticed+harness.Requests] != want || !known && f[noticed+harness.Requests] > 4 {
				t.Errorf("%v requests for a type that is not served, want %v", f[noticed+harness.Requests], want)
			}
		})
	}
}

func onlyTheStart(t *testing.T, of cluster.Size, job harness.Job) {
	t.Helper()
	s := size{idle: shortIdle}
	job.Rounds = 1
	f, err := s.contestants()[0].Measure(t.Context(), job)
	if err != nil || f[restRequests] != 2 || f[mapping] != 0 || f[arrival] != 0 {
		t.Errorf("%v, %v", f, err)
	}
	s.CRDs = of.CRDs + 1
	if _, err := s.contestants()[0].Measure(t.Context(), job); err == nil || !strings.Contains(err.Error(), "start: ") {
		t.Errorf("a server with fewer CRDs: %v", err)
	}
}

func arrivals(t *testing.T, server cluster.Connection) {
	t.Helper()
	f := newFake()
	r := newTestRun(server, newMapper(f))
	r.phase, r.poll, r.additional = .4, time.Second, 20
	const late = 150 * time.Millisecond
	begin := time.Now()
	var served time.Time
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
		served = time.Now()
		of := cluster.Additional(r.additional).Types[0]
		f.types[of.GVK] = of
		return usage.Sleep(ctx, late)
	}
	err := r.arrive(t.Context())
	if took := r.figures[arrival]; err != nil || took < harness.Millis(late)-100 || took > harness.Millis(timeout) {
		t.Errorf("%v, %v", r.figures, err)
	}
	if after := served.Sub(begin); after < lead+400*time.Millisecond {
		t.Errorf("the type was served after %v", after)
	}
	r.additional++
	r.mapper.await = func(context.Context, schema.GroupVersionResource) error { return nil }
	f.types[additional(r.additional).GVK] = additional(r.additional).Type
	if err := r.arrive(t.Context()); err == nil || !strings.Contains(err.Error(), "before its creation") {
		t.Errorf("known too early: %v", err)
	}
	r.mapper.await = func(ctx context.Context, _ schema.GroupVersionResource) error { return usage.Sleep(ctx, time.Hour) }
	if err := r.arrive(t.Context()); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("a CRD that exists: %v", err)
	}
}

func TestPhase_IsDistributedOverTheRounds(t *testing.T) {
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

// fake is a mapper that knows the types of a server with two CRDs, and calls asked for each question.
type fake struct {
	meta.RESTMapper // nil

	types map[schema.GroupVersionKind]cluster.Type
	asked func(known bool) error
}

func newFake() *fake {
	f := &fake{types: map[schema.GroupVersionKind]cluster.Type{}, asked: func(bool) error { return nil }}
	for _, of := range (system{size: size{Server: twoCRDs}}).newRun(cluster.Connection{}).types {
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

// request sends one request with a client for cfg.
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

// newTestRun returns a run with a mapper on a server with two CRDs.
func newTestRun(server cluster.Connection, m *mapper) *run {
	s := system{size: size{Server: twoCRDs, idle: shortIdle, asks: 50, poll: 10 * time.Millisecond}, open: func(*rest.Config) (*mapper, error) { return m, nil }}
	r := s.newRun(server)
	r.mapper = m
	return r
}

// start measures the start of m on a server that responds to all requests.
func start(t *testing.T, m *mapper, change func(r *run)) (harness.Figures, error) {
	t.Helper()
	r := newTestRun(respondingServer(t), m)
	if change != nil {
		change(r)
	}
	err := r.do(t.Context(), r.start)
	return r.figures, err
}

// respondingServer returns a server that responds to all requests until the end of the test.
func respondingServer(t *testing.T) cluster.Connection {
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
	r := newTestRun(respondingServer(t), newMapper(f))
	if err := r.allWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.figures[mapping+harness.Allocations]; n != 4 || r.figures[mapping+harness.Requests] != 0 { // three, and the mapping
		t.Errorf("%v", r.figures)
	}
	f.asked = func(bool) error { return request(t.Context(), r.cfg) }
	if err := r.allWarm(t.Context()); err != nil || r.figures[ofKind+harness.Requests] < 2 || r.figures[ofKind+harness.Allocations] < 10 {
		t.Errorf("with requests: %v, %v", r.figures, err)
	}
	broken := errors.New("broken")
	f.asked = func(bool) error { return broken }
	if err := r.allWarm(t.Context()); !errors.Is(err, broken) {
		t.Errorf("with errors: %v", err)
	}
}

func TestWarm_IsTheTimeOfOneAnswer(t *testing.T) {
	const delay = 2 * time.Millisecond
	f := newFake()
	longest := delay // a busy machine makes it longer
	f.asked = func(bool) error {
		begun := time.Now()
		err := usage.Sleep(t.Context(), delay)
		longest = max(longest, time.Since(begun))
		return err
	}
	r := newTestRun(respondingServer(t), newMapper(f))
	err := r.allWarm(t.Context())
	if took := r.figures[mapping] / 1000; err != nil || took < harness.Millis(delay) || took > 10*harness.Millis(longest) {
		t.Errorf("%v ms, the longest answer %v, %v", took, longest, err)
	}
}

func TestStart_CountsMemoryAndRequestsUntilAtRest(t *testing.T) {
	const size = 8 << 20
	f := newFake()
	var kept []byte
	before := make([]byte, 2*size) // does not count
	f.asked = func(bool) error {
		if kept == nil {
			kept = make([]byte, size)
		}
		return nil
	}
	m := newMapper(f)
	answered, sent := make(chan struct{}), make(chan struct{})
	all := sync.OnceFunc(func() { close(answered) })
	m.settled = func() bool { // called after the answers
		all()
		select {
		case <-sent:
			return true
		default:
			return false
		}
	}
	figures, err := start(t, m, func(r *run) {
		m.run = func(ctx context.Context) error {
			<-answered
			for range 6 {
				if err := request(ctx, r.cfg); err != nil {
					return err
				}
			}
			close(sent)
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

func TestStart_FailsIfRunFails(t *testing.T) {
	broken, cut := errors.New("run failed"), errors.New("connection cut")
	f := newFake()
	m := newMapper(f)
	m.settled, m.run = func() bool { return false }, func(context.Context) error { return broken }
	if _, err := start(t, m, nil); !errors.Is(err, broken) {
		t.Errorf("start without end: %v", err)
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

func TestStart_FailsOnWrongAnswers(t *testing.T) {
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
			of := cluster.Additional(9).Types[0]
			f.types[of.GVK] = of
		},
		"another error": func(f *fake, _ *mapper) {
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
		t.Errorf("correct answers: %v", err)
	}
}

func TestUnknown_ResetsBeforeEachQuestionIfNecessary(t *testing.T) {
	f := newFake()
	var asked, resets int
	f.asked = func(bool) error { asked++; return nil }
	m := newMapper(f)
	r := newTestRun(respondingServer(t), m)
	if err := r.unknown(t.Context()); err != nil || asked != 50 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	asked = 0
	m.reset = func() { resets++ }
	if err := r.unknown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if few := 50 / resetDivisor; asked != few || resets != few {
		t.Errorf("asked %d times, reset %d times", asked, resets)
	}
}

package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

const (
	// patience only ends a test that hangs: under load everything takes long.
	patience = 3 * time.Minute
	// shortRest is enough for a fake.
	shortRest = 100 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a server with n CRDs until the test ends.
func serve(t *testing.T, n int) stub.Client {
	t.Helper()
	s, err := stub.New(t.Context(), stub.Config{CRDs: n, SchemaBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return stub.Client{Host: server.URL}
}

func TestMeasure_EverySystem(t *testing.T) {
	t.Parallel() // it waits most of the time
	const asks = 40
	for _, s := range systems() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			params, err := json.Marshal(Params{Host: serve(t, 5).Host, CRDs: 5, Rest: 700 * time.Millisecond, Poll: 20 * time.Millisecond, Asks: asks})
			if err != nil {
				t.Fatal(err)
			}
			f, err := measure(t.Context(), harness.Job{Contestant: s.Name, Params: params, Round: 1, Rounds: 2})
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, f, asks)
		})
	}
}

// check checks the figures of a contestant on the server with CRDs.
func check(t *testing.T, s system, f harness.Figures, asks float64) {
	t.Helper()
	if slices.Min([]float64{f[firstAnswer], f[restBytes], f[restCPU], f[peakRSS], f[firstRequests] - 1, f[restRequests] - f[firstRequests] + 1}) <= 0 {
		t.Errorf("start: %v", f)
	}
	if s.brief {
		if len(f) != 6 {
			t.Errorf("more than the start: %v", f)
		}
		return
	}
	for _, m := range metrics(int(asks)) {
		if _, ok := f[m.Name]; !ok && !strings.HasPrefix(m.Name, plain) && !strings.HasSuffix(m.Name, "per CRD") {
			t.Errorf("%q is not measured", m.Name)
		}
	}
	if slices.Min([]float64{f[mapping], f[polled], f[allAnswers] - f[firstAnswer]}) <= 0 || f[mapping+requests]+f[ofKind+requests]+f[ofName+requests] != 0 {
		t.Errorf("%v", f)
	}
	checkOwn(t, s.Name, f, asks)
}

// checkOwn checks how a contestant asks.
func checkOwn(t *testing.T, name string, f harness.Figures, asks float64) {
	t.Helper()
	type own struct {
		unknown, noticed      float64 // requests
		forgets, canBeAwaited bool
	}
	want := map[string]own{
		"client-go":          {0, 2 * asks, true, false}, // asks only if it forgets
		"controller-runtime": {asks, asks, false, false}, // asks each time
		"gvrkit":             {f[unknown+requests], f[unknown+requests], false, true},
	}[name]
	got := own{f[unknown+requests], f[noticed+requests], f[noticed] != f[unknown], f[awaited] != f[polled]}
	if got != want || name == "gvrkit" && got.unknown > 4 {
		t.Errorf("%s: %+v, want %+v", name, got, want)
	}
}

func TestMeasure_OfThePlainServerIsTheStartAndFailuresNameTheServer(t *testing.T) {
	t.Parallel() // it waits most of the time
	params, err := json.Marshal(Params{Host: serve(t, 0).Host, Rest: shortRest})
	if err != nil {
		t.Fatal(err)
	}
	f, err := measure(t.Context(), harness.Job{Contestant: "client-go", Part: plain, Params: params, Rounds: 1})
	if err != nil || f[restRequests] != 2 || f[mapping] != 0 || f[polled] != 0 {
		t.Errorf("%v, %v", f, err)
	}
	params = []byte(strings.Replace(string(params), `"crds":0`, `"crds":2`, 1))
	if _, err := measure(t.Context(), harness.Job{Contestant: "client-go", Params: params, Rounds: 1}); err == nil || !strings.Contains(err.Error(), "2 CRDs: start: ") {
		t.Errorf("a server with less: %v", err)
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

func TestCase_FinishesWithTheHeapPerCRD(t *testing.T) {
	f := harness.Figures{heap: 50, plain + ": " + heap: 30}
	newCase(10, 1).Finish(f)
	if _, ok := f[heapFull+" per CRD"]; ok || f[heap+" per CRD"] != 2 {
		t.Errorf("%v", f)
	}
}

// fake is a mapper that knows the built-in types, and calls asked at each question.
type fake struct {
	meta.RESTMapper // none

	types map[schema.GroupVersionKind]stub.Type
	asked func(known bool) error
}

func newFake(t *testing.T) *fake {
	t.Helper()
	types, err := stub.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{types: map[schema.GroupVersionKind]stub.Type{}, asked: func(bool) error { return nil }}
	for _, of := range types {
		f.types[of.GVK] = of
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

// newRun returns a run whose mapper is m, and counts the requests of cfg.
func newRun(server stub.Client, f *fake, m *mapper) (r *run, cfg *rest.Config) {
	cfg = &rest.Config{Host: server.Host}
	r = &run{traffic: usage.Count(cfg), Params: Params{Host: server.Host, Rest: shortRest, Asks: 50, Poll: 10 * time.Millisecond}, server: server, mapper: m, figures: harness.Figures{}}
	for _, of := range f.types {
		r.types = append(r.types, newServed(of))
	}
	return r, cfg
}

// start measures the start of m.
func start(t *testing.T, server stub.Client, m *mapper) (harness.Figures, error) {
	t.Helper()
	return startConfig(t, server, m, new(*rest.Config))
}

// startConfig is start. It sets into to the config whose requests are counted.
func startConfig(t *testing.T, server stub.Client, m *mapper, into **rest.Config) (harness.Figures, error) {
	t.Helper()
	r := &run{Params: Params{Host: server.Host, Rest: shortRest}}
	err := r.measure(t.Context(), func(cfg *rest.Config) (*mapper, error) {
		*into = cfg
		return m, nil
	}, true)
	return r.figures, err
}

func TestWarm_CountsRequestsAndAllocations(t *testing.T) {
	server, f := serve(t, 0), newFake(t)
	kept := make([]*[100]byte, 3)
	f.asked = func(bool) error {
		kept = append(kept[:0:len(kept)], new([100]byte), new([100]byte), new([100]byte))
		return nil
	}
	r, cfg := newRun(server, f, &mapper{RESTMapper: f})
	if err := r.allWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.figures[mapping+allocs]; n < 3.9 || n > 4.5 || r.figures[mapping+requests] != 0 { // the mapping is the fourth
		t.Errorf("%v", r.figures)
	}
	f.asked = func(bool) error { return request(t.Context(), cfg) }
	if err := r.allWarm(t.Context()); err != nil || r.figures[ofKind+requests] != 50 || r.figures[ofKind+allocs] < 10 {
		t.Errorf("with requests: %v, %v", r.figures, err)
	}
}

func TestWarm_IsTheTimeOfOneAnswer(t *testing.T) {
	const delay = 2 * time.Millisecond
	f := newFake(t)
	f.asked = func(bool) error { return usage.Sleep(t.Context(), delay) }
	r, _ := newRun(serve(t, 0), f, &mapper{RESTMapper: f})
	err := r.warm(mapping, r.ask)
	if took := r.figures[mapping] / 1000; err != nil || took < harness.Millis(delay) || took > 50*harness.Millis(delay) {
		t.Errorf("%v ms, %v", took, err)
	}
}

func TestStart_CountsWhatIsRetainedAndAskedAfterTheAnswers(t *testing.T) {
	const size = 8 << 20
	server, f := serve(t, 0), newFake(t)
	var kept []byte
	before := make([]byte, 2*size) // not the mapper's
	f.asked = func(bool) error {
		if kept == nil {
			kept = make([]byte, size)
		}
		return nil
	}
	var cfg *rest.Config
	figures, err := startConfig(t, server, &mapper{RESTMapper: f, run: func(ctx context.Context) error {
		for range 6 {
			if err := errors.Join(usage.Sleep(ctx, shortRest/10), request(ctx, cfg)); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}}, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if figures[heap] < size*.875/1e3 || figures[heap] > size*1.125/1e3 || figures[heapFull] < size*.875/1e3 {
		t.Errorf("heap: %v", figures)
	}
	if figures[restRequests] != 6 || figures[firstRequests] != 0 || figures[restBytes] == 0 {
		t.Errorf("requests: %v", figures)
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(kept)
}

func TestStart_FailsIfRunDoes(t *testing.T) {
	server, broken, cut := serve(t, 0), errors.New("it does not run"), errors.New("cut off")
	f := newFake(t)
	m := &mapper{RESTMapper: f, settled: func() bool { return false }, run: func(context.Context) error { return broken }}
	if _, err := start(t, server, m); !errors.Is(err, broken) {
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
	if _, err := start(t, server, m); !errors.Is(err, broken) || !errors.Is(err, cut) {
		t.Errorf("a question fails: %v", err)
	}
}

func TestStart_NoWrongAnswerCounts(t *testing.T) {
	server := serve(t, 0)
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	wrong := func(context.Context) (schema.GroupVersionResource, error) { return schema.GroupVersionResource{}, nil }
	for name, spoil := range map[string]func(*fake, *mapper){
		"another resource": func(f *fake, _ *mapper) {
			of := f.types[deployment]
			of.GVR.Resource = "daemonsets"
			f.types[deployment] = of
		},
		"another scope": func(f *fake, _ *mapper) {
			of := f.types[deployment]
			of.Namespaced = false
			f.types[deployment] = of
		},
		"resolve": func(_ *fake, m *mapper) {
			m.resolve = func(ctx context.Context, _ string) (schema.GroupVersionResource, error) { return wrong(ctx) }
		},
		"resolveGVK": func(_ *fake, m *mapper) {
			m.resolveGVK = func(ctx context.Context, _ schema.GroupVersionKind) (schema.GroupVersionResource, error) {
				return wrong(ctx)
			}
		},
		"a type that is not served": func(f *fake, _ *mapper) {
			of := stub.Newcomer(9).Types[0]
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
		f := newFake(t)
		m := &mapper{RESTMapper: f}
		spoil(f, m)
		if _, err := start(t, server, m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := start(t, server, &mapper{RESTMapper: newFake(t)}); err != nil {
		t.Errorf("right answers: %v", err)
	}
}

func TestUnknown_ForgetsBeforeEachQuestionWhereThatIsNeeded(t *testing.T) {
	f := newFake(t)
	var asked, forgotten int
	f.asked = func(bool) error { asked++; return nil }
	r, _ := newRun(serve(t, 0), f, &mapper{RESTMapper: f, forget: func() { forgotten++ }})
	if err := r.allUnknown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if few := 50 / forgetful; asked != 50+few || forgotten != few {
		t.Errorf("asked %d times, forgotten %d times", asked, forgotten)
	}
}

// waitServed waits until the server serves gv.
func waitServed(ctx context.Context, server stub.Client, gv schema.GroupVersion) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.Host+"/apis/"+gv.String(), http.NoBody)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if err := res.Body.Close(); err != nil || res.StatusCode == http.StatusOK {
			return err
		}
		if err := usage.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func TestArrival_LastsFromEstablishedToTheAnswer(t *testing.T) {
	const late = 150 * time.Millisecond
	server, f := serve(t, 0), newFake(t)
	r, _ := newRun(server, f, &mapper{RESTMapper: f})
	r.Poll, r.phase = time.Second, .4
	begin := time.Now()
	var came time.Time
	err := r.arrival(t.Context(), polled, 3, func(ctx context.Context, of *served) error {
		if of.GVK != stub.Newcomer(3).Types[0].GVK {
			return fmt.Errorf("asked for %v", of.GVK)
		}
		if err := waitServed(ctx, server, of.GVR.GroupVersion()); err != nil {
			return err
		}
		came = time.Now()
		return usage.Sleep(ctx, late)
	})
	if took := r.figures[polled]; err != nil || took < harness.Millis(late) || took > harness.Millis(patience) {
		t.Errorf("%v, %v", r.figures, err)
	}
	if after := came.Sub(begin); after < lead+400*time.Millisecond {
		t.Errorf("it came after %v", after)
	}
	if err := server.Delete(t.Context(), 3); err == nil {
		t.Error("it is still there")
	}
}

func TestArrival_FailsIfItIsTooEarlyOrCannotCome(t *testing.T) {
	server, f := serve(t, 0), newFake(t)
	r, _ := newRun(server, f, &mapper{RESTMapper: f})
	if _, err := server.Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := r.arrival(t.Context(), polled, 1, r.poll); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("it can't be created: %v", err)
	}
	err := r.arrival(t.Context(), polled, 2, func(context.Context, *served) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "before it was created") {
		t.Errorf("too early: %v", err)
	}
}

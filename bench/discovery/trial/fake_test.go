package trial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
)

// shortRest is rest enough for a fake.
const shortRest = 100 * time.Millisecond

// fake is a mapper that knows what is built in, and does what the test wants at each
// question.
type fake struct {
	meta.RESTMapper // none

	types map[schema.GroupVersionKind]cluster.Type
	asked func(known bool) error
}

func newFake(t *testing.T) *fake {
	t.Helper()
	types, err := cluster.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{types: map[schema.GroupVersionKind]cluster.Type{}, asked: func(bool) error { return nil }}
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

// system is what opens m.
func system(m *mappers.Mapper) mappers.System {
	return mappers.System{Name: "fake", Open: func(*rest.Config) (*mappers.Mapper, error) { return m, nil }}
}

// request makes one request of the cluster.
func request(ctx context.Context, admin cluster.Admin) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin.Host+"/api", http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// opened returns a trial whose mapper is m.
func opened(t *testing.T, admin cluster.Admin, f *fake, m *mappers.Mapper) *trial {
	t.Helper()
	tr := &trial{job: Job{Host: admin.Host, Rest: shortRest, Asks: 50, Poll: 10 * time.Millisecond}, admin: admin, mapper: m}
	for _, of := range f.types {
		tr.types = append(tr.types, newServed(of))
	}
	return tr
}

func TestWarm_CountsRequestsAndAllocations(t *testing.T) {
	admin, f := serve(t, 0), newFake(t)
	var kept []*[100]byte
	f.asked = func(bool) error {
		kept = append(kept[:0:len(kept)], new([100]byte), new([100]byte), new([100]byte))
		return nil
	}
	kept = make([]*[100]byte, 3)
	tr := opened(t, admin, f, &mappers.Mapper{RESTMapper: f})
	if err := tr.allWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The mapping is the fourth.
	if w := tr.figures.Mapping; w.Allocs < 3.9 || w.Allocs > 4.5 || w.Requests != 0 {
		t.Errorf("%+v", w)
	}
	f.asked = func(bool) error { return request(t.Context(), admin) }
	if err := tr.allWarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := tr.figures.Kind; w.Requests != 50 || w.Allocs < 10 {
		t.Errorf("with requests: %+v", w)
	}
}

func TestWarm_IsTheTimeOfOneAsk(t *testing.T) {
	const delay = 2 * time.Millisecond
	f := newFake(t)
	f.asked = func(bool) error { return wait(t.Context(), delay) }
	tr := opened(t, serve(t, 0), f, &mappers.Mapper{RESTMapper: f})
	w, err := tr.warm(t.Context(), func(i int) error { return tr.ask(&tr.types[i%len(tr.types)]) })
	if err != nil || time.Duration(w.Nanos) < delay || time.Duration(w.Nanos) > 50*delay {
		t.Errorf("%+v, %v", w, err)
	}
}

func TestStart_CountsWhatIsRetainedAndAskedAfterTheAnswers(t *testing.T) {
	const size = 8 << 20
	admin, f := serve(t, 0), newFake(t)
	var kept []byte
	before := make([]byte, 2*size) // which is not the system's, as this request is not
	if err := request(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	f.asked = func(bool) error {
		if kept == nil {
			kept = make([]byte, size)
		}
		return nil
	}
	m := &mappers.Mapper{RESTMapper: f, Run: func(ctx context.Context) error {
		for range 6 {
			if err := wait(ctx, shortRest/2); err != nil {
				return err
			}
			if err := request(ctx, admin); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}}
	figures, err := measure(t.Context(), Job{Host: admin.Host, Rest: shortRest, Brief: true}, system(m))
	if err != nil {
		t.Fatal(err)
	}
	s := figures.Start
	if s.Heap < size-size/8 || s.Heap > size+size/8 || s.FullHeap < size-size/8 {
		t.Errorf("heap: %+v", s)
	}
	if s.Requests != 6 || s.FirstRequests != 0 || s.AllRequests != 0 || s.Bytes == 0 {
		t.Errorf("requests: %+v", s)
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(kept)
}

func TestStart_FailsIfRunDoes(t *testing.T) {
	broken, cut := errors.New("it does not run"), errors.New("cut off")
	f := newFake(t)
	m := &mappers.Mapper{
		RESTMapper: f, Settled: func() bool { return false },
		Run: func(context.Context) error { return broken },
	}
	job := Job{Host: serve(t, 0).Host, Rest: shortRest}
	if _, err := measure(t.Context(), job, system(m)); !errors.Is(err, broken) {
		t.Errorf("it never settles: %v", err)
	}
	failed := make(chan struct{})
	m.Run = func(ctx context.Context) error {
		context.AfterFunc(ctx, func() { close(failed) })
		return broken
	}
	f.asked = func(bool) error {
		<-failed
		return cut
	}
	if _, err := measure(t.Context(), job, system(m)); !errors.Is(err, broken) || !errors.Is(err, cut) {
		t.Errorf("a question fails: %v", err)
	}
}

func TestTrial_NoWrongAnswerCounts(t *testing.T) {
	admin := serve(t, 0)
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for name, spoil := range map[string]func(*fake, *mappers.Mapper){
		"another resource": func(f *fake, _ *mappers.Mapper) {
			of := f.types[deployment]
			of.GVR.Resource = "daemonsets"
			f.types[deployment] = of
		},
		"another scope": func(f *fake, _ *mappers.Mapper) {
			of := f.types[deployment]
			of.Namespaced = false
			f.types[deployment] = of
		},
		"Resolve": func(_ *fake, m *mappers.Mapper) {
			m.Resolve = func(context.Context, string) (schema.GroupVersionResource, error) {
				return schema.GroupVersionResource{}, nil
			}
		},
		"ResolveGVK": func(_ *fake, m *mappers.Mapper) {
			m.ResolveGVK = func(context.Context, schema.GroupVersionKind) (schema.GroupVersionResource, error) {
				return schema.GroupVersionResource{}, nil
			}
		},
		"what is not there": func(f *fake, _ *mappers.Mapper) {
			of := cluster.Newcomer(9).Types[0]
			f.types[of.GVK] = of
		},
		"no refusal": func(f *fake, _ *mappers.Mapper) {
			f.asked = func(known bool) error {
				if known {
					return nil
				}
				return errors.New("broken")
			}
		},
	} {
		f := newFake(t)
		m := &mappers.Mapper{RESTMapper: f}
		spoil(f, m)
		if _, err := measure(t.Context(), Job{Host: admin.Host, Rest: shortRest, Brief: true}, system(m)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f := newFake(t)
	if _, err := measure(t.Context(), Job{Host: admin.Host, Rest: shortRest, Brief: true}, system(&mappers.Mapper{RESTMapper: f})); err != nil {
		t.Errorf("unspoilt: %v", err)
	}
}

func TestUnknown_ForgetsBeforeEachAskWhereThatIsNeeded(t *testing.T) {
	f := newFake(t)
	var asked, forgotten int
	f.asked = func(bool) error { asked++; return nil }
	tr := opened(t, serve(t, 0), f, &mappers.Mapper{RESTMapper: f, Forget: func() { forgotten++ }})
	if err := tr.allUnknown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if few := 50 / forgetful; asked != 50+few || forgotten != few || tr.figures.Unknown.Asks != 50 || tr.figures.Noticed.Asks != few {
		t.Errorf("asked %d times, forgotten %d times: %+v, %+v", asked, forgotten, tr.figures.Unknown, tr.figures.Noticed)
	}
}

func TestArrival_LastsFromEstablishedToTheAnswer(t *testing.T) {
	const late = 150 * time.Millisecond
	admin, f := serve(t, 0), newFake(t)
	tr := opened(t, admin, f, &mappers.Mapper{RESTMapper: f})
	newcomer := cluster.Newcomer(3)
	tr.job.Poll, tr.job.Phase = time.Second, .4
	begin := time.Now()
	var came time.Time
	arrival, err := tr.arrival(t.Context(), 3, func(ctx context.Context, of *served) error {
		if of.GVK != newcomer.Types[0].GVK {
			return fmt.Errorf("asked for %v", of.GVK)
		}
		if err := isServed(ctx, admin, of.GVR.GroupVersion()); err != nil {
			return err
		}
		came = time.Now()
		return wait(ctx, late)
	})
	if err != nil || arrival.Latency < late || arrival.Latency > late+3*time.Minute || arrival.Requests < 2 {
		t.Errorf("%+v, %v", arrival, err)
	}
	if after := came.Sub(begin); after < lead+400*time.Millisecond {
		t.Errorf("it came after %v", after)
	}
	if err := admin.Delete(t.Context(), 3); err == nil {
		t.Error("it is still there")
	}
}

// isServed waits until the cluster serves gv.
func isServed(ctx context.Context, admin cluster.Admin, gv schema.GroupVersion) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin.Host+"/apis/"+gv.String(), http.NoBody)
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
		if err := wait(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func TestArrival_FailsIfItIsTooEarlyOrCannotCome(t *testing.T) {
	admin, f := serve(t, 0), newFake(t)
	tr := opened(t, admin, f, &mappers.Mapper{RESTMapper: f})
	if _, err := admin.Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	_, err := tr.arrival(t.Context(), 1, tr.poll)
	if err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("it can't be created: %v", err)
	}
	_, err = tr.arrival(t.Context(), 2, func(context.Context, *served) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "before it came") {
		t.Errorf("too early: %v", err)
	}
}

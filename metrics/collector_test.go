package metrics_test

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/metrics"
	"github.com/gvrkit/gvrkit/status"
)

// gears are not served.
var gears = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gears"}

// The program has two leases on widgets, one with a slow handler, and a lease on a type that is not
// served. The test does not check the number of discovery requests.
func TestCollector_CollectsAllMetrics(t *testing.T) {
	t.Setenv("GVRKIT_PACKED_CACHES", "false") // the size of a cache depends on the form of its objects
	inBubble(t, func(in bubble) {
		for i := range 3 {
			in.create(fmt.Sprintf("w%d", i))
		}
		l := in.acquire(widgets)
		in.acquire(widgets)
		in.acquire(gears, dynamicinformer.WithAllowAbsent())
		let := make(slow)
		for _, handler := range []cache.ResourceEventHandler{let, cache.ResourceEventHandlerFuncs{}} {
			if _, err := l.AddEventHandler(handler); err != nil {
				in.Fatal(err)
			}
		}
		<-time.After(90 * time.Second)
		want, err := os.ReadFile("testdata/scrape.txt")
		if err != nil {
			in.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(string(want)) {
			if name, is := strings.CutPrefix(line, "# TYPE "); is {
				names = append(names, strings.Fields(name)[0])
			}
		}
		if err := testutil.CollectAndCompare(in.collector, bytes.NewReader(want), names...); err != nil {
			in.Error(err)
		}
		if problems, err := testutil.CollectAndLint(in.collector); err != nil || len(problems) > 0 {
			in.Errorf("lint: %v, %v", problems, err)
		}
		close(let)
	})
}

func TestCollector_WorksBeforeStartAndAfterShutdown(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	c := metrics.NewCollector(f, nil)
	base := gather(t, c)
	f.ForResource(widgets)
	checkSeries(t, gather(t, c), map[string]float64{
		`informers{state="Unknown"}`: 1,
		`informer_state{group="example.com",resource="widgets",state="Unknown",version="v1"}`:      1,
		`informer_reason{group="example.com",reason="NotStarted",resource="widgets",version="v1"}`: 1,
	})
	shutdown(t, f)
	after := gather(t, c)
	checkSeries(t, after, map[string]float64{`informers{state="Stopped"}`: 1})
	if len(after) != len(base) {
		t.Errorf("%d series after Shutdown, %d before there was an informer: %v", len(after), len(base), after)
	}
}

// A program that ignores the error of dynamicinformer.New has a nil factory.
func TestCollector_ANilFactoryIsAnErrorOfTheScrape(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCollector(nil))
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "the factory of NewCollector is nil") {
		t.Errorf("error = %v", err)
	}
}

func TestCollector_SeriesEndWithTheInformer(t *testing.T) {
	inBubble(t, func(in bubble) {
		base := gather(in.T, in.collector)
		for range 3 {
			l := in.acquire(widgets)
			there := gather(in.T, in.collector)
			if len(ofResources(there)) == 0 || len(there) != len(base)+len(ofResources(there)) {
				in.Errorf("%d series with an informer, %d without: %v", len(there), len(base), there)
			}
			l.Release()
			if left := ofResources(gather(in.T, in.collector)); len(left) > 0 {
				in.Errorf("left: %v", left)
			}
		}
		if got := gather(in.T, in.collector); len(got) != len(base) {
			in.Errorf("%d series at the end, %d at the beginning", len(got), len(base))
		}
	})
}

// A blocked handler does not delay a scrape, and has a series.
func TestCollector_HandlersBacklogAndLag(t *testing.T) {
	inBubble(t, func(in bubble) {
		for i := range 3 {
			in.create(fmt.Sprintf("w%d", i))
		}
		l := in.acquire(widgets)
		first, second := make(slow), make(slow)
		for _, handler := range []slow{first, second} {
			if _, err := l.AddEventHandler(handler); err != nil {
				in.Fatal(err)
			}
		}
		<-time.After(10 * time.Second)
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{
			ofWidgets("informer_handlers"):             2,
			ofWidgets("informer_handler_backlog"):      6,
			ofWidgets("informer_handler_backlog_max"):  3,
			ofWidgets("informer_handler_lag_seconds"):  10,
			ofWidgets("informer_handler_call_seconds"): 10,
		})
		first <- struct{}{}
		close(second)
		<-time.After(5 * time.Second)
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{
			ofWidgets("informer_handler_backlog"):      2,
			ofWidgets("informer_handler_backlog_max"):  2,
			ofWidgets("informer_handler_lag_seconds"):  5, // at the end of a call
			ofWidgets("informer_handler_call_seconds"): 5,
		})
		first <- struct{}{}
		<-time.After(5 * time.Second)
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{
			ofWidgets("informer_handler_backlog"):      1,
			ofWidgets("informer_handler_lag_seconds"):  10,
			ofWidgets("informer_handler_call_seconds"): 5,
		})
		close(first)
		<-time.After(5 * time.Second)
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{
			ofWidgets("informer_handler_backlog"):      0,
			ofWidgets("informer_handler_backlog_max"):  0,
			ofWidgets("informer_handler_lag_seconds"):  0,
			ofWidgets("informer_handler_call_seconds"): 0,
		})
	})
}

// A cache is stale while requests fail.
func TestCollector_ReportsTheAgeOfAStaleCache(t *testing.T) {
	inBubble(t, func(in bubble) {
		in.create("w0")
		in.acquire(widgets)
		in.cluster.Intercept(func(context.Context, fakecluster.Request) error {
			return apierrors.NewForbidden(widgets.GroupResource(), "", nil)
		})
		in.cluster.CloseWatches(widgets)
		synctest.Wait()
		<-time.After(time.Minute)
		all := gather(in.T, in.collector)
		if got := all[ofWidgets("informer_stale_seconds")]; got < 55 || got > 60 {
			in.Errorf("stale for %v s after a minute", got)
		}
		checkSeries(in.T, all, map[string]float64{
			`informer_state{group="example.com",resource="widgets",state="Degraded",version="v1"}`: 1,
		})
		in.cluster.Intercept(nil)
		<-time.After(2 * time.Minute)
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{ofWidgets("informer_stale_seconds"): 0})
	})
}

// Each name is a valid label value. Names with equal label values have one series.
func TestCollector_AnyNameIsALabel(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	c := metrics.NewCollector(f)
	for _, name := range []string{
		"", " ", `a"b`, "a\\b", "a\nb", "<b>bold</b>", "{a=\"b\"} 1", "# HELP x", "\x00", "ünïcödé", "\xff", "\xfe", "a\xffb",
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20+1), strings.Repeat("ü", 1000), "__name__",
	} {
		f.ForResource(schema.GroupVersionResource{Group: name, Version: name, Resource: name})
	}
	leased := map[string]float64{}
	for name, value := range gather(t, c) {
		if strings.HasPrefix(name, "informer_leases") {
			leased[name] = value
		}
		if len(name) > 3*maxLabel+200 {
			t.Errorf("a label of %d bytes", len(name))
		}
	}
	if len(leased) != 15 { // the names with \xff and \xfe are equal, and so are the long names
		t.Errorf("%d resources: %v", len(leased), ofResources(leased))
	}
	if _, err := testutil.CollectAndLint(c); err != nil {
		t.Error(err)
	}
	shutdown(t, f)
}

// maxLabel is the maximum length of a quoted label with one invalid rune at its end.
const maxLabel = 2 * 260

// The number of series is limited by the resources of the program, and by the option.
func TestCollector_TenThousandTypes(t *testing.T) {
	const types = 10_000
	f := newFactory(t, fakecluster.New())
	for i := range types {
		f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("types%05d", i)})
	}
	if got := len(samples(metrics.NewCollector(f))); got != types*19+7 {
		t.Errorf("%d series, want 19 of each resource and 7", got)
	}
	limited := gather(t, metrics.NewCollector(f, metrics.WithResourceLimit(10)))
	if got := len(ofResources(limited)); got != 10*19 {
		t.Errorf("%d series of 10 resources, want %d", got, 10*19)
	}
	checkSeries(t, limited, map[string]float64{
		`informers{state="Unknown"}`: types,
		"resources_omitted{}":        types - 10,
		`informer_leases{group="example.com",resource="types00009",version="v1"}`: 0,
	})
	shutdown(t, f)
}

// samples returns the metrics of c without checks.
func samples(c prometheus.Collector) []prometheus.Metric {
	to := make(chan prometheus.Metric, 1000)
	go func() {
		defer close(to)
		c.Collect(to)
	}()
	var all []prometheus.Metric
	for sample := range to {
		all = append(all, sample)
	}
	return all
}

// Scrapes run while types are created and deleted, leases are acquired and released, and the factory
// is shut down. Each scrape is complete, and at the end there are no series of resources.
func TestCollector_ScrapesDuringChangesAndShutdown(t *testing.T) {
	name, err := cache.NewInformerName(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer name.Release()
	informers := metrics.NewInformerMetrics()
	inBubble(t, func(in bubble) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(in.collector, informers)
		base := scrape(in.T, registry)
		var all, scrapers sync.WaitGroup
		over := make(chan struct{})
		for range 3 {
			scrapers.Go(func() {
				for {
					scrape(in.T, registry)
					select {
					case <-over:
						return
					case <-time.After(10 * time.Millisecond):
					}
				}
			})
		}
		all.Go(func() {
			for range 50 {
				in.cluster.Withdraw(widgets)
				<-time.After(50 * time.Millisecond)
				in.cluster.Serve(widgetType)
				<-time.After(50 * time.Millisecond)
			}
		})
		for range 4 {
			all.Go(func() {
				for range 50 {
					l, err := in.factory.Acquire(in.Context(), widgets, dynamicinformer.WithAllowAbsent())
					if err != nil {
						in.Errorf("Acquire: %v", err)
						return
					}
					if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
						in.Errorf("AddEventHandler: %v", err)
					}
					<-time.After(30 * time.Millisecond)
					l.Release()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if got := scrape(in.T, registry); len(got) != len(base) {
			in.Errorf("%d series without leases, %d at the beginning: %v", len(got), len(base), ofResources(got))
		}
		for range 10 {
			in.acquire(widgets, dynamicinformer.WithSeparateInformer(), dynamicinformer.WithAllowAbsent())
		}
		shutdown(in.T, in.factory)
		close(over)
		scrapers.Wait()
		if got := scrape(in.T, registry); len(got) != len(base) {
			in.Errorf("%d series after Shutdown, %d at the beginning: %v", len(got), len(base), ofResources(got))
		}
	}, dynamicinformer.WithInformerMetrics(name, informers))
}

func TestCollector_ReportsDiscovery(t *testing.T) {
	inBubble(t, func(in bubble) {
		synctest.Wait() // the resolver runs after the start of the factory
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{"discovery_running{}": 1, "discovery_requests_total{}": 2})
		in.acquire(widgets)
		in.acquire(gears, dynamicinformer.WithAllowAbsent())
		all := gather(in.T, in.collector)
		checkSeries(in.T, all, map[string]float64{
			"discovery_running{}": 1, "discovery_types{}": 1, `discovery_source_state{source="documents",state="Watching"}`: 1,
		})
		for _, name := range []string{
			"discovery_requests_total{}", `discovery_answers_total{outcome="served"}`, `discovery_answers_total{outcome="not_served"}`,
		} {
			if all[name] == 0 {
				in.Errorf("%s = 0", name)
			}
		}
		in.cluster.Intercept(func(context.Context, fakecluster.Request) error {
			return apierrors.NewServiceUnavailable("down")
		})
		if _, err := in.factory.Acquire(in.Context(), schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "bolts"}); err == nil {
			in.Error("Acquire has no error")
		}
		if all := gather(in.T, in.collector); all[`discovery_answers_total{outcome="inconclusive"}`] == 0 {
			in.Error("no inconclusive answer")
		}
	})
	without := gather(t, metrics.NewCollector(newFactory(t, fakecluster.New())))
	maps.DeleteFunc(without, func(name string, _ float64) bool { return !strings.HasPrefix(name, "discovery") })
	if diff := cmp.Diff(map[string]float64{}, without); diff != "" {
		t.Errorf("without discovery (-want +got):\n%s", diff)
	}
}

// A new constant must get a series.
func TestCollector_HasASeriesForEachState(t *testing.T) {
	scraped := map[string]bool{}
	inBubble(t, func(in bubble) {
		in.acquire(widgets)
		for name := range gather(in.T, in.collector) {
			for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("{},", r) }) {
				if value, is := strings.CutPrefix(part, "state="); is {
					scraped[strings.SplitN(name, "{", 2)[0]+" "+value] = true
				}
			}
		}
	})
	for _, state := range constants(t, "../status/state.go", "State") {
		if !scraped["informers "+strconv.Quote(state)] {
			t.Errorf("gvrkit_informers has no series for the state %s", state)
		}
		if live := state != string(status.StateStopped); live != scraped["informer_state "+strconv.Quote(state)] {
			t.Errorf("the state %s of an informer: series %v, want %v", state, !live, live)
		}
	}
}

// constants returns the values of the string constants of a type in a file.
func constants(t *testing.T, path, ofType string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if named, is := spec.Type.(*ast.Ident); is && named.Name == ofType && len(spec.Values) == 1 {
			if literal, is := spec.Values[0].(*ast.BasicLit); is {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no constants of type %s", path, ofType)
	}
	return values
}

// The series of the budget are those of Factory.MemoryBudget. Without a budget, there are none.
func TestCollector_MemoryBudget(t *testing.T) {
	inBubble(t, func(in bubble) {
		in.create("a")
		in.acquire(widgets)
		<-time.After(time.Minute)
		series, b := gather(in.T, in.collector), in.factory.MemoryBudget()
		got := status.Budget{Limit: int64(series["memory_budget_bytes{}"]), Caches: int64(series[`memory_used_bytes{use="caches"}`]), Lists: int64(series[`memory_used_bytes{use="lists"}`])}
		if got != b || b.Limit != 1<<20 || b.Caches == 0 || float64(b.Caches) != series[`informer_cache_bytes{group="example.com",resource="widgets",version="v1"}`] {
			in.Errorf("series %+v, the budget is %+v", got, b)
		}
	}, dynamicinformer.WithMemoryBudget(1<<20))
	inBubble(t, func(in bubble) {
		for name := range gather(in.T, in.collector) {
			if strings.HasPrefix(name, "memory_") {
				in.Errorf("series %s without a budget", name)
			}
		}
	})
}

package browser_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// serve serves handler on loopback until the test ends.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// await waits until the informer of l is in state.
func await(ctx context.Context, t *testing.T, l *dynamicinformer.Lease, state status.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	last := l.Status()
	for last = range l.Watch(ctx) {
		if last.State == state {
			return
		}
	}
	t.Errorf("%v is %s, not %s: %v", last.GVR, last.State, state, last.Err)
}

// forbid makes later lists and watches of gvr forbidden.
func forbid(cluster *fakecluster.Cluster, gvr schema.GroupVersionResource) {
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.GVR == gvr {
			return apierrors.NewForbidden(gvr.GroupResource(), "", errors.New("not you"))
		}
		return nil
	})
	cluster.Expire(gvr)
	cluster.CloseWatches(gvr)
}

func TestPage_TableShowsTheStatus(t *testing.T) {
	browser := newChromium(t)
	cluster := newCluster()
	create(t, cluster, blocks, "", 3)
	create(t, cluster, pools, "", 1)
	f := newFactory(t, cluster)
	f.Start(t.Context())
	defer shutdown(t, f)
	synced := acquire(t, f, blocks, dynamicinformer.WithLeaseName("gc"))
	if _, err := synced.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
		t.Fatal(err)
	}
	refused, absent := acquire(t, f, pools), acquire(t, f, apps)
	await(t.Context(), t, synced, status.StateSynced)
	await(t.Context(), t, refused, status.StateSynced)
	forbid(cluster, pools)
	await(t.Context(), t, refused, status.StateDegraded)
	await(t.Context(), t, absent, status.StateNotServed)

	document := browser.dom(serve(t, f.Handler()), time.Second)
	var want, got [][]string
	for _, s := range f.Status() {
		handlers := map[int]string{0: "-", 1: "1"}[len(s.Handlers)]
		want = append(want, []string{string(s.State), discovery.RefOf(s.GVR).String(), string(s.Reason), fmt.Sprint(s.Objects), handlers})
	}
	for _, row := range table(document) {
		reason, _, _ := strings.Cut(row[2], " ")
		state, _, _ := strings.Cut(row[0], " ") // without its duration
		got = append(got, []string{state, row[1], reason, row[3], row[5]})
	}
	byName := func(a, b []string) int { return strings.Compare(a[1], b[1]) }
	slices.SortFunc(want, byName)
	if len(got) == 3 && (got[0][0] != "Degraded" || got[1][0] != "NotServed" || got[2][0] != "Synced") {
		t.Errorf("the first rows are not problems: %q", got)
	}
	slices.SortFunc(got, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if connection(document) != "Live" {
		t.Errorf("the script does not run: %q", connection(document))
	}
}

// The type becomes degraded after the page was opened. The browser requests the page once, and the script
// requests the updates.
func TestPage_ChangesWithoutReload(t *testing.T) {
	browser := newChromium(t)
	cluster := newCluster()
	create(t, cluster, blocks, "", 3)
	f := newFactory(t, cluster)
	f.Start(t.Context())
	defer shutdown(t, f)
	l := acquire(t, f, blocks)
	await(t.Context(), t, l, status.StateSynced)

	var opened, updates atomic.Int32
	before, after := f.Handler(), f.Handler() // virtual time is faster than the half second for which a handler keeps a response
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
			opened.Add(1)
			before.ServeHTTP(w, r)
			return
		}
		if updates.Add(1) == 1 {
			forbid(cluster, blocks)
			await(r.Context(), t, l, status.StateDegraded)
		}
		after.ServeHTTP(w, r)
	}))
	document := browser.dom(url, 7*time.Second)
	rows := table(document)
	if len(rows) != 1 || rows[0][0] != "Degraded" || !strings.HasPrefix(rows[0][2], "Forbidden cannot ") {
		t.Errorf("rows: %q", rows)
	}
	if opened.Load() != 1 || updates.Load() < 2 || connection(document) != "Live" {
		t.Errorf("%d page loads, %d updates, %q", opened.Load(), updates.Load(), connection(document))
	}
}

func TestPage_ReportsFailedUpdates(t *testing.T) {
	browser := newChromium(t)
	f := newFactory(t, newCluster())
	f.ForResource(blocks)
	for name, fail := range map[string]func(http.ResponseWriter){
		"an error":      func(w http.ResponseWriter) { http.Error(w, "no", http.StatusBadGateway) },
		"no connection": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var updates atomic.Int32
			page := f.Handler()
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Sec-Fetch-Mode") != "navigate" && updates.Add(1) > 1 {
					fail(w)
					return
				}
				page.ServeHTTP(w, r)
			}))
			document := browser.dom(url, 7*time.Second)
			if got := connection(document); !strings.HasPrefix(got, "Not updated since ") || updates.Load() < 3 {
				t.Errorf("after %d updates: %q", updates.Load(), got)
			}
			if rows := table(document); len(rows) != 1 {
				t.Errorf("rows after a failed update: %q", rows)
			}
		})
	}
}

// Markup in the names of types and leases, and in errors, is shown as text, in the page and in the updates
// of the script.
func TestPage_MarkupDoesNotRun(t *testing.T) {
	browser := newChromium(t)
	const evil = `<script>document.title="owned"</script><img src="x" onerror="document.title='owned'">`
	gvr := schema.GroupVersionResource{Group: "example.com" + evil, Version: "v1", Resource: "widgets"}
	cluster := fakecluster.New()
	cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("no " + evil) })
	f, err := dynamicinformer.New(cluster)
	if err != nil {
		t.Fatal(err)
	}
	f.Start(t.Context())
	defer shutdown(t, f)
	f.ForResource(gvr)
	await(t.Context(), t, acquire(t, f, blocks, dynamicinformer.WithLeaseName(evil)), status.StateDegraded)

	detail := "?resource=" + strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22", " ", "%20").Replace(discovery.RefOf(gvr).String())
	url := serve(t, f.Handler())
	for _, query := range []string{"", detail, "?q=%3Cscript%3Edocument.title%3D%22owned%22%3C/script%3E"} {
		document := browser.dom(url+"/"+query, 5*time.Second)
		if strings.Contains(document, "<title>owned") || strings.Contains(document, "<img") || strings.Count(document, "<script") != 1 {
			t.Errorf("%q: markup is not escaped:\n%s", query, document)
		}
		if connection(document) != "Live" {
			t.Errorf("%q: %q", query, connection(document))
		}
		if strings.HasPrefix(query, "?q=") {
			continue
		}
		if !strings.Contains(words(document), `example.com<script>document.title="owned"</script>`) {
			t.Errorf("%q: the name is not shown:\n%s", query, words(document))
		}
	}
}

func TestPage_DetailShowsTheChain(t *testing.T) {
	browser := newChromium(t)
	f := newFactory(t, newCluster())
	f.Start(t.Context())
	defer shutdown(t, f)
	await(t.Context(), t, acquire(t, f, apps, dynamicinformer.WithLeaseName("deployer")), status.StateNotServed)

	mux := http.NewServeMux()
	mux.Handle("/debug/informers/", f.Handler())
	document := browser.dom(serve(t, mux)+"/debug/informers/?resource=applications.argoproj.io", 5*time.Second)
	var abouts []string
	for i, item := range items(document) {
		about, text, _ := strings.Cut(item, " ")
		abouts = append(abouts, about)
		if want := f.Explain(apps).Chain[i].Text; i > 1 && text != want {
			t.Errorf("%s: %q, want %q", about, text, want)
		}
	}
	if diff := cmp.Diff([]string{"Wanted", "Served", "Next"}, abouts); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if !strings.Contains(words(document), `applications.v1alpha1.argoproj.io is requested by 1 lease of "deployer"`) || connection(document) != "Live" {
		t.Errorf("detail, %q: %s", connection(document), words(document))
	}
}

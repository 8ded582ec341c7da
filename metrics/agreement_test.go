package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// watched is a lease with the last status of Watch.
type watched struct {
	*dynamicinformer.Lease
	last  atomic.Pointer[status.Informer]
	end   context.CancelFunc
	ended chan struct{}
}

func (in bubble) watch(opts ...dynamicinformer.LeaseOption) *watched {
	in.Helper()
	ctx, end := context.WithCancel(in.Context())
	w := &watched{Lease: in.acquire(widgets, append(opts, dynamicinformer.WithAllowAbsent())...), end: end, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for now := range w.Watch(ctx) {
			w.last.Store(&now)
		}
	}()
	return w
}

func (w *watched) release() {
	w.Release()
	w.end()
	<-w.ended
}

// asJSON returns value after encoding to JSON and decoding.
func asJSON(t *testing.T, value any) (read any) {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// shown returns the JSON of the status page.
func (in bubble) shown(query string) (read map[string]any) {
	in.Helper()
	w := httptest.NewRecorder()
	in.factory.Handler().ServeHTTP(w, httptest.NewRequestWithContext(in.Context(), http.MethodGet, "/?format=json"+query, http.NoBody))
	if err := json.Unmarshal(w.Body.Bytes(), &read); err != nil {
		in.Fatal(err)
	}
	return read
}

// agree compares the page, the explanation and the metrics with the status.
func (in bubble) agree(when string) {
	in.Helper()
	all := in.factory.Status()
	rows, _ := in.shown("")["informers"].([]any)
	byID := map[any]any{}
	for _, row := range rows {
		byID[row.(map[string]any)["id"]] = row
	}
	want, states := map[string]float64{}, map[status.State]float64{}
	for _, i := range all {
		if diff := cmp.Diff(asJSON(in.T, i), byID[float64(i.ID)]); diff != "" {
			in.Errorf("%s: page (-status +page):\n%s", when, diff)
		}
		states[i.State]++
		want[`informers{state="`+string(i.State)+`"}`] = states[i.State]
		want[ofWidgets("informer_objects")] += float64(i.Objects)
		want[ofWidgets("informer_cache_bytes")] += float64(i.CacheBytes)
		want[ofWidgets("informer_leases")] += float64(i.Leases)
		want[ofWidgets("informer_handler_backlog")] += float64(i.Backlog())
	}
	checkSeries(in.T, gather(in.T, in.collector), want)
	e := in.factory.Explain(widgets)
	if len(all) == 0 {
		return
	}
	if diff := cmp.Diff(asJSON(in.T, all), asJSON(in.T, e.Informers)); diff != "" {
		in.Errorf("%s: explanation (-status +explanation):\n%s", when, diff)
	}
	for _, i := range all {
		if !strings.Contains(e.String(), "State: "+i.Summary(e.At)) {
			in.Errorf("%s: %q is not in:\n%s", when, i.Summary(e.At), e)
		}
	}
	if diff := cmp.Diff(asJSON(in.T, e), any(in.shown("&resource=widgets.v1.example.com"))); diff != "" {
		in.Errorf("%s: page of the resource (-explanation +page):\n%s", when, diff)
	}
}

// check compares the cache, WaitForSync and Watch with the status. Events alone are no changes for Watch.
func (w *watched) check(t *testing.T, when string) {
	t.Helper()
	s := w.Status()
	if stored := len(w.Informer().GetStore().List()); stored != s.Objects {
		t.Errorf("%s: %d objects in the cache, %d in the status", when, stored, s.Objects)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := w.WaitForSync(ended)
	why, fails := errors.AsType[*status.NotSyncedError](err)
	switch {
	case err != nil && !fails, fails && why.Reason != s.Reason, fails && s.State == status.StateSynced:
		t.Errorf("%s: status %s, WaitForSync: %v", when, s, err)
	case !fails && s.State != status.StateSynced && s.State != status.StateDegraded: // a synced informer may be degraded
		t.Errorf("%s: status %s, WaitForSync returns no error", when, s)
	}
	without := func(i status.Informer) any {
		i.Traffic, i.Objects, i.CacheBytes, i.ResourceVersion, i.NextRetry = status.Traffic{}, 0, 0, "", time.Time{}
		i.Namespaces = slices.Clone(i.Namespaces)
		for n := range i.Namespaces {
			i.Namespaces[n].ResourceVersion = ""
		}
		return asJSON(t, i)
	}
	if diff := cmp.Diff(without(s), without(*w.last.Load())); diff != "" {
		t.Errorf("%s: Watch (-status +watch):\n%s", when, diff)
	}
}

// After random events of the server and of leases, all that tells users about a factory says the same.
func TestCollector_AgreesWithStatusPageAndWatch(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { inBubble(t, func(in bubble) { randomEvents(in, seed) }) })
	}
}

func randomEvents(in bubble, seed uint64) {
	in.Helper()
	r := rand.New(rand.NewPCG(seed, 77))
	faults := []error{
		apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewNotFound(schema.GroupResource{}, ""), apierrors.NewTooManyRequests("x", 3),
		apierrors.NewResourceExpired("x"), apierrors.NewServiceUnavailable("x"), apierrors.NewMethodNotSupported(schema.GroupResource{}, "watch"),
	}
	var leases []*watched
	served := true
	operations := map[string]func(){
		"create": func() {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			obj.SetName(fmt.Sprintf("w%d", r.IntN(6)))
			_, _ = in.cluster.Resource(widgets).Namespace("ns").Create(in.Context(), obj, metav1.CreateOptions{})
		},
		"delete": func() {
			_ = in.cluster.Resource(widgets).Namespace("ns").Delete(in.Context(), fmt.Sprintf("w%d", r.IntN(6)), metav1.DeleteOptions{})
		},
		"close":  func() { in.cluster.CloseWatches(widgets) },
		"expire": func() { in.cluster.Expire(widgets) },
		"fail": func() {
			verb, fault, rate := []string{"list", "watch", "discover"}[r.IntN(3)], faults[r.IntN(len(faults))], 1+r.Int32N(3)
			var requests atomic.Int32
			in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Verb == verb && requests.Add(1)%rate == 0 {
					return fault
				}
				return nil
			})
		},
		"heal":     func() { in.cluster.Intercept(nil) },
		"withdraw": func() { in.cluster.Withdraw(widgets); served = false },
		"serve": func() {
			if !served {
				in.cluster.Serve(widgetType)
				served = true
			}
		},
		"acquire": func() { leases = append(leases, in.watch(dynamicinformer.WithLeaseName(fmt.Sprint(r.IntN(3))))) },
		"acquire a separate one": func() {
			leases = append(leases, in.watch(dynamicinformer.WithSeparateInformer(), dynamicinformer.WithNamespaces("ns", "other")))
		},
		"release": func() {
			if len(leases) > 0 {
				n := r.IntN(len(leases))
				leases[n].release()
				leases = slices.Delete(leases, n, n+1)
			}
		},
		"ForResource": func() { in.factory.ForResource(widgets) },
	}
	names := slices.Sorted(maps.Keys(operations))
	for step := range 60 {
		name := names[r.IntN(len(names))]
		operations[name]()
		<-time.After([]time.Duration{0, time.Millisecond, 3 * time.Second, 40 * time.Second, 7 * time.Minute}[r.IntN(5)])
		synctest.Wait()
		when := fmt.Sprintf("step %d, %s", step, name)
		in.agree(when)
		for _, l := range leases {
			l.check(in.T, when)
		}
		if in.Failed() {
			break
		}
	}
	in.cluster.Intercept(nil)
	for _, l := range leases {
		l.release()
	}
}

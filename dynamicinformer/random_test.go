package dynamicinformer_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// eventChecker checks that the events of each object are one add, updates and a delete, with one UID.
type eventChecker struct {
	t        *testing.T
	mu       sync.Mutex
	is       map[string]string // key to UID
	problems []string
	resyncs  bool // updates may be without a change
}

func (j *eventChecker) of(obj any) (string, string) {
	if u, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = u.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		j.problems = append(j.problems, fmt.Sprintf("%T: %v", obj, err))
		return "", ""
	}
	return m.GetNamespace() + "/" + m.GetName(), string(m.GetUID())
}

func (j *eventChecker) OnAdd(obj any, _ bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k, uid := j.of(obj)
	if was, there := j.is[k]; there {
		j.problems = append(j.problems, fmt.Sprintf("add %s %s, was %s", k, uid, was))
	}
	j.is[k] = uid
}

func (j *eventChecker) OnUpdate(old, obj any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k, uid := j.of(obj)
	_, before := j.of(old)
	if was, there := j.is[k]; !there || was != uid || before != uid {
		j.problems = append(j.problems, fmt.Sprintf("update %s %s -> %s, was %q", k, before, uid, was))
	}
	if version := obj.(metav1.Object).GetResourceVersion(); !j.resyncs && version == old.(metav1.Object).GetResourceVersion() {
		j.problems = append(j.problems, fmt.Sprintf("update %s without a change of %s", k, version))
	}
}

func (j *eventChecker) OnDelete(obj any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k, uid := j.of(obj)
	if was, there := j.is[k]; !there || was != uid {
		j.problems = append(j.problems, fmt.Sprintf("delete %s %s, was %q", k, uid, was))
	}
	delete(j.is, k)
}

// slowChecker is a slow handler.
type slowChecker struct {
	eventChecker
	takes time.Duration
}

func (s *slowChecker) OnAdd(obj any, initial bool) {
	s.eventChecker.OnAdd(obj, initial)
	time.Sleep(s.takes)
}

func (s *slowChecker) OnUpdate(old, obj any) {
	s.eventChecker.OnUpdate(old, obj)
	time.Sleep(s.takes)
}

func (s *slowChecker) OnDelete(obj any) {
	s.eventChecker.OnDelete(obj)
	time.Sleep(s.takes)
}

// Requests fail at random. At the end, the cache has the objects of the server. The events of each object
// are an addition, updates and a deletion, no update has two objects, and all goroutines end.
func TestFactory_HasTheObjectsOfTheServerAfterRandomFaults(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomFaults(t, seed+1000) }) })
	}
}

func randomFaults(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	cluster := fakecluster.New(widgetType, blockType)
	if seed%5 == 4 {
		cluster.MuteInitialEventsEnd()
	}
	var opts []dynamicinformer.Option
	keep := r.IntN(2) == 0
	if keep {
		opts = append(opts, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
	}
	opts = append(opts, dynamicinformer.WithWatchListPolicy([]dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever}[r.IntN(2)]))
	opts = append(opts, withDiscovery(t, cluster), dynamicinformer.WithIndexers(cache.Indexers{"label": badIndex}))
	opts = append(opts, dynamicinformer.WithListConcurrency(int(seed%2)), dynamicinformer.WithListBudget(int64(seed%3)))
	if r.IntN(2) == 0 {
		opts = append(opts, dynamicinformer.WithTransform(func(obj any) (any, error) {
			u := obj.(*unstructured.Unstructured)
			if u.GetLabels()["bad"] == "panic" {
				panic("x")
			}
			u.SetAnnotations(map[string]string{"seen": "true"})
			return u, nil
		}))
	}
	f := newFactory(t, cluster, opts...)
	f.Start(t.Context())
	lease := [][]dynamicinformer.LeaseOption{
		nil, {dynamicinformer.WithNamespaces("ns", "other")}, {dynamicinformer.WithShard(static(t, 0, 1))},
	}[r.IntN(3)]
	lease = append(lease, dynamicinformer.WithPolling(5*time.Minute))
	l := acquire(t, f, widgets, lease...)
	j := &eventChecker{t: t, is: map[string]string{}}
	if _, err := l.AddEventHandler(j); err != nil {
		t.Fatal(err)
	}
	slow := acquire(t, f, widgets, append(lease, dynamicinformer.WithCoalescing(0))...)
	late := &slowChecker{eventChecker{t: t, is: map[string]string{}}, time.Duration(r.IntN(5000)) * time.Millisecond}
	if _, err := slow.AddEventHandler(late); err != nil {
		t.Fatal(err)
	}
	faults := []error{
		apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewNotFound(schema.GroupResource{}, ""),
		apierrors.NewTooManyRequests("x", 3), apierrors.NewResourceExpired("x"), apierrors.NewInternalError(errBad), apierrors.NewTimeoutError("x", 1),
		apierrors.NewServiceUnavailable("x"), apierrors.NewGenericServerResponse(405, "watch", schema.GroupResource{}, "", "x", 0, true),
	}
	served, n, of := true, 0, widgetType
	ns := cluster.Resource(widgets).Namespace("ns")
	for range 60 {
		name := fmt.Sprintf("w%d", r.IntN(6))
		switch r.IntN(14) {
		case 0, 1, 2:
			if served {
				_, _ = ns.Create(t.Context(), newObject(name, nil), metav1.CreateOptions{})
			}
		case 3, 4:
			if served {
				if o, err := ns.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
					o.SetLabels(map[string]string{"bad": []string{"", "panic", "error"}[r.IntN(3)]})
					_, _ = ns.Update(t.Context(), o, metav1.UpdateOptions{})
				}
			}
		case 5:
			if served {
				_ = ns.Delete(t.Context(), name, metav1.DeleteOptions{})
			}
		case 6:
			cluster.CloseWatches(widgets)
		case 7:
			n++
			create(t, cluster, blocks, "", fmt.Sprintf("b%d", n))
			cluster.Expire(widgets)
		case 8:
			verb, fault := []string{"list", "watch", "discover", ""}[r.IntN(4)], faults[r.IntN(len(faults))]
			rate := 1 + r.IntN(3)
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if (req.Verb == verb || verb == "" && (req.Verb == "list" || req.Verb == "watch")) && rand.IntN(rate) == 0 {
					return fault
				}
				return nil
			})
		case 9:
			cluster.Intercept(nil)
		case 10:
			cluster.Withdraw(widgets)
			served = false
		case 11:
			of = []fakecluster.Type{widgetType, listable()}[r.IntN(2)]
			cluster.Serve(of)
			served = true
		case 12:
			l.Retry()
		case 13:
			_ = l.Informer().AddIndexers(cache.Indexers{fmt.Sprintf("i%d", r.IntN(1000)): badIndex})
		}
		l.Status()
		time.Sleep([]time.Duration{0, time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 40 * time.Second}[r.IntN(5)])
	}
	cluster.Intercept(nil)
	if !served {
		cluster.Serve(of)
	}
	for _, name := range []string{"w0", "w1", "w2"} {
		if o, err := ns.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			o.SetLabels(nil)
			_, _ = ns.Update(t.Context(), o, metav1.UpdateOptions{})
		}
	}
	for _, name := range []string{"w3", "w4", "w5"} {
		_ = ns.Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	before := len(cluster.Requests("list", widgets)) + len(cluster.Requests("watch", widgets))
	time.Sleep(30 * time.Minute)
	if more := len(cluster.Requests("list", widgets)) + len(cluster.Requests("watch", widgets)) - before; more > 60 {
		t.Errorf("%d requests in 30 quiet minutes", more)
	}
	synctest.Wait()
	want := map[string]string{}
	list, err := ns.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		want["ns/"+o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
	}
	got, uids := map[string]string{}, map[string]string{}
	for _, item := range l.Informer().GetStore().List() {
		o := item.(*unstructured.Unstructured)
		got["ns/"+o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
		uids["ns/"+o.GetName()] = string(o.GetUID())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cache (-server +cache):\n%s", diff)
	}
	for _, j := range []*eventChecker{j, &late.eventChecker} {
		j.mu.Lock()
		if !maps.Equal(uids, j.is) {
			t.Errorf("handler has %v, cache %v", j.is, uids)
		}
		for _, p := range j.problems {
			t.Error(p)
		}
		j.mu.Unlock()
	}
	s := l.Status()
	for _, namespace := range s.Namespaces {
		if !namespace.Listed || namespace.Reason != "" {
			t.Errorf("%+v", namespace)
		}
	}
	if of.Verbs != nil && s.PollPeriod == 0 {
		t.Errorf("poll period %v of a type with %q", s.PollPeriod, of.Verbs)
	}
	if s.State != status.StateSynced || s.FailedObjects != 0 || s.Objects != len(got) || s.Since.IsZero() && false || s.Backlog() != 0 {
		t.Errorf("%+v", s)
	}
	if err := l.WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
	l.Release()
	<-l.Done()
	slow.Release()
	shutdown(t, f)
}

package dynamicinformer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// shortNames sets the short names of a CRD.
func shortNames(names ...string) func(crd map[string]any) {
	return func(crd map[string]any) {
		for _, part := range []any{crd["spec"].(map[string]any)["names"], crd["status"].(map[string]any)["acceptedNames"]} {
			part.(map[string]any)["shortNames"] = names
		}
	}
}

func acquireRef(t *testing.T, f *dynamicinformer.Factory, ref string, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
	t.Helper()
	l, err := f.AcquireRef(t.Context(), ref, opts...)
	if err != nil {
		t.Fatalf("AcquireRef: %v", err)
	}
	return l
}

// checkName compares the status of l, and its events since the last call.
func checkName(t *testing.T, when string, l *dynamicinformer.Lease, events *recorder, state status.State, reason status.Reason, resource string, want ...string) {
	t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	got := l.Status()
	if got.State != state || got.Reason != reason || got.Resource.GVR.Resource != resource {
		t.Errorf("%s: %s %s on %q, want %s %s on %q (%v)", when, got.State, got.Reason, got.Resource.GVR.Resource, state, reason, resource, got.Err)
	}
	if diff := cmp.Diff(want, events.take()); diff != "" {
		t.Errorf("%s: events (-want +got):\n%s", when, diff)
	}
}

func TestAcquireRef_FollowsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", shortNames("vessel"))
		create(t, cluster, kindOf("ships"), "ns", "a")
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquireRef(t, f, "Vessel")
		if got := l.Resource().GVR; got != kindOf("ships") {
			t.Errorf("resource after AcquireRef: %v", got)
		}
		events := listen(t, l.Informer())
		checkName(t, "one meaning", l, events, status.StateSynced, "", "ships", "add ns/a")

		cluster.define("boats", shortNames("vessel"))
		create(t, cluster, kindOf("ships"), "ns", "b")
		create(t, cluster, kindOf("boats"), "ns", "c")
		checkName(t, "two meanings", l, events, status.StateDegraded, status.ReasonAmbiguous, "ships", "add ns/b")
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Errorf("with two meanings: %v", err)
		}
		if other, err := f.AcquireRef(t.Context(), "Vessel", dynamicinformer.WithAllowAbsent()); !errors.Is(err, discovery.ErrAmbiguous) {
			t.Errorf("another lease with two meanings: %v, %v", other, err)
		}
		if got := l.Status(); !got.StaleSince.IsZero() || !meta.IsAmbiguousError(got.Err) || !strings.Contains(got.Advice(), "group") {
			t.Errorf("with two meanings: %+v, %q", got, got.Advice())
		}
		whole := func() (lists int) {
			for _, req := range cluster.Requests("list", kindOf("ships")) {
				if req.Options.Limit != 1 { // otherwise it compares versions
					lists++
				}
			}
			return lists
		}
		lists := whole()
		cluster.Expire(kindOf("ships"))
		cluster.CloseWatches(kindOf("ships")) // a list follows, which is no answer to the question
		checkName(t, "after a list", l, events, status.StateDegraded, status.ReasonAmbiguous, "ships")

		if got := whole(); got != lists+1 {
			t.Errorf("%d lists, want one more than %d", got, lists)
		}
		cluster.undefine("ships")
		time.Sleep(time.Minute)
		got := events.take()
		slices.Sort(got[:2])
		if diff := cmp.Diff([]string{"delete ns/a", "delete ns/b", "add ns/c"}, got); diff != "" {
			t.Errorf("the first one is gone (-want +got):\n%s", diff)
		}
		if got := l.Status(); got.State != status.StateSynced || got.GVR != kindOf("boats") || got.Generation != 1 {
			t.Errorf("the first one is gone: %+v", got)
		}

		cluster.define("vessel") // a plural is preferred to a short name
		create(t, cluster, kindOf("vessel"), "ns", "d")
		checkName(t, "a better meaning", l, events, status.StateSynced, "", "vessel", "delete ns/c", "add ns/d")
		if got := l.Status().Generation; got != 2 {
			t.Errorf("generation %d, want 2", got)
		}

		cluster.undefine("boats")
		time.Sleep(time.Minute)
		cluster.undefine("vessel")
		checkName(t, "no meaning", l, events, status.StateNotServed, status.ReasonNotFound, "vessel", "delete ns/d")
		shutdown(t, f)
	})
}

// Its type is served, but has lost the name.
func TestAcquireRef_KeepsATypeWithoutTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", shortNames("vessel"))
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquireRef(t, f, "vessel")
		events := listen(t, l.Informer())
		checkName(t, "at first", l, events, status.StateSynced, "", "ships")
		cluster.change("ships", shortNames())
		create(t, cluster, kindOf("ships"), "ns", "a")
		checkName(t, "without the name", l, events, status.StateDegraded, status.ReasonNotFound, "ships", "add ns/a")
		cluster.change("ships", shortNames("vessel"))
		checkName(t, "with the name again", l, events, status.StateSynced, "", "ships")
		cluster.undefine("ships")
		checkName(t, "gone", l, events, status.StateNotServed, status.ReasonNotFound, "ships", "delete ns/a")
		shutdown(t, f)
	})
}

// Its type is served in another version when the name is lost, and later not in the version of the name.
func TestAcquireRef_KeepsATypeInAnotherVersion(t *testing.T) {
	for ref, tc := range map[string]struct {
		reason status.Reason
		events []string
	}{
		"vessel":                       {status.ReasonNotFound, []string{"delete ns/a", "add ns/a"}}, // the fake cluster has other objects in v2
		"vessel.v1.things.example.com": {status.ReasonVersionNotServed, nil},
	} {
		t.Run(ref, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				cluster.define("ships", shortNames("vessel"))
				v2 := kindOf("ships").GroupResource().WithVersion("v2")
				cluster.Serve(fakecluster.Type{GVR: v2, Kind: kindName("ships"), Namespaced: true})
				create(t, cluster, kindOf("ships"), "ns", "a")
				create(t, cluster, v2, "ns", "a")
				f := cluster.factory(t)
				f.Start(t.Context())
				l := acquireRef(t, f, ref)
				events := listen(t, l.Informer())
				checkName(t, "at first", l, events, status.StateSynced, "", "ships", "add ns/a")
				cluster.Withdraw(kindOf("ships"))
				cluster.change("ships", func(crd map[string]any) {
					shortNames()(crd)
					versions(map[string]bool{"v1": false, "v2": true})(crd)
				})
				checkName(t, "without the name and the version", l, events, status.StateDegraded, tc.reason, "ships", tc.events...)
				shutdown(t, f)
			})
		})
	}
}

func TestAcquireGVK_WaitsForTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		f := cluster.factory(t)
		f.Start(t.Context())
		gvk := kindOf("").GroupVersion().WithKind("Vessel")
		if _, err := f.AcquireGVK(t.Context(), gvk); !meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "Vessel") {
			t.Errorf("AcquireGVK: %v", err)
		}
		l, err := f.AcquireGVK(t.Context(), gvk, dynamicinformer.WithAllowAbsent())
		if err != nil {
			t.Fatal(err)
		}
		err = l.WaitForSync(briefly(t), dynamicinformer.WithFailFast())
		if reason, is := errors.AsType[*status.NotSyncedError](err); !is || reason.Reason != status.ReasonNotFound || reason.GVR.Resource != "Vessel" {
			t.Errorf("before the kind is there: %v", err)
		}
		cluster.Serve(fakecluster.Type{GVR: kindOf("ships"), Kind: gvk.Kind, Namespaced: true})
		create(t, cluster, kindOf("ships"), "ns", "a")
		cluster.mu.Lock()
		cluster.replaceLocked("ships", func(crd map[string]any) {
			crd["spec"].(map[string]any)["names"].(map[string]any)["kind"] = gvk.Kind
		})
		cluster.mu.Unlock()
		begun := time.Now()
		if err := l.WaitForSync(t.Context()); err != nil || time.Since(begun) > 5*time.Second {
			t.Errorf("the kind is there: %v after %v", err, time.Since(begun))
		}
		if all, err := l.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("objects: %v, %v", all, err)
		}
		shutdown(t, f)
	})
}

// The name has no meaning at first, and then two.
func TestAcquireRef_AmbiguousFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquireRef(t, f, "vessel", dynamicinformer.WithAllowAbsent())
		events := listen(t, l.Informer())
		checkName(t, "no meaning", l, events, status.StateNotServed, status.ReasonNotFound, "vessel")
		cluster.define("ships", shortNames("vessel"), versions(map[string]bool{"v1": false}))
		cluster.define("boats", shortNames("vessel"), versions(map[string]bool{"v1": false}))
		cluster.mu.Lock()
		for _, name := range []string{"ships", "boats"} { // both are served at the same moment
			cluster.changeLocked(name, versions(map[string]bool{"v1": true}))
		}
		cluster.mu.Unlock()
		checkName(t, "two meanings", l, events, status.StateUnknown, status.ReasonAmbiguous, "vessel")
		err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast())
		if !meta.IsAmbiguousError(err) {
			t.Errorf("two meanings: %v", err)
		}
		if _, err := f.AcquireRef(t.Context(), "vessel", dynamicinformer.WithAllowAbsent(), dynamicinformer.WithSeparateInformer()); !errors.Is(err, discovery.ErrAmbiguous) {
			t.Errorf("AcquireRef of an ambiguous name: %v", err)
		}
		cluster.undefine("boats")
		checkName(t, "one meaning", l, events, status.StateSynced, "", "ships")
		shutdown(t, f)
	})
}

func TestAcquireRef_SharesAndIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", shortNames("vessel"))
		f := cluster.factory(t)
		f.Start(t.Context())
		a, b := acquireRef(t, f, "vessel"), acquireRef(t, f, "vessel")
		if err := f.WaitForSync(t.Context(), dynamicinformer.WithResources(kindOf("ships"))); err != nil {
			t.Errorf("WaitForSync of the resource: %v", err)
		}
		if got := f.Status(); len(got) != 1 || got[0].Ref != "vessel" || got[0].Name() != "ships.v1.things.example.com" || got[0].Leases != 2 {
			t.Errorf("status: %+v", got)
		}
		if got := f.Explain(kindOf("ships")).String(); !strings.Contains(got, `ships.v1.things.example.com is requested by 2 leases without a name for 0s by the name "vessel". State: Synced`) {
			t.Errorf("explanation: %s", got)
		}
		acquire(t, f, kindOf("ships"))
		if got := f.Status(); len(got) != 2 {
			t.Errorf("informers: %d", len(got))
		}
		synctest.Wait()
		a.Release()
		b.Release()
		<-a.Done()
		synctest.Wait()
		if got := f.Status(); len(got) != 1 || got[0].Ref != "" {
			t.Errorf("after the release: %+v", got)
		}
		shutdown(t, f)
	})
}

func TestAcquireRef_Errors(t *testing.T) {
	cluster := newCRDCluster()
	f := cluster.factory(t)
	var invalid *discovery.RefError
	if _, err := f.AcquireRef(t.Context(), "no such/thing/at/all"); !errors.As(err, &invalid) {
		t.Errorf("invalid reference: %v", err)
	}
	if _, err := f.AcquireGVK(t.Context(), schema.GroupVersionKind{Group: "example.com", Kind: "Ship"}); !errors.As(err, &invalid) {
		t.Errorf("kind without a version: %v", err)
	}
	if _, err := f.AcquireRef(t.Context(), "ships"); !errors.Is(err, discovery.ErrNotServed) {
		t.Errorf("not served: %v", err)
	}
	if _, err := newFactory(t, fakecluster.New()).AcquireRef(t.Context(), "ships"); !errors.Is(err, dynamicinformer.ErrNoDiscovery) {
		t.Errorf("without discovery: %v", err)
	}
	if err := f.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.AcquireRef(t.Context(), "ships", dynamicinformer.WithAllowAbsent()); !errors.Is(err, dynamicinformer.ErrShutDown) {
		t.Errorf("after Shutdown: %v", err)
	}
}

// Types with the name come and go in random order. Whenever nothing changes for a while, the cache has the objects
// of the type that the name means, or of the last one that it meant while that is served.
func TestAcquireRef_Random(t *testing.T) {
	for seed := range uint64(fewer(60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { namesAtRandom(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func namesAtRandom(t *testing.T, random *rand.Rand) {
	t.Helper()
	cluster := newCRDCluster()
	f := cluster.factory(t)
	f.Start(t.Context())
	l := acquireRef(t, f, "vessel", dynamicinformer.WithAllowAbsent())
	handler := &historyOfUIDs{objects: map[string]*metav1.ObjectMeta{}, t: t}
	if _, err := l.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	types := []string{"ships", "boats", "vessel"}
	named := map[string]bool{}
	for range 25 {
		name := types[random.IntN(len(types))]
		switch _, defined := named[name]; {
		case !defined:
			named[name] = random.IntN(3) > 0
			names := []string{}
			if named[name] {
				names = append(names, "vessel")
			}
			cluster.define(name, shortNames(names...))
			create(t, cluster, kindOf(name), "ns", "same")
			create(t, cluster, kindOf(name), "ns", name)
		case random.IntN(2) == 0:
			delete(named, name)
			cluster.undefine(name)
		default:
			create(t, cluster, kindOf(name), "ns", fmt.Sprint("x", random.Uint32()))
		}
		if random.IntN(2) == 0 {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			continue
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		checkMeaning(t, cluster, l, handler, meaning(named, l.Status().GVR.Resource))
		if t.Failed() {
			return
		}
	}
	shutdown(t, f)
}

// meaning returns the type that "vessel" means, or the present one if it is served and no other is meant.
func meaning(named map[string]bool, present string) string {
	if _, plural := named["vessel"]; plural {
		return "vessel"
	}
	switch {
	case named["ships"] && !named["boats"]:
		return "ships"
	case named["boats"] && !named["ships"]:
		return "boats"
	}
	if _, served := named[present]; served {
		return present
	}
	return ""
}

// checkMeaning checks that the cache and the handler have the objects of a type; "" is none.
func checkMeaning(t *testing.T, cluster *crdCluster, l *dynamicinformer.Lease, handler *historyOfUIDs, resource string) {
	t.Helper()
	want := map[string]string{}
	if resource != "" {
		list, err := cluster.Resource(kindOf(resource)).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range list.Items {
			want[obj.GetNamespace()+"/"+obj.GetName()] = string(obj.GetUID())
		}
	}
	cached := map[string]string{}
	all, err := l.Lister().List(labels.Everything())
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range all {
		m, _ := meta.Accessor(obj)
		cached[m.GetNamespace()+"/"+m.GetName()] = string(m.GetUID())
	}
	seen := map[string]string{}
	for key, m := range handler.objects {
		seen[key] = string(m.GetUID())
	}
	if diff := cmp.Diff(want, cached); diff != "" {
		t.Errorf("cache of %q (-want +got):\n%s\n%+v", resource, diff, l.Status())
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("handler of %q (-want +got):\n%s", resource, diff)
	}
}

// historyOfUIDs is an event handler that knows the objects that exist, and checks that each event fits.
type historyOfUIDs struct {
	t       *testing.T
	objects map[string]*metav1.ObjectMeta
}

func (h *historyOfUIDs) OnAdd(obj any, _ bool) {
	m, _ := meta.Accessor(obj)
	key := m.GetNamespace() + "/" + m.GetName()
	if h.objects[key] != nil {
		h.t.Errorf("%s is added twice", key)
	}
	h.objects[key] = &metav1.ObjectMeta{UID: m.GetUID()}
}

func (h *historyOfUIDs) OnUpdate(_, obj any) {
	m, _ := meta.Accessor(obj)
	key := m.GetNamespace() + "/" + m.GetName()
	if old := h.objects[key]; old == nil || old.UID != m.GetUID() {
		h.t.Errorf("%s is updated from another object: %v", key, old)
	}
}

func (h *historyOfUIDs) OnDelete(obj any) {
	m, err := meta.Accessor(obj)
	if err != nil {
		h.t.Errorf("%T is deleted", obj)
		return
	}
	key := m.GetNamespace() + "/" + m.GetName()
	if old := h.objects[key]; old == nil || old.UID != m.GetUID() {
		h.t.Errorf("%s, which is another object, is deleted", key)
	}
	delete(h.objects, key)
}

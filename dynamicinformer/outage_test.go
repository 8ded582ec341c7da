package dynamicinformer_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// A back-off that doubles has a last pause that is not longer than the outage. So each informer recovers in
// about the time that the outage has lasted, and 36 s at most, with few requests.
func TestFactory_RecoversSoonAfterAnOutage(t *testing.T) {
	outages := map[string]error{
		"503":                apierrors.NewServiceUnavailable("apiserver is shutting down"),
		"500":                apierrors.NewInternalError(errBad),
		"401":                apierrors.NewUnauthorized("no authenticator yet"),
		"403":                apierrors.NewForbidden(schema.GroupResource{}, "", errBad),
		"404":                apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "404 page not found", 0, true),
		"connection refused": &url.Error{Op: "Get", URL: "https://server", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
	}
	for name, outage := range outages {
		for _, lasts := range []time.Duration{time.Second, 9 * time.Second, 45 * time.Second, 5 * time.Minute} {
			t.Run(fmt.Sprintf("%s for %v", name, lasts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { recoverFrom(t, outage, lasts) })
			})
		}
	}
}

// recoverFrom measures the recovery of types of three kinds after an outage.
func recoverFrom(t *testing.T, outage error, lasts time.Duration) {
	t.Helper()
	const (
		unchanged = iota
		changed   // has a new object
		recreated // has other objects
		each      = 5
	)
	want := [][]string{unchanged: {"ns/old"}, changed: {"ns/new", "ns/old"}, recreated: {"ns/new"}}
	var types []fakecluster.Type
	for i := range each * len(want) {
		gvr := schema.GroupVersionResource{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1", Resource: "ships"}
		types = append(types, fakecluster.Type{GVR: gvr, Kind: "Ship", Namespaced: true})
	}
	cluster := fakecluster.New(types...)
	f := newFactory(t, cluster, withDiscovery(t, cluster))
	f.Start(t.Context())
	leases := make([]*dynamicinformer.Lease, len(types))
	for i, kind := range types {
		create(t, cluster, kind.GVR, "ns", "old")
		leases[i] = acquire(t, f, kind.GVR)
	}
	time.Sleep(5 * time.Minute)

	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.Verb == "create" { // by another client
			return nil
		}
		return outage
	})
	for i, kind := range types {
		cluster.CloseWatches(kind.GVR)
		if i/each == recreated {
			cluster.Serve(kind)
		}
		if i/each != unchanged {
			create(t, cluster, kind.GVR, "ns", "new")
		}
	}
	time.Sleep(lasts)
	cluster.Intercept(nil)
	requests := func() (n int) {
		for _, kind := range types {
			n += len(cluster.Requests("list", kind.GVR)) + len(cluster.Requests("watch", kind.GVR))
		}
		return n
	}
	before, begun := requests(), time.Now()
	recovered := func(i int) bool {
		keys := leases[i].Informer().GetStore().ListKeys()
		slices.Sort(keys)
		return slices.Equal(keys, want[i/each]) && leases[i].Status().State == status.StateSynced && cluster.OpenWatches(types[i].GVR) == 1
	}
	limit := min(lasts+lasts/5+time.Second, 40*time.Second)
	took := map[int]time.Duration{}
	step := 50 * time.Millisecond
	for ; time.Since(begun) < 2*time.Minute; time.Sleep(step) {
		if time.Since(begun) > limit {
			step = time.Second // a type that is not what it should be now is too late
		}
		for i := range types {
			if !recovered(i) {
				took[i/each] = time.Since(begun)
			}
		}
	}
	if took[unchanged] > limit || took[changed] > limit || took[recreated] > limit {
		t.Errorf("unchanged types recovered after %v, changed types after %v, recreated types after %v; want at most %v",
			took[unchanged], took[changed], took[recreated], limit)
	}
	compared := 0 // lists of one object, which show whether the server's versions have gone back
	for _, kind := range types {
		for _, req := range cluster.Requests("list", kind.GVR) {
			if req.Options.Limit == 1 {
				compared++
			}
		}
	}
	if got := requests() - before - compared; got > 2*len(types) || compared > len(types) {
		t.Errorf("%d lists and watches of %d types after the outage, and %d lists of one object", got, len(types), compared)
	}
	shutdown(t, f)
}

func TestNamespaceSelector_FailuresEndWhenNamespacesAreKnown(t *testing.T) {
	for name, test := range map[string]struct {
		team string
		typ  fakecluster.Type
	}{
		"no namespace is selected":   {"blue", widgetType},
		"the type can't be watched":  {"red", listable()},
		"a namespace can be watched": {"red", widgetType},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, func(in bubble) {
				t, cluster, f := in.T, in.cluster, in.factory
				cluster.Serve(namespaceType, test.typ)
				labelNamespace(t, cluster, "a", "red")
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.GVR == namespaceType.GVR && req.Verb == "watch" {
						return apierrors.NewNotFound(namespaceType.GVR.GroupResource(), "")
					}
					return nil
				})
				l := acquire(t, f, widgets, dynamicinformer.WithNamespaceSelector("team="+test.team), dynamicinformer.WithPolling(time.Minute))
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				if i := l.Status(); i.State != status.StateSynced {
					t.Errorf("status: %s", i)
				}
			})
		})
	}
}

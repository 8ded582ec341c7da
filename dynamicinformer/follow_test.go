package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

func TestFollow_TypesAreAddedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		create(t, cluster, kindOf("ships"), "ns", "a")
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{})
		w.wants(t, "what is there", "start ships", "add ns/a")
		if got := f.Status()[0]; got.State != status.StateSynced || got.Owners[0].Name != "follow" || got.VersionPolicy != discovery.FollowPreferred() {
			t.Errorf("status: %+v", got)
		}

		cluster.define("boats")
		w.wants(t, "what comes", "start boats")
		create(t, cluster, kindOf("boats"), "ns", "b")
		create(t, cluster, kindOf("boats"), "ns", "c")
		w.wants(t, "its objects", "add ns/b", "add ns/c")

		uid := cluster.has("boats")
		cluster.undefine("boats")
		time.Sleep(time.Second)
		synctest.Wait()
		got := w.take()
		if len(got) != 3 || got[2] != "stop boats CRDDeleted "+uid {
			t.Errorf("deletions: %q", got)
		}
		if got := len(f.Status()); got != 1 {
			t.Errorf("informers = %d, want 1", got)
		}
		cluster.define("boats")
		w.wants(t, "it comes back", "start boats")
		w.end(f)
		if got := w.take(); len(got) != 2 || !strings.HasPrefix(got[0], "stop ") || !strings.HasPrefix(got[1], "stop ") {
			t.Errorf("at the end of Follow: %q", got)
		}
	})
}

// The CRD is replaced by another one. Stopped and Started are called.
func TestFollow_StartedHasAWholeResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		f := cluster.factory(t)
		f.Start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var started []discovery.Resource
		done := make(chan error)
		go func() {
			done <- f.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{Started: func(l *dynamicinformer.Lease) {
				started = append(started, l.Resource())
			}})
		}()
		for _, name := range []string{"ships", "boats"} { // one before, one after the resolver's first answer
			cluster.define(name)
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(started) != 2 {
			t.Fatalf("%d types have started, want 2", len(started))
		}
		for _, res := range started {
			if res.GVK.Kind == "" || len(res.Verbs) == 0 || len(res.Versions) == 0 {
				t.Errorf("the resource is not whole: %+v", res)
			}
		}
		shutdown(t, f)
	})
}

func TestFollow_AnotherCRDWithTheSameNameIsAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		create(t, cluster, kindOf("ships"), "ns", "a")
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{})
		w.wants(t, "the first", "start ships", "add ns/a")
		first := cluster.has("ships")
		cluster.define("ships")
		time.Sleep(time.Second)
		w.wants(t, "the second", "delete ns/a", "stop ships CRDDeleted "+first, "start ships")
		w.end(f)
	})
}

// Changes during a callback are combined: the callbacks get the last state, and whether the type is
// another one.
func TestFollow_SlowCallbackGetsTheLastState(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(w *crdCluster)
		want    []string // after the start, without UIDs
	}{
		"gone":                     {func(w *crdCluster) { w.undefine("ships") }, []string{"stop ships CRDDeleted"}},
		"gone and come":            {func(w *crdCluster) { w.define("ships") }, []string{"stop ships CRDDeleted", "start ships"}},
		"gone, come and gone":      {func(w *crdCluster) { w.define("ships"); w.undefine("ships") }, []string{"stop ships CRDDeleted"}},
		"gone and come many times": {func(w *crdCluster) { flap(w, "ships", 50) }, []string{"stop ships CRDDeleted", "start ships"}},
		"deselected":               {func(w *crdCluster) { w.change("ships", label("other")) }, []string{"stop ships"}},
		"deselected and selected": {func(w *crdCluster) {
			w.change("ships", label("other"))
			synctest.Wait()
			w.change("ships", label("net"))
		}, nil},
		"deselected and gone": {func(w *crdCluster) { w.change("ships", label("other")); synctest.Wait(); w.undefine("ships") }, []string{"stop ships CRDDeleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				cluster.define("ships", label("net"))
				f := cluster.factory(t)
				held := make(chan struct{})
				d := &callLog{held: map[string]<-chan struct{}{"start ships": held}}
				w := d.follow(t, f, ofNet)
				w.wants(t, "the start", "start ships")
				tc.happens(cluster)
				if cluster.has("ships") != "" && !strings.HasPrefix(name, "deselected") {
					cluster.change("ships", label("net"))
				}
				time.Sleep(time.Minute)
				w.wants(t, "while it is busy")
				close(held)
				time.Sleep(time.Second)
				synctest.Wait()
				var got []string
				for _, line := range w.take() {
					got = append(got, strings.Join(strings.Fields(line)[:min(3, len(strings.Fields(line)))], " "))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("later calls (-want +got):\n%s", diff)
				}
				w.end(f)
			})
		})
	}
}

// flap creates a type again several times.
func flap(w *crdCluster, name string, times int) {
	for range times {
		w.define(name)
		synctest.Wait()
	}
}

func TestFollow_BlockedCallbackDoesNotDelayOtherTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		held := make(chan struct{})
		cluster.define("ships")
		f := cluster.factory(t)
		d := &callLog{held: map[string]<-chan struct{}{"start ships": held, "stop boats": held}}
		w := d.follow(t, f, discovery.Selector{}, dynamicinformer.WithStartLimit(1))
		w.wants(t, "the first", "start ships")
		for _, name := range []string{"boats", "rafts"} {
			cluster.define(name)
			w.wants(t, "the others", "start "+name)
			uid := cluster.has(name)
			cluster.undefine(name)
			time.Sleep(time.Second)
			w.wants(t, "the others", fmt.Sprintf("stop %s CRDDeleted %s", name, uid))
		}
		if err := f.WaitForSync(t.Context(), dynamicinformer.WithResources(kindOf("ships"))); err != nil {
			t.Errorf("the type with the callback: %v", err)
		}
		w.cancel()
		time.Sleep(time.Minute)
		select {
		case err := <-w.ended:
			t.Errorf("Follow has returned before its callbacks: %v", err)
		default:
		}
		if left := f.Status(); len(left) > 0 {
			t.Errorf("leases that were not released: %+v", left)
		}
		close(held)
		w.end(f)
	})
}

func TestFollow_StartsAndStopsSelectedTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", categories("fleet"))
		cluster.define("boats")
		cluster.define("rafts", label("net"))
		f := cluster.factory(t)
		byCategory := follow(t, f, discovery.Selector{Categories: []string{"fleet"}})
		byLabel := follow(t, f, ofNet)
		byBacking := follow(t, f, discovery.Selector{Backing: discovery.BackingAggregated})
		byCategory.wants(t, "category", "start ships")
		byLabel.wants(t, "label", "start rafts")
		cluster.change("boats", categories("fleet"))
		cluster.change("boats", label("net"))
		byCategory.wants(t, "category", "start boats")
		byLabel.wants(t, "label", "start boats")
		cluster.change("boats", categories("fleet", "other"))
		cluster.change("ships", categories())
		cluster.change("rafts", label("other"))
		byCategory.wants(t, "category", "stop ships")
		byLabel.wants(t, "label", "stop rafts")
		byBacking.wants(t, "backing")
		byCategory.leave()
		byLabel.leave()
		byBacking.end(f)
	})
}

// What a name means changes with other types. If it means several, nothing changes.
func TestFollow_Names(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", shortNames("vessel"))
		cluster.define("rafts")
		f := cluster.factory(t)
		names := []string{"vessel", "Rafts", "Kites"}
		w := follow(t, f, discovery.Selector{Names: names})
		states := func(when string, want status.Follow, undecided ...string) {
			t.Helper()
			all := f.Follows()
			if len(all) != 1 {
				t.Fatalf("%s: %d calls of Follow", when, len(all))
			}
			got, types := all[0], []string(nil)
			for _, u := range got.Undecided {
				types = append(types, fmt.Sprint(u.Resource.GVR.Resource, " ", u.Followed))
				if !errors.Is(u.Err, discovery.ErrAmbiguous) {
					t.Errorf("%s: %s: %v", when, u.Name(), u.Err)
				}
			}
			got.Undecided = nil
			if diff := cmp.Diff(want, got) + cmp.Diff(undecided, types); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		wants := func(when string, want ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			got := w.take()
			slices.Sort(got) // calls for several types are concurrent
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		wants("the start", "start rafts", "start ships")
		cluster.define("kites")
		wants("a name that had no meaning", "start kites")
		cluster.define("boats", shortNames("vessel"))
		begun := time.Now()
		wants("two meanings")
		states("two meanings", status.Follow{Name: "follow", Names: names, Types: 3}, "boats false", "ships true")
		for _, u := range f.Follows()[0].Undecided {
			if u.Since.Before(begun) || u.Since.After(begun.Add(time.Second)) {
				t.Errorf("%s is undecided since %v, want %v", u.Name(), u.Since, begun)
			}
		}
		uid := cluster.has("ships")
		cluster.undefine("ships")
		wants("another meaning", "start boats", "stop ships CRDDeleted "+uid)
		states("another meaning", status.Follow{Name: "follow", Names: names, Types: 3})
		cluster.define("vessel") // a plural is preferred to a short name
		wants("a better meaning", "start vessel", "stop boats")
		cluster.change("vessel", categories("fleet"))
		cluster.change("boats", categories("fleet"))
		wants("no other meaning")
		uid = cluster.has("vessel")
		cluster.undefine("vessel")
		wants("the worse meaning", "start boats", "stop vessel CRDDeleted "+uid)
		cluster.change("boats", shortNames())
		wants("no meaning", "stop boats")
		w.end(f)
		if left := f.Follows(); len(left) != 0 {
			t.Errorf("after the end: %v", left)
		}
	})
}

// The versions of a type can have different names. A name means the type if one version has it.
func TestFollow_NamesOfOtherVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := func(name, kind string) fakecluster.Type {
			return fakecluster.Type{GVR: kindOf("ships").GroupResource().WithVersion(name), Kind: kind}
		}
		cluster := fakecluster.New(widgetType, version("v1", "Ship"))
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		w := follow(t, f, discovery.Selector{Names: []string{"Vessel", "Boat"}})
		l := acquireRef(t, f, "Vessel", dynamicinformer.WithAllowAbsent())
		wants := func(when string, state status.State, reason status.Reason, want ...string) {
			t.Helper()
			time.Sleep(4 * time.Minute) // a resolver that polls
			w.wants(t, when, want...)
			if got := l.Status(); got.State != state || got.Reason != reason {
				t.Errorf("%s: %s %s, want %s %s (%v)", when, got.State, got.Reason, state, reason, got.Err)
			}
		}
		wants("another name", status.StateNotServed, status.ReasonNotFound)
		cluster.Serve(version("v2", "Vessel")) // the cluster prefers the first version
		wants("the name in another version", status.StateSynced, "", "start ships")
		cluster.Serve(version("v2", "Ship"))
		wants("no version has the name", status.StateDegraded, status.ReasonNotFound, "stop ships")
		cluster.Serve(version("v2", "Boat"))
		wants("another name again", status.StateDegraded, status.ReasonNotFound, "start ships")
		cluster.Serve(version("v2", "Vessel"))
		wants("the first name again", status.StateSynced, "")
		cluster.Withdraw(version("v2", "").GVR)
		wants("only one version", status.StateDegraded, status.ReasonNotFound, "stop ships")
		w.leave()
		shutdown(t, f)
	})
}

var ofNet = discovery.Selector{CRDLabels: labels.SelectorFromSet(labels.Set{"team": "net"})}

func TestFollow_SelectionThatCannotBeDecidedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", label("net"))
		f := cluster.factory(t)
		w := follow(t, f, ofNet)
		w.wants(t, "the start", "start ships")
		cluster.hideCRDs(true)
		time.Sleep(10 * time.Minute)
		cluster.change("ships", categories("fleet"))
		cluster.define("boats", label("net"))
		time.Sleep(10 * time.Minute)
		w.wants(t, "CRDs are forbidden")
		cluster.hideCRDs(false)
		time.Sleep(10 * time.Minute)
		w.wants(t, "CRDs are permitted", "start boats")
		w.end(f)
	})
}

// The subscription of a second factory begins with the types of the resolver's first run. Their CRDs are known when
// the second run has begun, which is no event.
func TestFollow_WithTheResolverOfAnotherFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", label("net"))
		resolver := cluster.resolver(t)
		for range 2 {
			f := newFactory(t, cluster.Cluster, dynamicinformer.WithDiscovery(resolver))
			w := follow(t, f, ofNet)
			time.Sleep(10 * time.Second)
			w.wants(t, "the start", "start ships")
			w.end(f)
		}
	})
}

func TestFollow_FailuresDoNotStopTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", label("net"))
		create(t, cluster, kindOf("ships"), "ns", "a")
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{CRDLabels: labels.Everything()})
		w.wants(t, "the start", "start ships", "add ns/a")

		cluster.breakDiscovery(true)
		time.Sleep(5 * time.Minute)
		w.wants(t, "discovery fails")
		cluster.breakDiscovery(false)
		time.Sleep(5 * time.Minute)

		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" || req.Verb == "watch" {
				return errors.New("down")
			}
			return nil
		})
		cluster.CloseWatches(kindOf("ships"))
		time.Sleep(5 * time.Minute)
		w.wants(t, "its requests fail")
		cluster.Intercept(nil)
		time.Sleep(5 * time.Minute)

		cluster.change("ships", versions(map[string]bool{"v1": true, "v1beta1": true}))
		time.Sleep(time.Minute)
		w.wants(t, "another version")
		cluster.change("ships", versions(map[string]bool{"v1": true}))
		time.Sleep(time.Minute)
		if got := f.Status()[0]; got.State != status.StateSynced {
			t.Errorf("status: %+v", got)
		}
		w.take()

		cluster.change("ships", versions(map[string]bool{"v1": false}))
		w.wants(t, "no version is served", "stop ships NoVersionServed "+cluster.has("ships"))
		cluster.change("ships", versions(map[string]bool{"v1": true}))
		w.wants(t, "it is again", "start ships", "add ns/a")
		w.end(f)
	})
}

// Without permission for CRDs, documents decide: for a while, they do not list a type whose requests succeed.
func TestFollow_TypeThatIsListedAgainMayBeDeselected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships", categories("fleet"))
		cluster.hideCRDs(true)
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{Categories: []string{"fleet"}})
		w.wants(t, "the start", "start ships")
		cluster.change("ships", versions(map[string]bool{"v1": false}))
		time.Sleep(5 * time.Minute)
		w.wants(t, "not listed")
		cluster.change("ships", categories("other"))
		cluster.change("ships", versions(map[string]bool{"v1": true}))
		time.Sleep(5 * time.Minute)
		w.wants(t, "listed again, with another category", "stop ships")
		w.end(f)
	})
}

// On a server without CRDs, a type that is not listed is gone if its requests are NotFound too.
func TestFollow_TypeIsGoneWhenItIsNotListedAndNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		w := follow(t, f, discovery.Selector{Groups: []string{widgets.Group}})
		w.wants(t, "the start", "start widgets", "add ns/a")

		// Discovery does not list the type, but requests for it succeed.
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == fakecluster.VerbDiscover && req.GVR.Group == widgets.Group {
				return apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "", 0, true)
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		w.wants(t, "not listed")
		cluster.Intercept(nil)
		time.Sleep(10 * time.Minute)
		w.wants(t, "listed again")

		cluster.Withdraw(widgets)
		time.Sleep(10 * time.Minute)
		w.wants(t, "gone", "delete ns/a", "stop widgets NotListed")
		cluster.Serve(widgetType)
		time.Sleep(10 * time.Minute)
		w.wants(t, "back", "start widgets")
		w.end(f)
	})
}

package follow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

var boats = schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"}

// leased is a lease whose objects are never deleted, unless phase says so.
type leased struct {
	resource string
	phase    DeletionPhase
	listed   chan struct{} // nil: there is a first list
	calls    *calls
}

func (l leased) Changed() <-chan struct{} { return nil }

func (l leased) Listed() <-chan struct{} { return l.listed }

func (l leased) Waits() bool { return false }

func (l leased) Deletion(discovery.Evidence) Deletion { return Deletion{Phase: l.phase} }

func (l leased) Release() { l.calls.add("release " + l.resource) }

// calls are the calls of a follower.
type calls struct {
	mu    sync.Mutex
	lines []string
}

func (c *calls) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

// wants compares the calls since the last comparison, in any order.
func (c *calls) wants(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.lines)
	if diff := cmp.Diff(want, c.lines); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	c.lines = nil
}

// following runs a follower of the types of cluster, one start at a time, until the test ends. acquire is called
// for each lease; the follower gets the lease if it returns nil.
func following(t *testing.T, cluster *fakecluster.Cluster, acquire func(l *leased) error) (c *calls, stop func()) {
	t.Helper()
	return followingAtMost(t, cluster, 0, acquire)
}

func followingAtMost(t *testing.T, cluster *fakecluster.Cluster, most int, acquire func(l *leased) error) (c *calls, stop func()) {
	t.Helper()
	resolver, err := discovery.NewFromDiscovery(cluster.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	resolving, end := context.WithCancel(t.Context())
	c = &calls{}
	var running, resolverRuns sync.WaitGroup
	resolverRuns.Go(func() { _ = resolver.Run(resolving) })
	running.Go(func() {
		New(Config{
			Resolver: resolver, Verbs: []string{"list", "watch"}, Starts: 1, Most: most, Closed: make(chan struct{}),
			Acquire: func(_ context.Context, gvr schema.GroupVersionResource) (Lease, error) {
				l := &leased{resource: gvr.Resource, calls: c}
				err := acquire(l)
				return *l, err
			},
			Started: func(l Lease) { c.add("start " + l.(leased).resource) },
			Stopped: func(res discovery.Resource, _ discovery.Evidence) { c.add("stop " + res.GVR.Resource) },
		}).Run(ctx)
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		end()
		resolverRuns.Wait()
	})
	t.Cleanup(stop)
	return c, stop
}

func typeOf(gvr schema.GroupVersionResource, verbs ...string) fakecluster.Type {
	return fakecluster.Type{GVR: gvr, Kind: "Kind" + gvr.Resource, Namespaced: true, Verbs: verbs}
}

func TestRun_OnlyTypesThatCanBeListedAndWatched(t *testing.T) {
	for name, verbs := range map[string][]string{"no watch": {"list", "get"}, "no list": {"watch", "get"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := following(t, fakecluster.New(typeOf(ships), typeOf(boats, verbs...)), func(*leased) error { return nil })
				time.Sleep(time.Minute)
				c.wants(t, "start ships")
			})
		})
	}
}

// Other types start meanwhile.
func TestRun_ALeaseThatFailsIsAcquiredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c, _ := following(t, fakecluster.New(typeOf(ships), typeOf(boats)), func(l *leased) error {
			if l.resource == "boats" && time.Since(begun) < 10*time.Second {
				return errors.New("not now")
			}
			return nil
		})
		time.Sleep(9 * time.Second)
		c.wants(t, "start ships")
		time.Sleep(time.Minute)
		c.wants(t, "start boats")
	})
}

// Types wait in order for the end of others. A type that is gone meanwhile is not started, and one whose lease fails
// does not count.
func TestRun_AtMostSoManyTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(typeOf(ships))
		c, _ := followingAtMost(t, cluster, 1, func(l *leased) error {
			if l.phase = DeletionDone; l.resource == "rafts" {
				return errors.New("never")
			}
			return nil
		})
		time.Sleep(time.Minute)
		c.wants(t, "start ships")
		for _, resource := range []string{"rafts", "boats", "canoes"} {
			cluster.Serve(typeOf(boats.GroupVersion().WithResource(resource)))
			time.Sleep(time.Minute)
		}
		c.wants(t)
		cluster.Withdraw(boats)
		time.Sleep(10 * time.Minute)
		c.wants(t)
		cluster.Withdraw(ships)
		time.Sleep(10 * time.Minute)
		c.wants(t, "release ships", "start canoes", "stop ships")
		cluster.Serve(typeOf(ships))
		time.Sleep(time.Minute)
		cluster.Withdraw(boats.GroupVersion().WithResource("canoes"))
		time.Sleep(10 * time.Minute)
		c.wants(t, "release canoes", "start ships", "stop canoes")
	})
}

func TestRun_NothingStartsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		c, stop := following(t, fakecluster.New(typeOf(ships)), func(*leased) error {
			<-answer
			return nil
		})
		time.Sleep(time.Minute)
		go stop()
		synctest.Wait()
		close(answer)
		stop()
		c.wants(t, "release ships")
	})
}

func TestRun_ATypeThatIsGoneBeforeItsTurnIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(typeOf(boats), typeOf(ships))
		answer := make(chan struct{})
		var first string
		c, _ := following(t, cluster, func(l *leased) error {
			if first == "" {
				first = l.resource
				<-answer
			}
			return nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, gvr := range []schema.GroupVersionResource{ships, boats} {
			if gvr.Resource != first {
				cluster.Withdraw(gvr)
			}
		}
		time.Sleep(10 * time.Minute)
		close(answer)
		c.wants(t, "start "+first)
	})
}

// The objects of the type are never gone, because the type is still served.
func TestRun_ATypeThatIsListedAgainIsNotStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(typeOf(ships), typeOf(boats))
		c, _ := following(t, cluster, func(*leased) error { return nil })
		time.Sleep(time.Minute)
		c.wants(t, "start boats", "start ships")
		cluster.Withdraw(ships)
		time.Sleep(10 * time.Minute)
		cluster.Serve(typeOf(ships))
		time.Sleep(10 * time.Minute)
		c.wants(t)
	})
}

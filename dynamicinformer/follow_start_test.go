package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// lists intercepts the first lists of types, which take some time.
type lists struct {
	takes func(name string) time.Duration

	mu       sync.Mutex
	now, max int
	of       map[string]bool
}

func (l *lists) intercept(ctx context.Context, req fakecluster.Request) error {
	if req.Verb != "list" && req.Verb != "watch" {
		return nil
	}
	l.mu.Lock()
	if l.of[req.GVR.Resource] {
		l.mu.Unlock()
		return nil
	}
	l.of[req.GVR.Resource] = true
	l.now++
	l.max = max(l.max, l.now)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now--
	}()
	select {
	case <-time.After(l.takes(req.GVR.Resource)):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func TestFollow_StartsAtMostTheLimitAtATime(t *testing.T) {
	for limit, opts := range map[int][]dynamicinformer.FollowOption{
		3: {dynamicinformer.WithStartLimit(5), nil, dynamicinformer.WithStartLimit(3)},
		8: {dynamicinformer.WithStartLimit(0)},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := newCRDCluster()
			for i := range 40 {
				cluster.define(fmt.Sprintf("ships%02d", i))
			}
			l := &lists{of: map[string]bool{}, takes: func(string) time.Duration { return time.Second }}
			cluster.Intercept(l.intercept)
			f := cluster.factory(t)
			w := follow(t, f, discovery.Selector{}, opts...)
			time.Sleep(time.Minute)
			if err := f.WaitForSync(t.Context()); err != nil || len(f.Status()) != 40 {
				t.Errorf("%d types: %v", len(f.Status()), err)
			}
			if l.max != limit {
				t.Errorf("lists at a time = %d, want %d", l.max, limit)
			}
			w.end(f)
		})
	}
}

// A type that hangs frees its place after a while, and a type that fails at once. The other types sync.
func TestFollow_TypeThatCannotBeListedFreesItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		bad  func(ctx context.Context) error
		want time.Duration // until the other types have synced
	}{
		"hanging": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 15 * time.Second}, // 6 types, 2 at a time
		"forbidden": {func(context.Context) error {
			return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
		}, 0},
		"broken": {func(context.Context) error { return apierrors.NewServiceUnavailable("down") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				for i := range 6 {
					cluster.define(fmt.Sprintf("aa%d", i))
				}
				for i := range 20 {
					cluster.define(fmt.Sprintf("ships%02d", i))
				}
				cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if strings.HasPrefix(req.GVR.Resource, "aa") {
						return tc.bad(ctx)
					}
					return nil
				})
				f := cluster.factory(t)
				began := time.Now()
				w := follow(t, f, discovery.Selector{}, dynamicinformer.WithStartLimit(2))
				for {
					synctest.Wait()
					if synced, _ := synced(f); synced == 20 || time.Since(began) > time.Hour {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took < tc.want || took > tc.want+time.Second {
					t.Errorf("the other types synced after %v, want %v", took, tc.want)
				}
				if _, others := synced(f); others != 6 {
					t.Errorf("%d are not, want 6", others)
				}
				w.end(f)
			})
		})
	}
}

// synced returns the numbers of informers that have synced, and of others.
func synced(f *dynamicinformer.Factory) (synced, others int) {
	for _, s := range f.Status() {
		if s.State == status.StateSynced {
			synced++
		} else {
			others++
		}
	}
	return synced, others
}

// The leases of types that can't be listed are kept, and their requests are retried.
func TestFollow_TypeSyncsWhenItCanBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		for i := range 20 {
			cluster.define(fmt.Sprintf("ships%02d", i))
		}
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			return apierrors.NewForbidden(req.GVR.GroupResource(), "", errors.New("no"))
		})
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{}, dynamicinformer.WithStartLimit(2))
		time.Sleep(time.Second)
		if _, others := synced(f); others != 20 {
			t.Errorf("%d wait, want 20", others)
		}
		cluster.Intercept(nil)
		time.Sleep(time.Minute)
		if got, _ := synced(f); got != 20 {
			t.Errorf("%d are synced, want 20", got)
		}
		w.end(f)
	})
}

func TestFollow_BadInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		bare := newFactory(t, cluster.Cluster)
		if err := bare.Follow(t.Context(), discovery.Selector{}, dynamicinformer.FollowFuncs{}); !errors.Is(err, dynamicinformer.ErrNoDiscovery) {
			t.Errorf("without discovery: %v", err)
		}
		f := cluster.factory(t)
		err := f.Follow(t.Context(), discovery.Selector{Scope: "Galaxy"}, dynamicinformer.FollowFuncs{})
		if bad, is := errors.AsType[*discovery.SelectorError](err); !is || bad.Field != "Scope" {
			t.Errorf("with an invalid selector: %v", err)
		}

		// Before Start, Follow waits.
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- f.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{}) }()
		go func() { ended <- f.Follow(t.Context(), discovery.Selector{}, dynamicinformer.FollowFuncs{}, nil) }()
		time.Sleep(time.Minute)
		if got := f.Status(); len(got) > 0 {
			t.Errorf("before Start: %+v", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("end of the context before Start: %v", err)
		}
		if err := f.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{}); err != nil {
			t.Errorf("with a context that has ended: %v", err)
		}
		f.Start(t.Context())
		time.Sleep(time.Second) // the first answer waits for the lists of CRDs and APIServices
		synctest.Wait()
		if got := f.Status(); len(got) != 1 || got[0].State != status.StateSynced {
			t.Errorf("after Start, without callbacks: %+v", got)
		}
		shutdown(t, f)
		if err := <-ended; !errors.Is(err, dynamicinformer.ErrShutDown) {
			t.Errorf("at Shutdown: %v", err)
		}
		if err := f.Follow(t.Context(), discovery.Selector{}, dynamicinformer.FollowFuncs{}); !errors.Is(err, dynamicinformer.ErrShutDown) {
			t.Errorf("after Shutdown: %v", err)
		}
		unstarted := cluster.factory(t)
		go func() { ended <- unstarted.Follow(t.Context(), discovery.Selector{}, dynamicinformer.FollowFuncs{}) }()
		synctest.Wait()
		shutdown(t, unstarted)
		if err := <-ended; !errors.Is(err, dynamicinformer.ErrShutDown) {
			t.Errorf("at Shutdown without Start: %v", err)
		}
	})
}

// A callback may call all methods of the factory.
func TestFollow_CallbacksMayCallTheFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		for i := range 5 {
			cluster.define(fmt.Sprintf("ships%d", i))
		}
		f := cluster.factory(t)
		f.Start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var begun sync.WaitGroup
		begun.Add(5)
		go func() {
			begun.Wait()
			cancel()
		}()
		err := f.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{
			Started: func(l *dynamicinformer.Lease) {
				own := acquire(t, f, l.Status().GVR)
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Error(err)
				}
				own.Release()
				l.Release()
				begun.Done()
			},
			Stopped: func(discovery.Resource, discovery.Evidence) { f.Status() },
		})
		if err != nil || len(f.Status()) > 0 {
			t.Errorf("%v, %d left", err, len(f.Status()))
		}
		shutdown(t, f)
	})
}

// The type has an informer with other options.
func TestFollow_LeasesWithOtherOptionsGetASeparateInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		f := cluster.factory(t)
		f.Start(t.Context())
		other := acquire(t, f, kindOf("ships"), dynamicinformer.WithAllowAbsent(), dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()),
			dynamicinformer.WithNamespace("else"))
		create(t, cluster, kindOf("ships"), "ns", "a")
		w := follow(t, f, discovery.Selector{}, dynamicinformer.WithLeaseOptions(dynamicinformer.WithLeaseName("mine")))
		w.wants(t, "the start", "start ships", "add ns/a")
		if got, err := other.Lister().List(labels.Everything()); err != nil || len(got) > 0 || len(f.Status()) != 2 {
			t.Errorf("informer with other options: %d objects, %v, %d informers", len(got), err, len(f.Status()))
		}
		other.Release()
		if got := f.Status()[0].Owners[0].Name; got != "mine" {
			t.Errorf("owner %q", got)
		}
		w.end(f)
	})
}

// A type that is created and deleted all the time causes only a few lists.
func TestFollow_TypeThatChangesOftenIsStartedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{})
		const seconds = 60
		for range seconds * 50 {
			cluster.undefine("ships")
			time.Sleep(10 * time.Millisecond)
			cluster.define("ships")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		checkAlternates(t, w.take(), "ships", true)
		if got := len(cluster.Requests("watch", kindOf("ships"))); got > 80 {
			t.Errorf("watches = %d", got)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		cluster.define("ships")
		time.Sleep(100 * time.Millisecond) // a resolver reads events in batches
		synctest.Wait()
		if err := f.WaitForSync(t.Context(), dynamicinformer.WithResources(kindOf("ships"))); err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("later: %v, %v", err, time.Since(began))
		}
		w.end(f)
	})
}

// checkAlternates checks that starts and stops of a type alternate, and whether it is started at the end.
func checkAlternates(t *testing.T, lines []string, name string, started bool) {
	t.Helper()
	is := false
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != name {
			continue
		}
		if (fields[0] == "start") == is {
			t.Fatalf("%s twice in a row: %q", fields[0], lines)
		}
		is = !is
	}
	if is != started {
		t.Errorf("%s is started: %v, want %v", name, is, started)
	}
}

// Follow has no goroutine for a type that has synced.
func TestFollow_ManyTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1200
		cluster := newCRDCluster()
		for i := range many {
			cluster.define(fmt.Sprintf("ships%04d", i))
		}
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{})
		time.Sleep(time.Minute)
		if err := f.WaitForSync(t.Context()); err != nil || len(f.Status()) != many {
			t.Errorf("%d types: %v", len(f.Status()), err)
		}
		if got := goroutinesOf("dynamicinformer.(*follow)"); got > 3 {
			t.Errorf("goroutines of Follow = %d", got)
		}
		w.end(f)
		if got := len(w.take()); got != 2*many {
			t.Errorf("%d calls, want %d", got, 2*many)
		}
	})
}

// goroutinesOf returns the number of goroutines in functions with this name.
func goroutinesOf(name string) (count int) {
	buf := make([]byte, 64<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, name) {
			count++
		}
	}
	return count
}

var _ cache.ResourceEventHandler = (*callLog)(nil)

// The limit is that of one Follow. Types that wait have no informer.
func TestFollow_TypeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		for i := range 6 {
			cluster.define(fmt.Sprintf("ships%d", i))
		}
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{}, dynamicinformer.WithTypeLimit(4))
		time.Sleep(time.Minute)
		if synced, others := synced(f); synced != 4 || others != 0 {
			t.Errorf("%d informers have synced, and %d have not; want 4", synced, others)
		}
		if diff := cmp.Diff([]status.Follow{{Name: "follow", Types: 4, Waiting: 2}}, f.Follows()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		w.end(f)
	})
}

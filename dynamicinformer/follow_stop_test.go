package dynamicinformer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// A slow handler gets the deletion of each object before its lease is released.
func TestFollow_HandlersGetTheDeletionsOfADeletedType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 100
		cluster := newCRDCluster()
		cluster.define("ships")
		for i := range objects {
			create(t, cluster, kindOf("ships"), "ns", fmt.Sprint(i))
		}
		f := cluster.factory(t)
		w := slowly(t, f, time.Second)
		time.Sleep(time.Hour)
		w.take()
		cluster.undefine("ships")
		time.Sleep(time.Hour)
		got := w.take()
		if len(got) != objects+1 || !strings.HasPrefix(got[0], "delete ns/") || !strings.HasPrefix(got[objects-1], "delete ns/") || !strings.HasPrefix(got[objects], "stop ") {
			t.Errorf("%d lines: %q", len(got), got)
		}
		w.end(f)
	})
}

// slowly follows all types, with slow handlers.
func slowly(t *testing.T, f *dynamicinformer.Factory, each time.Duration, opts ...dynamicinformer.FollowOption) *follower {
	t.Helper()
	w := &follower{callLog: &callLog{each: each}}
	return w.follow(t, f, discovery.Selector{}, opts...)
}

// A stuck handler delays Stopped for a limited time, and does not delay handlers of other types.
func TestFollow_StuckHandlerDelaysStoppedForALimitedTime(t *testing.T) {
	for name, tc := range map[string]struct {
		own  bool
		want time.Duration
	}{
		"its own":   {true, 10 * time.Second},
		"another's": {false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "ns", "a")
				f := cluster.factory(t)
				f.Start(t.Context())
				stuck := make(chan struct{})
				handler := cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { <-stuck }}
				w := follow(t, f, discovery.Selector{})
				w.wants(t, "the start", "start ships", "add ns/a")
				l, there := w.leases.Load("ships")
				if !there {
					t.Fatal("the type has no lease")
				}
				lease := l.(*dynamicinformer.Lease)
				if !tc.own {
					lease = acquire(t, f, kindOf("ships"), dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
				}
				if _, err := lease.AddEventHandler(handler); err != nil {
					t.Fatal(err)
				}
				uid, began := cluster.has("ships"), time.Now()
				cluster.undefine("ships")
				for len(w.stops()) == 0 && time.Since(began) < time.Minute {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took < tc.want || took > tc.want+time.Second {
					t.Errorf("Stopped after %v, want %v", took, tc.want)
				}
				w.wants(t, "the end", "delete ns/a", "stop ships CRDDeleted "+uid)
				close(stuck)
				if !tc.own {
					lease.Release()
				}
				w.end(f)
			})
		})
	}
}

func TestFollow_KeepCacheKeepsTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		create(t, cluster, kindOf("ships"), "ns", "a")
		f := cluster.factory(t)
		w := follow(t, f, discovery.Selector{}, dynamicinformer.WithLeaseOptions(dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache)))
		w.wants(t, "the start", "start ships", "add ns/a")
		uid := cluster.has("ships")
		cluster.undefine("ships")
		time.Sleep(time.Second)
		w.wants(t, "the end", "stop ships CRDDeleted "+uid)
		w.end(f)
	})
}

// New events count as waiting also for a handler that was idle for a long time.
func TestHandlerStatus_BacklogOfAnIdleHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		held := make(chan struct{})
		f := cluster.factory(t, dynamicinformer.WithIndexers(cache.Indexers{"held": func(any) ([]string, error) {
			<-held // the store has not passed the object on
			return nil, nil
		}}))
		w := follow(t, f, discovery.Selector{})
		time.Sleep(time.Minute)
		create(t, cluster, kindOf("ships"), "ns", "a")
		synctest.Wait()
		if got := f.Status()[0].Handlers[0].Backlog; got != 1 {
			t.Errorf("backlog = %d, want 1", got)
		}
		close(held)
		w.wants(t, "then", "start ships", "add ns/a")
		if diff := cmp.Diff(0, f.Status()[0].Handlers[0].Backlog); diff != "" {
			t.Errorf("backlog (-want +got): %s", diff)
		}
		w.end(f)
	})
}

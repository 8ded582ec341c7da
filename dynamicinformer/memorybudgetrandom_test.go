package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// Whatever leases, types, objects and servers do, the budget has the sum of the caches, what does not fit waits, and what fits does not.
func TestMemoryBudget_Random(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { randomBudget(t, rand.New(rand.NewPCG(seed, 5))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// budgetTest is one random sequence.
type budgetTest struct {
	*testing.T
	*rand.Rand
	types   []fakecluster.Type
	cluster *fakecluster.Cluster
	factory *dynamicinformer.Factory
	leases  map[int]*dynamicinformer.Lease
	sets    map[int]bool // those with namespaces
	faults  atomic.Bool
}

func randomBudget(t *testing.T, r *rand.Rand) {
	t.Helper()
	b := &budgetTest{T: t, Rand: r, types: manyTypes(4), leases: map[int]*dynamicinformer.Lease{}, sets: map[int]bool{}}
	b.cluster = fakecluster.New(b.types...)
	for _, of := range b.types {
		for range r.IntN(60) {
			b.create(of)
		}
	}
	seed := r.Uint64()
	var requests atomic.Uint64
	b.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if n := requests.Add(1); b.faults.Load() && (req.Verb == "list" || req.Verb == "watch") && (n*seed>>32)%5 == 0 {
			return errors.New("a fault")
		}
		return nil
	})
	const kib = 1 << 10
	b.factory = newFactory(t, b.cluster, withDiscovery(t, b.cluster), dynamicinformer.WithMemoryBudget(r.Int64N(1500*kib)), dynamicinformer.WithPageSize(r.Int64N(20)),
		dynamicinformer.WithBudgetPolicy(dynamicinformer.BudgetPolicy(r.IntN(2))), dynamicinformer.WithListConcurrency(r.IntN(3)), dynamicinformer.WithListBudget(r.Int64N(2)*100*kib))
	b.factory.Start(t.Context())
	b.faults.Store(r.IntN(2) == 0)
	for range 40 {
		b.step()
	}
	b.faults.Store(false)
	for _, of := range b.types {
		if _, err := b.cluster.Resource(of.GVR).List(t.Context(), metav1.ListOptions{}); err != nil {
			b.cluster.Serve(of)
		}
	}
	time.Sleep(2 * time.Hour)
	checkBudget(t, b.factory)
	b.checkReasons()
	for _, l := range b.leases {
		l.Release()
	}
	if now := b.factory.MemoryBudget(); now.Caches != 0 || now.Lists != 0 || now.Waiting != 0 {
		t.Errorf("without leases, the budget is %+v", now)
	}
	for _, of := range b.types {
		if lists := len(b.cluster.Requests("list", of.GVR)); lists > 2000 {
			t.Errorf("%d lists", lists)
		}
	}
	shutdown(t, b.factory)
}

func (b *budgetTest) create(of fakecluster.Type) {
	_, _ = b.cluster.Resource(of.GVR).Namespace([]string{"a", "b"}[b.IntN(2)]).Create(b.Context(), largeObject(b.IntN(200), 12), metav1.CreateOptions{})
}

func (b *budgetTest) acquire(i int, of fakecluster.Type) {
	opts := []dynamicinformer.LeaseOption{dynamicinformer.WithSeparateInformer(), dynamicinformer.WithAllowAbsent()}
	switch b.IntN(6) {
	case 0:
		opts = append(opts, dynamicinformer.WithLabelSelector("app=large"))
	case 1, 2:
		opts, b.sets[i] = append(opts, dynamicinformer.WithNamespaces("a", "b")), true
	case 3:
		opts = append(opts, dynamicinformer.WithTransform(func(obj any) (any, error) {
			object := obj.(*unstructured.Unstructured)
			unstructured.RemoveNestedField(object.Object, "spec")
			if strings.HasSuffix(object.GetName(), "7") {
				return nil, errors.New("a bad object")
			}
			return obj, nil
		}))
	case 4:
		opts = append(opts, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
	case 5:
		l, err := dynamicinformer.AcquireTyped[*typedWidget](b.Context(), b.factory, of.GVR, opts...)
		if err != nil {
			b.Fatal(err)
		}
		b.leases[i] = l.Lease
		return
	}
	b.leases[i] = acquire(b.T, b.factory, of.GVR, opts...)
}

func (b *budgetTest) step() {
	i, of := b.IntN(6), b.types[b.IntN(len(b.types))]
	l := b.leases[i]
	switch b.IntN(8) {
	case 0, 1:
		if l != nil {
			l.Release()
			delete(b.leases, i)
			delete(b.sets, i)
		} else {
			b.acquire(i, of)
		}
	case 2:
		for range b.IntN(20) {
			b.create(of)
		}
	case 3:
		for n := range 200 {
			if b.IntN(3) == 0 {
				_ = b.cluster.Resource(of.GVR).Namespace("a").Delete(b.Context(), fmt.Sprintf("o%04d", n), metav1.DeleteOptions{})
			}
		}
	case 4:
		b.cluster.Withdraw(of.GVR)
		if b.IntN(2) == 0 {
			time.Sleep(time.Minute)
		}
		b.cluster.Serve(of)
		for range b.IntN(60) {
			b.create(of)
		}
	case 5:
		if l != nil {
			l.Retry()
		}
	case 6:
		if b.sets[i] {
			if err := l.SetNamespaces([][]string{nil, {"a"}, {"b"}, {"a", "b"}}[b.IntN(4)]...); err != nil {
				b.Error(err)
			}
		}
	case 7:
		b.cluster.Expire(of.GVR)
		b.cluster.CloseWatches(of.GVR)
	}
	switch b.IntN(4) {
	case 0:
		time.Sleep(time.Duration(b.IntN(100)) * time.Second)
	case 1:
		time.Sleep(time.Duration(b.IntN(1000)) * time.Millisecond)
	}
}

// checkReasons checks that each lease is synced, or has lists that don't fit.
func (b *budgetTest) checkReasons() {
	b.Helper()
	now := b.factory.MemoryBudget()
	check := func(name string, err error) {
		over, is := errors.AsType[*budget.OverError](err)
		if !is {
			b.Errorf("%s: %v", name, err)
		} else if over.Needs+now.Caches <= now.Limit {
			b.Errorf("%s waits for %d bytes, and the budget is %+v", name, over.Needs, now)
		}
	}
	for i, l := range b.leases {
		s := l.Status()
		if s.State != status.StateSynced && s.Reason != status.ReasonTransformFailed {
			check(fmt.Sprint(i, " ", s.Summary(time.Now())), s.Err)
		}
		for _, n := range s.Namespaces {
			if !n.Listed {
				check(fmt.Sprint(i, " ", n.Name), n.Err)
			}
		}
	}
}

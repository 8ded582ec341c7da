package sharded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// writer writes to random objects at a rate, and records the writes in the ledger.
type writer struct {
	client  dynamic.Interface
	ledger  *ledger
	objects int
	written atomic.Int64
}

// run sends a number of writes at a rate per second, or, if it is 0, writes until stop closes. It returns the first error, and the writes per
// second that it has achieved.
func (w *writer) run(ctx context.Context, stop <-chan struct{}, rate, writes int) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	const workers = 32 // each one has its own objects, so that writes of one object are in order
	var running sync.WaitGroup
	var queues [workers]chan int
	for i := range queues {
		queues[i] = make(chan int, 100)
		running.Go(func() {
			for n := range queues[i] {
				if err := w.write(ctx, n); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	begun, before := time.Now(), w.written.Load()
	pause := time.NewTimer(0)
	defer pause.Stop()
	sent := 0
sending:
	for sent < writes || writes == 0 {
		n := random.IntN(w.objects)
		select {
		case queues[n%workers] <- n:
			sent++
		case <-stop:
			break sending
		case <-ctx.Done():
			break sending
		}
		pause.Reset(time.Until(begun.Add(time.Duration(sent) * time.Second / time.Duration(rate))))
		select {
		case <-pause.C:
		case <-stop:
			break sending
		}
	}
	for _, queue := range queues {
		close(queue)
	}
	running.Wait()
	return float64(w.written.Load()-before) / time.Since(begun).Seconds(), context.Cause(ctx)
}

// replaceEach is the number of writes of which one replaces an object by another one with its name, which belongs to another slot.
const replaceEach = 50

// write changes an object, or replaces it.
func (w *writer) write(ctx context.Context, n int) error {
	written := w.written.Add(1)
	name := newBlock(n).GetName()
	if written%replaceEach == 0 {
		w.ledger.deletes(w.ledger.numbered(n))
		if err := w.client.Resource(blocks).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		obj, err := w.client.Resource(blocks).Create(ctx, newBlock(n), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		w.ledger.wrote(n, obj.GetUID(), obj.GetResourceVersion())
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"sequenceNumber":%d}}`, written)
	obj, err := w.client.Resource(blocks).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	w.ledger.wrote(n, obj.GetUID(), obj.GetResourceVersion())
	return nil
}

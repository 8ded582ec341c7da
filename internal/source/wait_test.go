package source_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

// waitTakes returns the time that s.Wait takes.
func waitTakes(s *source.Source) time.Duration {
	begun := time.Now()
	s.Wait()
	return time.Since(begun)
}

// A reflector that is stopped during a LIST does not wait for it.
func TestWait_WaitsForAListInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.New(source.Config{GVR: widgets, Client: source.Unstructured(&script{
			list: func(context.Context) (*unstructured.UnstructuredList, error) {
				time.Sleep(3 * time.Second) // ignores its context
				return &unstructured.UnstructuredList{}, nil
			},
		})})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = source.RequestsOf(s).ListWithContext(ctx, metav1.ListOptions{}) }()
		synctest.Wait()
		cancel()
		if took := waitTakes(s); took != 3*time.Second {
			t.Errorf("Wait took %v, the list 3 s", took)
		}
	})
}

func TestWait_WaitsForAWatchRequestInProgress(t *testing.T) {
	for kind, opts := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := source.New(source.Config{GVR: widgets, Client: source.Unstructured(&script{
					watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						time.Sleep(3 * time.Second)
						return nil, errors.New("broken")
					},
				})})
				go func() { _, _ = source.RequestsOf(s).WatchWithContext(t.Context(), opts) }()
				synctest.Wait()
				if took := waitTakes(s); took != 3*time.Second {
					t.Errorf("Wait took %v, the request 3 s", took)
				}
			})
		})
	}
}

func TestWait_WaitsForOpenStreams(t *testing.T) {
	for kind, opts := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := source.New(source.Config{GVR: widgets, Client: source.Unstructured(&script{
					watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						return newLateWatch(300 * time.Millisecond), nil
					},
				})})
				ctx, cancel := context.WithCancel(t.Context())
				lw := source.RequestsOf(s)
				for range 2 {
					if _, err := lw.WatchWithContext(ctx, opts); err != nil {
						t.Fatal(err)
					}
				}
				cancel() // without Stop and without a reader
				if took := waitTakes(s); took != 300*time.Millisecond {
					t.Errorf("Wait took %v, the watches 0.3 s", took)
				}
			})
		})
	}
}

func TestWait_ReturnsAtOnceAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		client := &script{watch: always(nil, broken)}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) { return nil, broken }
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		lw := source.RequestsOf(s)
		_, _ = lw.ListWithContext(t.Context(), metav1.ListOptions{})
		for _, opts := range kinds {
			if _, err := lw.WatchWithContext(t.Context(), opts); err == nil {
				t.Fatal("a broken watch has no error")
			}
		}
		client.list, client.watch = nil, nil
		if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, opts := range kinds {
			openWatch(t, lw, opts).Stop()
		}
		synctest.Wait()
		for range 2 { // also when it is called again
			if took := waitTakes(s); took != 0 {
				t.Errorf("Wait took %v without requests", took)
			}
		}
	})
}

func TestWait_RejectsLaterRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, observer := &script{}, &observer{}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
		s.Wait()
		lw := source.RequestsOf(s)
		if list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil || list != nil {
			t.Errorf("list after Wait = %v, %v; want an error", list, err)
		}
		for kind, opts := range kinds {
			if w, err := lw.WatchWithContext(t.Context(), opts); err == nil || w != nil {
				t.Errorf("%s after Wait = %v, %v; want an error", kind, w, err)
			}
		}
		if got := client.requests(); got != nil {
			t.Errorf("requests: %v", got)
		}
		if got := observer.reports(); got != nil { // a rejected request of a stopped informer is not a failure
			t.Errorf("reports %q", got)
		}
	})
}

// A request that waits at the gate is not in progress, and is not sent later.
func TestWait_RequestAtTheGateIsNotSentLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Held)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		ended := make(chan error)
		go func() { _, err := gateOf(s).ListWithContext(t.Context(), metav1.ListOptions{}); ended <- err }()
		synctest.Wait()
		if took := waitTakes(s); took != 0 {
			t.Errorf("Wait took %v", took)
		}
		set(available, source.Served)
		if err := <-ended; err == nil {
			t.Error("a list after Wait has no error")
		}
		if got := client.requests(); got != nil {
			t.Errorf("requests: %v", got)
		}
	})
}

// Requests during Wait are either waited for or rejected. The race detector reports a counter that
// is incremented while Wait may be waiting.
func TestWait_NoRequestIsInProgressWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 1000 {
			var begun atomic.Int32
			var over atomic.Bool
			s := source.New(source.Config{GVR: widgets, Client: source.Unstructured(&script{
				list: func(context.Context) (*unstructured.UnstructuredList, error) {
					begun.Add(1)
					runtime.Gosched()
					if over.Load() {
						t.Error("a list is in progress after Wait")
					}
					return &unstructured.UnstructuredList{}, nil
				},
			})})
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					lw := source.RequestsOf(s)
					for range 1000 {
						if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
							return
						}
					}
				})
			}
			for begun.Load() < 20 {
				runtime.Gosched()
			}
			s.Wait()
			over.Store(true)
			callers.Wait()
		}
	})
}

package source_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

var errAbsent = errors.New("not served")

func TestGate_NothingLeavesBeforeAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		var served atomic.Bool
		lw := newLW(source.Config{Client: client, GVR: widgets, Admit: func(context.Context) (bool, error) {
			if !served.Load() {
				return false, errAbsent
			}
			return true, nil
		}})
		listed, watched := make(chan error), make(chan error)
		go func() { _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); listed <- err }()
		go func() {
			w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
			if err == nil {
				w.Stop()
			}
			watched <- err
		}()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := client.requests(); got != nil {
			t.Errorf("requests before admission: %v", got)
		}
		served.Store(true)
		for verb, ended := range map[string]chan error{"list": listed, "watch": watched} {
			if err := <-ended; err != nil {
				t.Errorf("%s after admission: %v", verb, err)
			}
		}
		if got := len(client.requests()); got != 2 {
			t.Errorf("requests = %d, want 2", got)
		}
	})
}

func TestGate_AsksAtOnceAndThenBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		lw := newLW(source.Config{Client: &script{}, GVR: widgets, Admit: func(context.Context) (bool, error) {
			asked = append(asked, time.Now())
			if len(asked) < 30 {
				return false, errAbsent
			}
			return true, nil
		}})
		begun := time.Now()
		if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if !asked[0].Equal(begun) {
			t.Errorf("first asked after %v", asked[0].Sub(begun))
		}
		want := []time.Duration{1, 2, 4, 8, 16, 30} // seconds, the last one for ever
		jittered := false
		for i := range len(asked) - 1 {
			base := want[min(i, len(want)-1)] * time.Second
			got := asked[i+1].Sub(asked[i])
			if got < base || got > base+base/10 {
				t.Errorf("wait %d = %v, want %v and at most a tenth more", i, got, base)
			}
			jittered = jittered || got != base
		}
		if !jittered {
			t.Error("no wait has jitter: all informers of a process would ask at the same moments")
		}
	})
}

func TestGate_ReportsEachRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &observer{}
		answers := []error{errors.New("first"), errors.New("second"), errors.New("third"), nil}
		asked := 0
		lw := newLW(source.Config{Client: &script{}, GVR: widgets, Observer: observer, Admit: func(context.Context) (bool, error) {
			asked++
			return true, answers[asked-1]
		}})
		if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"refused", "refused", "refused", `admitted to ""`, "list succeeded"}, observer.heard()); diff != "" {
			t.Errorf("observer heard (-want +got):\n%s", diff)
		}
		for i, err := range observer.errors() {
			if !errors.Is(err, answers[i]) {
				t.Errorf("refusal %d: %v, want %v", i, err, answers[i])
			}
		}
	})
}

// Once open it stays open: whether a type still exists is for its requests to
// find out.
func TestGate_IsNotAskedAgainOnceOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		cfg := source.Config{Client: &script{}, GVR: widgets, Admit: func(context.Context) (bool, error) {
			asked++
			return true, nil
		}}
		lw := newLW(cfg)
		for range 3 {
			if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			openWatch(t, lw, metav1.ListOptions{})
		}
		if asked != 1 {
			t.Errorf("asked %d times, want 1", asked)
		}
	})
}

// What the observer says about requests, it says with the namespace they go to.
func TestGate_ReportsTheNamespaceItAdmitsTo(t *testing.T) {
	for namespaced, want := range map[bool]string{true: `admitted to "ns"`, false: `admitted to ""`} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer := &observer{}
				lw := newLW(source.Config{
					Client: &script{}, GVR: widgets, Namespace: "ns", Observer: observer,
					Admit: func(context.Context) (bool, error) { return namespaced, nil },
				})
				for range 2 {
					if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				// Before the first request, and not again.
				if diff := cmp.Diff([]string{want, "list succeeded", "list succeeded"}, observer.heard()); diff != "" {
					t.Errorf("observer heard (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestGate_ScopeDecidesAboutTheNamespace(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		for namespaced, want := range map[bool]string{true: "ns", false: ""} {
			t.Run(fmt.Sprintf("%s, namespaced=%v", verb, namespaced), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := &script{}
					ask(t, source.Config{
						Client: client, GVR: widgets, Namespace: "ns",
						Tweak: func(o *metav1.ListOptions) { o.LabelSelector = "color=red" },
						Admit: func(context.Context) (bool, error) { return namespaced, nil },
					}, verb, metav1.ListOptions{})
					want := []request{{Verb: verb, GVR: widgets, Namespace: want, Options: metav1.ListOptions{LabelSelector: "color=red"}}}
					if diff := cmp.Diff(want, client.requests()); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

func TestGate_EndOfContextEndsTheWaitAtOnce(t *testing.T) {
	for name, admit := range map[string]func(context.Context) (bool, error){
		"while it waits to ask again": func(context.Context) (bool, error) { return false, errAbsent },
		"while it asks": func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, fmt.Errorf("discovery: %w", ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, observer := &script{}, &observer{}
				s := source.New(source.Config{Client: client, GVR: widgets, Admit: admit, Observer: observer})
				lw := listerWatcher(s)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); ended <- err }()
				go func() { _, err := lw.WatchWithContext(ctx, watchList()); ended <- err }()
				go func() { ended <- s.Open(ctx) }()
				time.Sleep(100 * time.Second) // in the middle of a wait
				synctest.Wait()
				refusals := observer.heard()
				cancel()
				begun := time.Now()
				for range 3 {
					if err := <-ended; !errors.Is(err, context.Canceled) {
						t.Errorf("error = %v, want the context's", err)
					}
				}
				if took := time.Since(begun); took != 0 {
					t.Errorf("it took %v", took)
				}
				// The end of the caller's own context is no refusal.
				if diff := cmp.Diff(refusals, observer.heard()); diff != "" {
					t.Errorf("observer heard since (-want +got):\n%s", diff)
				}
				if got := client.requests(); got != nil {
					t.Errorf("requests: %v", got)
				}
			})
		})
	}
}

// The gate holds no lock while it asks: an answer that does not come holds up
// only the request that waits for it.
func TestGate_CallerThatHangsHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		lw := newLW(source.Config{Client: &script{}, GVR: widgets, Admit: func(ctx context.Context) (bool, error) {
			if asked.Add(1) == 1 {
				<-ctx.Done()
				return false, ctx.Err()
			}
			return true, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		hanging := make(chan error)
		go func() { _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); hanging <- err }()
		synctest.Wait()

		begun := time.Now()
		if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("second caller: %v", err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("second caller waited %v", took)
		}
		cancel()
		if err := <-hanging; !errors.Is(err, context.Canceled) {
			t.Errorf("first caller: %v, want its context's error", err)
		}
	})
}

// What one of two has learned about watch-list, the other one knows, although
// each was admitted on its own.
func TestGate_CallersThatWaitedTogetherShareWhatComesAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		answer := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var asked atomic.Int32
		lw := newLW(source.Config{Client: client, GVR: widgets, Admit: func(context.Context) (bool, error) {
			<-answer[asked.Add(1)-1]
			return true, nil
		}})
		opened, listed := make(chan watch.Interface), make(chan error)
		go func() { opened <- openWatch(t, lw, watchList()) }()
		synctest.Wait()
		go func() { _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); listed <- err }()
		synctest.Wait()
		close(answer[0])
		w := <-opened
		close(answer[1])
		if err := <-listed; err != nil {
			t.Fatal(err)
		}

		time.Sleep(10 * time.Second) // the watch-list stream is silent: a stall
		take(w)
		if _, err := lw.WatchWithContext(t.Context(), watchList()); err == nil {
			t.Error("watch-list was tried again although it has stalled")
		}
		if got := len(client.requests()); got != 2 {
			t.Errorf("requests = %d, want 2", got)
		}
	})
}

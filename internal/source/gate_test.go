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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// newAvailability returns the availability of widgets.
func newAvailability(serving source.Serving) *source.Availability {
	return source.NewAvailability(source.Type{Serving: serving, GVR: widgets, Namespaced: true})
}

// set changes only Serving of the availability.
func set(available *source.Availability, serving source.Serving) {
	t, _ := available.Current()
	t.Serving = serving
	available.Set(t)
}

// answer is the result of a list.
type answer struct {
	list runtime.Object
	err  error
}

// startList sends a list through the gate of s, in another goroutine.
func startList(ctx context.Context, s *source.Source) <-chan answer {
	ended := make(chan answer, 1)
	go func() {
		list, err := gateOf(s).ListWithContext(ctx, metav1.ListOptions{})
		ended <- answer{list, err}
	}()
	synctest.Wait()
	return ended
}

func TestGate_SendsNoRequestWhileTheTypeIsNotServed(t *testing.T) {
	for _, serving := range []source.Serving{source.Held, source.Missing, source.Gone} {
		t.Run(string(serving), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, available := &script{}, newAvailability(serving)
				s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
				opened := make(chan error)
				go func() { opened <- s.Open(t.Context()) }()
				listed := startList(t.Context(), s)
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if got := client.requests(); got != nil {
					t.Errorf("requests: %v", got)
				}
				begun := time.Now()
				set(available, source.Served)
				if a := <-listed; a.err != nil {
					t.Errorf("list: %v", a.err)
				}
				if err := <-opened; err != nil {
					t.Errorf("Open: %v", err)
				}
				if took := time.Since(begun); took != 0 {
					t.Errorf("it took %v", took)
				}
				if got := len(client.requests()); got != 1 {
					t.Errorf("requests = %d, want 1", got)
				}
			})
		})
	}
}

func TestGate_WithoutAvailabilityIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Namespace: "ns"})
		if err := s.Open(t.Context()); err != nil {
			t.Error(err)
		}
		if a := <-startList(t.Context(), s); a.err != nil {
			t.Error(a.err)
		}
		if diff := cmp.Diff([]request{{Verb: "list", GVR: widgets, Namespace: "ns"}}, client.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// The first list of a generation is consistent in all cases.
func TestGate_FirstListOfAGenerationIsConsistent(t *testing.T) {
	for name, first := range map[string]func(w *watched){
		"a list":       func(w *watched) { startList(w.t.Context(), w.source) },
		"a watch-list": func(w *watched) { startWatchList(w.t.Context(), w.source) },
		"a watch-list from a version": func(w *watched) {
			opts := watchList()
			opts.ResourceVersion = "5"
			w.open(opts)
			startList(w.t.Context(), w.source)
		},
		"a list after a failed watch-list": func(w *watched) {
			w.set(errors.New("broken"))
			startWatchList(w.t.Context(), w.source)
		},
		"another generation": func(w *watched) { w.replaceType() },
		"another generation after the end of the one before": func(w *watched) {
			set(w.available, source.Gone)
			synctest.Wait()
			w.replaceType()
		},
		"a type that was missing": func(w *watched) {
			w.fail(apierrors.NewResourceExpired("too old"))
			set(w.available, source.Missing)
			synctest.Wait()
			w.replaceType()
		},
		"another generation while a watch is refused": func(w *watched) {
			w.set(apierrors.NewForbidden(widgets.GroupResource(), "", nil))
			w.fail(nil)
			time.Sleep(10 * time.Minute)
			w.replaceType()
		},
		"another generation while nothing works": func(w *watched) {
			w.set(errors.New("broken"))
			w.list = func(context.Context) (*unstructured.UnstructuredList, error) { return nil, errors.New("broken") }
			w.fail(nil)
			time.Sleep(10 * time.Minute)
			w.replaceType()
			time.Sleep(10 * time.Minute)
		},
	} {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/KeepCache=%v", name, keep), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					available := newAvailability(source.Served)
					w := newWatched(t, source.Config{Availability: available, KeepCache: keep})
					w.t, w.available = t, available
					before := len(w.requests())
					first(w)
					synctest.Wait()
					lists := 0
					for _, req := range w.requests()[before:] {
						if req.Verb != "list" && req.Options.SendInitialEvents == nil {
							continue
						}
						lists++
						if req.Options.ResourceVersion != "" {
							t.Errorf("%s from %q", req.Verb, req.Options.ResourceVersion)
						}
					}
					if lists == 0 {
						t.Error("no list")
					}
				})
			})
		}
	}
}

func TestGate_ClusterScopedTypesIgnoreTheNamespace(t *testing.T) {
	for namespaced, want := range map[bool]string{true: "ns", false: ""} {
		t.Run(fmt.Sprintf("namespaced=%v", namespaced), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				s := source.New(source.Config{
					Client: source.Unstructured(client), GVR: widgets, Namespace: "ns",
					Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: namespaced}),
				})
				<-startList(t.Context(), s)
				startWatchList(t.Context(), s)
				openWatch(t, gateOf(s), kinds["watch"])
				synctest.Wait()
				for _, req := range client.requests() {
					if req.Namespace != want {
						t.Errorf("%s in %q, want %q", req.Verb, req.Namespace, want)
					}
				}
				if got := len(client.requests()); got != 3 {
					t.Errorf("requests = %d, want 3", got)
				}
			})
		})
	}
}

// A cache must begin with a current list, also if that is slower.
func TestGate_ListsAreConsistentAndComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := []string{"", "more", "still more"}
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			n := len(client.requests())
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*newObject(fmt.Sprint("page", n))}}
			list.SetResourceVersion("7")
			if n < len(pages) {
				list.SetContinue(pages[n])
			}
			return list, nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		list, err := gateOf(s).ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		for i, req := range client.requests() {
			want := metav1.ListOptions{Limit: 500, Continue: pages[i]}
			if diff := cmp.Diff(want, req.Options); diff != "" {
				t.Errorf("page %d (-want +got):\n%s", i, diff)
			}
		}
		want := source.State{Objects: 3, Version: "7", Complete: true, Listed: "7", FirstLists: 1, Events: 3, LastEvent: time.Now()}
		if diff := cmp.Diff(want, s.State()); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		if got := fmt.Sprint(list.GetObjectKind()); list == nil || got == "" {
			t.Error("no list")
		}
	})
}

// The pager requests the next page without a pause.
func TestGate_ListsWithAPauseIfAPageIsItsOwnNextPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, observer := &script{}, &observer{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			if len(client.requests()) < 100 {
				list.SetContinue("more")
			}
			return list, nil
		}
		lw := gateOf(source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if got := len(client.requests()); got > 20 {
			t.Errorf("%d requests in a minute", got)
		}
		failures := observer.errors()
		if len(failures) == 0 {
			t.Error("no failure is reported")
		}
		for _, err := range failures {
			if !errors.Is(err, source.ErrNotAList) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// A server may send pages without objects. There may be no end of them.
func TestGate_PagesWithoutObjectsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			if n := len(client.requests()); n < 1000 {
				list.SetContinue(fmt.Sprint(n))
			}
			return list, nil
		}
		lw := gateOf(source.New(source.Config{Client: source.Unstructured(client), GVR: widgets}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if got := len(client.requests()); got < 250 || got > 330 {
			t.Errorf("%d requests in a minute", got)
		}
	})
}

func TestGate_RetriesAListUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		var at []time.Time
		broken := errors.New("broken")
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			at = append(at, time.Now())
			if len(at) < 15 {
				return nil, broken
			}
			return &unstructured.UnstructuredList{}, nil
		}
		s := source.New(source.Config{
			Client: source.Unstructured(client), GVR: widgets,
			Report: func(_ context.Context, err error) { reported = append(reported, err) },
		})
		if a := <-startList(t.Context(), s); a.err != nil {
			t.Fatal(a.err)
		}
		pause, jittered := 250*time.Millisecond, false
		for i := range len(at) - 1 {
			got := at[i+1].Sub(at[i])
			if got < pause || got > pause+pause/5 {
				t.Errorf("pause %d = %v, want %v and at most a fifth more", i, got, pause)
			}
			jittered = jittered || got != pause
			pause = min(2*pause, 30*time.Second)
		}
		if !jittered {
			t.Error("no pause has jitter: all informers of a process would send requests at the same time")
		}
		if len(reported) != 14 || !errors.Is(reported[0], broken) {
			t.Errorf("reported: %v, want each of 14 failures", reported)
		}
	})
}

func TestGate_ObeysRetryAfter(t *testing.T) {
	for name, start := range map[string]func(context.Context, *source.Source) <-chan answer{"list": startList, "watch-list": startWatchList} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				throttled := func() error {
					if len(client.requests()) == 1 {
						return apierrors.NewTooManyRequests("slowly, please", 30)
					}
					return nil
				}
				client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
					return &unstructured.UnstructuredList{}, throttled()
				}
				client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, throttled() }
				s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
				listed := start(t.Context(), s)
				time.Sleep(10 * time.Second)
				if due := time.Until(s.State().Due); due < 20*time.Second || due > 23*time.Second {
					t.Errorf("after 10 s, the next attempt is due in %v", due)
				}
				s.Retry() // does not end a pause of Retry-After
				time.Sleep(20*time.Second - time.Nanosecond)
				synctest.Wait()
				if got := len(client.requests()); got != 1 {
					t.Errorf("requests within 30 s = %d, want 1", got)
				}
				time.Sleep(3*time.Second + 2*time.Nanosecond)
				synctest.Wait()
				select {
				case <-listed:
				default:
					t.Error("no list after 33 s")
				}
			})
		})
	}
}

func TestGate_RetryEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
		client := &script{}
		var granted atomic.Bool
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			if !granted.Load() {
				return nil, forbidden
			}
			return &unstructured.UnstructuredList{}, nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		listed := startList(t.Context(), s)
		time.Sleep(10 * time.Minute)
		if got := len(client.requests()); got > 30 {
			t.Errorf("requests in 10 min = %d, want one every 30 s", got)
		}
		granted.Store(true)
		begun := time.Now()
		s.Retry()
		if a := <-listed; a.err != nil || time.Since(begun) != 0 {
			t.Errorf("list after Retry: %v, %v later", a.err, time.Since(begun))
		}
	})
}

// A request goes on when the UID of its type becomes known, and the pause that the server requests holds.
func TestGate_ARequestGoesOnWhenTheUIDBecomesKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		uid  string // before
		want int    // requests in 20 s
	}{"it was not known": {"", 1}, "it was another one": {"other", 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				var requests atomic.Int64
				cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
					requests.Add(1)
					select {
					case <-time.After(2 * time.Second):
						return apierrors.NewTooManyRequests("later", 25)
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				now := source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, UID: tc.uid}
				available := source.NewAvailability(now)
				w := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets, Availability: available})
				defer w.stop()
				time.Sleep(time.Second)
				now.UID = "known"
				available.Set(now)
				if got, _ := available.Current(); got.UID != "known" {
					t.Errorf("the UID is %q", got.UID)
				}
				time.Sleep(20 * time.Second)
				if got := int(requests.Load()); got != tc.want {
					t.Errorf("%d requests, want %d", got, tc.want)
				}
			})
		})
	}
}

// A list that is in progress when the type is deleted is cancelled, and its result is not used.
func TestGate_RepeatsTheListOfATypeThatChanges(t *testing.T) {
	for name, change := range map[string]func(*source.Type){
		"gone and back": func(now *source.Type) { now.Generation++ },
		"version":       func(now *source.Type) { now.GVR.Version = "v2" },
		"scope":         func(now *source.Type) { now.Namespaced = false; now.Generation++ },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, available, observer := &script{}, newAvailability(source.Served), &observer{}
				client.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) {
					if len(client.requests()) == 1 {
						<-ctx.Done() // returns a list after the end of its context
					}
					list := &unstructured.UnstructuredList{}
					list.SetResourceVersion(fmt.Sprint(len(client.requests())))
					return list, nil
				}
				s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, Observer: observer})
				listed := startList(t.Context(), s)
				now, _ := available.Current()
				change(&now)
				available.Set(now)
				if a := <-listed; a.err != nil {
					t.Fatal(a.err)
				}
				if got := s.State(); got.Version != "2" || got.Generation != now.Generation || got.Listed != "2" {
					t.Errorf("state %+v, want that of the second list", got)
				}
				checkErrors(t, observer)
			})
		})
	}
}

func TestGate_UsesWatchListByPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg        source.Config
		aggregated bool
		tried      bool
	}{
		"usually":                      {source.Config{}, false, true},
		"on an aggregated type":        {source.Config{}, true, false},
		"on an aggregated type, since": {source.Config{WatchListAnywhere: true}, true, true},
		"where it is not wanted":       {source.Config{NoWatchList: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, observer := &script{}, &observer{}
				cfg := tc.cfg
				cfg.Client, cfg.GVR, cfg.Observer = source.Unstructured(client), widgets, observer
				cfg.Availability = source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Aggregated: tc.aggregated})
				startWatchList(t.Context(), source.New(cfg))
				if got := client.requests(); len(got) != 1 || tc.tried != (got[0].Verb == "watch") {
					t.Errorf("requests: %v", got)
				}
				checkErrors(t, observer)
			})
		})
	}
}

func TestGate_PagesHaveTheConfiguredSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, PageSize: 7})
		if _, err := gateOf(s).ListWithContext(t.Context(), metav1.ListOptions{Limit: 500}); err != nil {
			t.Fatal(err)
		}
		if got := client.requests()[0].Options.Limit; got != 7 {
			t.Errorf("limit = %d, want 7", got)
		}
	})
}

func TestGate_EndOfContextEndsTheWaitAtOnce(t *testing.T) {
	broken := func(context.Context) (*unstructured.UnstructuredList, error) { return nil, errors.New("broken") }
	hangs := func(ctx context.Context) (*unstructured.UnstructuredList, error) { <-ctx.Done(); return nil, ctx.Err() }
	for name, tc := range map[string]struct {
		serving source.Serving
		list    func(context.Context) (*unstructured.UnstructuredList, error)
	}{
		"while the type is not served": {source.Held, nil},
		"while it waits to try again":  {source.Served, broken},
		"while the list hangs":         {source.Served, hangs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer := &observer{}
				s := source.New(source.Config{Client: source.Unstructured(&script{list: tc.list}), GVR: widgets, Availability: newAvailability(tc.serving), Observer: observer})
				ctx, cancel := context.WithCancel(t.Context())
				listed := startList(ctx, s)
				time.Sleep(100 * time.Second) // within a pause
				synctest.Wait()
				before := observer.reports()
				cancel()
				begun := time.Now()
				if a := <-listed; !errors.Is(a.err, context.Canceled) || a.list != nil {
					t.Errorf("list = %v, %v; want the context's error", a.list, a.err)
				}
				if took := time.Since(begun); took != 0 {
					t.Errorf("it took %v", took)
				}
				if diff := cmp.Diff(before, observer.reports()); diff != "" {
					t.Errorf("later reports (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestGate_CallsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		available := newAvailability(source.Held)
		called := 0
		s := source.New(source.Config{Client: source.Unstructured(&script{}), GVR: widgets, Availability: available, WhileWaiting: func(context.Context) {
			called++
			set(available, source.Served)
		}})
		for range 2 {
			if a := <-startList(t.Context(), s); a.err != nil {
				t.Error(a.err)
			}
		}
		if called != 1 {
			t.Errorf("called %d times, want once", called)
		}
	})
}

// Each namespace of a set waits for the type when its watch has ended.
func TestGate_NamespacesCallWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := newTestSet(t, func(cfg *source.Config) {
			cfg.WhileWaiting = func(context.Context) { calls.Add(1) }
		}, nil, "m")
		if n := calls.Load(); n != 0 {
			t.Errorf("%d calls while the type is served", n)
		}
		set(s.available, source.Held)
		s.cluster.CloseWatches(widgets)
		time.Sleep(time.Minute)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls while it is not, want 1", n)
		}
	})
}

// One question is enough for all namespaces. It lasts as long as one of them waits.
func TestGate_NamespacesAskOnceForTheType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, running atomic.Int32
		s := newTestSet(t, func(cfg *source.Config) {
			cfg.WhileWaiting = func(ctx context.Context) {
				calls.Add(1)
				running.Add(1)
				<-ctx.Done()
				running.Add(-1)
			}
		}, nil, "m", "n", "o")
		for i := range int32(3) {
			set(s.available, source.Held)
			s.cluster.CloseWatches(widgets)
			time.Sleep(time.Minute)
			s.set.Set("m", "n") // one namespace waits no longer
			synctest.Wait()
			if calls.Load() != i+1 || running.Load() != 1 {
				t.Errorf("%d calls, and %d have not ended, want %d and 1", calls.Load(), running.Load(), i+1)
			}
			set(s.available, source.Served)
			synctest.Wait()
			if n := running.Load(); n != 0 {
				t.Errorf("%d calls have not ended", n)
			}
		}
	})
}

func TestGate_FirstWatchIsOpenWhenItIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		<-startList(t.Context(), s)
		if s.State().Watched {
			t.Error("watched before the first watch")
		}
		w, err := gateOf(s).WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := client.requests(); len(got) != 2 || got[1].Verb != "watch" || !s.State().Watched {
			t.Errorf("requests: %v, want a list and a watch", got)
		}
		w.Stop()
		s.Wait()
		if w, err := gateOf(s).WatchWithContext(t.Context(), metav1.ListOptions{}); w != nil || err == nil {
			t.Errorf("a watch after the end: %v, %v", w, err)
		}
	})
}

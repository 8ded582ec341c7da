package source_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// flip changes the state of a type, and at once changes it back.
func flip(available *source.Availability, serving source.Serving) {
	before, _ := available.Current()
	set(available, serving)
	available.Set(before)
}

// Replicas of a server disagree: a list succeeds, and a watch is NotFound. After each NotFound,
// discovery reports that the type is missing, until a list, as a probe, succeeds.
func TestFlips_BySuccessfulProbesDoNotHastenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		available := newAvailability(source.Served)
		w := newWatched(t, source.Config{Availability: available, Observer: &missing{available: available}})
		w.set(apierrors.NewNotFound(widgets.GroupResource(), ""))
		w.fail(nil)
		time.Sleep(10 * time.Minute)
		lists, watches := count(w.requests())
		if watches < 10 || watches > 40 || lists < 10 || lists > 60 {
			t.Errorf("%d lists, %d watches in 10 min", lists, watches)
		}
		w.set(nil)
		time.Sleep(time.Minute + 30*time.Second)
		if now, _ := available.Current(); now.Serving != source.Served {
			t.Errorf("the type is %s", now.Serving)
		}
		before := len(w.requests())
		time.Sleep(time.Hour)
		if got := w.since(before); len(got) != 0 {
			t.Errorf("requests after watches succeed: %q", got)
		}
	})
}

// missing is an observer that makes the type missing after each NotFound of a watch.
type missing struct {
	observer
	available *source.Availability
}

func (m *missing) Failed(verb string, err error) {
	if verb == source.VerbWatch && apierrors.IsNotFound(err) {
		set(m.available, source.Missing)
	}
}

// Any number of changes of the state within a generation does not end a pause early.
func TestFlips_WithinAGenerationDoNotHastenRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		serving source.Serving
		err     error
	}{
		"Held":                       {source.Held, errors.New("broken")},
		"Missing":                    {source.Missing, errors.New("broken")},
		"Missing, and a watch works": {source.Missing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				available := newAvailability(source.Served)
				w := newWatched(t, source.Config{Availability: available})
				w.set(tc.err)
				w.fail(nil)
				for begun := time.Now(); time.Since(begun) < 10*time.Minute && len(w.requests()) < tooMany; time.Sleep(50 * time.Millisecond) {
					set(available, tc.serving)
					synctest.Wait()
					set(available, source.Served)
					synctest.Wait()
				}
				if got := len(w.requests()); got < 20 || got > 90 {
					t.Errorf("requests in 10 min = %d", got)
				}
			})
		})
	}
}

func TestFlips_WithinAGenerationDoNotHastenTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) { return nil, errors.New("broken") }
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		startList(t.Context(), s)
		for begun := time.Now(); time.Since(begun) < 10*time.Minute && len(client.requests()) < tooMany; time.Sleep(50 * time.Millisecond) {
			set(available, source.Held)
			synctest.Wait()
			set(available, source.Served)
			synctest.Wait()
		}
		if got := len(client.requests()); got < 20 || got > 40 {
			t.Errorf("requests in 10 min = %d", got)
		}
	})
}

// Each failed request changes the state, for a moment or permanently. There is a pause as after
// other failures.
func TestFlips_ByAFailedRequestDoNotHastenTheNextOne(t *testing.T) {
	for name, tc := range map[string]struct {
		serving source.Serving
		err     *apierrors.StatusError // that ends the watch
	}{
		"watch": {source.Served, nil},
		"list":  {source.Served, apierrors.NewResourceExpired("too old")},
		"probe": {source.Missing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				available := newAvailability(source.Served)
				w := newWatched(t, source.Config{Availability: available})
				broken := func(ctx context.Context) error {
					if len(w.requests()) < tooMany { // otherwise time would not pass
						flip(available, source.Held)
					}
					<-ctx.Done()
					return errors.New("broken")
				}
				w.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) { return nil, broken(ctx) }
				w.watch = func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) { return nil, broken(ctx) }
				set(available, tc.serving)
				w.fail(tc.err)
				time.Sleep(10 * time.Minute)
				if got := len(w.requests()); got < 20 || got > 60 {
					t.Errorf("requests in 10 min = %d", got)
				}
			})
		})
	}
	t.Run("first list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client, available := &script{}, newAvailability(source.Served)
			client.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) {
				if len(client.requests()) < tooMany { // otherwise time would not pass
					flip(available, source.Held)
				}
				<-ctx.Done()
				return nil, errors.New("broken")
			}
			startList(t.Context(), source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available}))
			time.Sleep(10 * time.Minute)
			if got := len(client.requests()); got < 20 || got > 40 {
				t.Errorf("requests in 10 min = %d", got)
			}
		})
	})
}

// Failures of an earlier generation do not count.
func TestFlips_RequestsForAnotherGenerationAreSentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		available := newAvailability(source.Served)
		w := newWatched(t, source.Config{Availability: available})
		w.set(errors.New("broken"))
		w.fail(nil)
		time.Sleep(10*time.Minute + 3*time.Second)
		w.set(nil)
		synctest.Wait()
		before := len(w.requests())
		now, _ := available.Current()
		now.Generation++
		available.Set(now)
		if diff := cmp.Diff([]string{"list", "watch 7"}, w.since(before)); diff != "" {
			t.Errorf("requests at once (-want +got):\n%s", diff)
		}
	})
}

// A request that the source cancels because of a change of the state has not failed, also if the
// state has changed back.
func TestFlips_DuringARequestAreNotReported(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, begin := range map[string]func(t *testing.T, w *watched){
		"first list": nil,
		"watch": func(_ *testing.T, w *watched) {
			w.watch = func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) { return nil, hang(ctx) }
			w.fail(nil)
		},
		"list": func(_ *testing.T, w *watched) {
			w.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) { return nil, hang(ctx) }
			w.fail(apierrors.NewResourceExpired("too old"))
		},
		"probe": func(_ *testing.T, w *watched) {
			w.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) { return nil, hang(ctx) }
			set(w.available, source.Missing)
		},
	} {
		for _, serving := range []source.Serving{source.Held, source.Gone} {
			t.Run(name+"/"+string(serving), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					available, observer := newAvailability(source.Served), &observer{}
					cfg := source.Config{
						GVR: widgets, Availability: available, Observer: observer, KeepCache: true,
						Report: func(_ context.Context, err error) { t.Errorf("reported: %v", err) },
					}
					if begin == nil {
						client := &script{list: func(ctx context.Context) (*unstructured.UnstructuredList, error) { return nil, hang(ctx) }}
						cfg.Client = source.Unstructured(client)
						startList(t.Context(), source.New(cfg))
						flip(available, serving)
						time.Sleep(time.Second)
						if got := len(client.requests()); got != 2 {
							t.Errorf("requests = %d, want 2", got)
						}
						checkErrors(t, observer)
						return
					}
					w := newWatched(t, cfg)
					w.available = available
					time.Sleep(time.Second)
					begin(t, w)
					synctest.Wait()
					before := len(w.requests())
					flip(available, serving)
					time.Sleep(time.Second)
					if got := w.since(before); len(got) == 0 {
						t.Error("the request is not sent again")
					}
					for _, err := range observer.errors() {
						if !apierrors.IsResourceExpired(err) {
							t.Errorf("observed: %v", err)
						}
					}
				})
			})
		}
	}
}

// miss makes the type missing until a probe finds it.
func (w *testInformer) miss() {
	w.t.Helper()
	set(w.available, source.Missing)
	time.Sleep(40 * time.Second) // there may be a pause before the probe
	if now, _ := w.available.Current(); now.Serving != source.Served {
		w.t.Fatalf("the type is %s", now.Serving)
	}
}

// testFlip runs test with an informer on all namespaces, and with one on a set of them. The server has the objects a and b, and chooses when a
// watch ends.
func testFlip(t *testing.T, test func(t *testing.T, w *testInformer, server *injector)) {
	t.Helper()
	for scope, modify := range scopes {
		t.Run(scope, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, server := newInjected(t, false, modify, "a", "b")
				test(t, w, server)
			})
		})
	}
}

// restoreStarting restores a backup with the objects a and b while the reflector has a and c. The server passes the former version, but whole
// lists fail until the returned function is called.
func (w *testInformer) restoreStarting() (started func()) {
	w.t.Helper()
	backup := w.cluster.Backup()
	w.setColor("a", "blue")
	w.create("c")
	w.remove("b")
	w.expect("before", "update a red to a blue", "add c red", "delete b red")
	var starting atomic.Bool
	starting.Store(true)
	time.Sleep(time.Minute)
	w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
	w.cluster.Restore(backup)
	synctest.Wait()
	w.setColor("a", "green") // with the version of the lost state
	w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.Verb == "list" && req.Options.Limit != 1 && starting.Load() {
			return apierrors.NewInternalError(errors.New("starting"))
		}
		return nil
	})
	w.source.Retry()
	time.Sleep(5 * time.Second)
	w.create("d", "e", "f")
	w.expect("before a list")
	return func() { starting.Store(false) }
}

// checkRestored checks that the handler has got the differences after restoreStarting.
func (w *testInformer) checkRestored() {
	w.t.Helper()
	synctest.Wait()
	got := w.handler.take()
	slices.Sort(got)
	want := []string{"add b red", "add d red", "add e red", "add f red", "delete c red", "update a blue to a green"}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("after the restore the handler got (-want +got):\n%s", diff)
	}
	w.checkRewinds(1)
}

func TestFlips_ARestoreIsNotForgotten(t *testing.T) {
	testFlip(t, func(t *testing.T, w *testInformer, _ *injector) {
		t.Helper()
		started := w.restoreStarting()
		_, watches := w.requests()
		w.miss()
		if _, now := w.requests(); now != watches {
			t.Errorf("%d watches from a version that the server does not have", now-watches)
		}
		started()
		time.Sleep(time.Minute)
		w.checkRestored()
	})
}

// The client ignores the end of the context: the list of the former watch is still in progress when the next one begins.
func TestFlips_ARestoreIsNotForgottenDuringAListThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { endless(cfg); scopes["a set"](cfg) }, "a", "b")
		backup := w.cluster.Backup()
		w.create("c")
		w.expect("before", "add c red")
		time.Sleep(time.Minute)
		w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
		w.cluster.Restore(backup)
		synctest.Wait()
		var lists atomic.Int64
		release := make(chan struct{})
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" && req.Options.Limit != 1 && lists.Add(1) == 1 {
				<-release
			}
			return nil
		})
		w.source.Retry()
		synctest.Wait()
		if n := lists.Load(); n != 1 {
			t.Fatalf("%d lists after the restore; 1 expected, which hangs", n)
		}
		_, watches := w.requests()
		w.miss()
		w.expect("after the restore", "delete c red") // a silent watch would be compared later
		if _, now := w.requests(); now != watches+1 {
			t.Errorf("%d watches after the restore; 1 expected, from the version of the list", now-watches)
		}
		close(release)
		w.create("d")
		w.expect("then", "add d red")
		w.checkRewinds(1)
	})
}

// A list of all namespaces of a set replaces those that its watch would send.
func TestFlips_ARestoreIsNotForgottenByAWholeList(t *testing.T) {
	testFlip(t, func(t *testing.T, w *testInformer, _ *injector) {
		t.Helper()
		started := w.restoreStarting()
		_, whole := w.lists()
		started()
		now, _ := w.available.Current()
		now.Unsettled = true
		w.available.Set(now)
		time.Sleep(time.Minute)
		w.checkRestored()
		w.checkLists("after the restore", 1, whole+1)
	})
}

// The doubt about the server goes on: the next watch is compared.
func TestFlips_AnOutageIsNotForgotten(t *testing.T) {
	testFlip(t, func(t *testing.T, w *testInformer, _ *injector) {
		t.Helper()
		backup := w.cluster.Backup()
		w.create("c")
		w.expect("before", "add c red")
		time.Sleep(time.Minute)
		w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
		w.cluster.Restore(backup)
		time.Sleep(time.Second)
		w.cluster.Intercept(nil)
		w.miss()
		time.Sleep(time.Minute) // a silent watch is compared later
		w.expect("after the restore", "delete c red")
		w.checkRewinds(1)
	})
}

func TestFlips_AnEventBelowTheVersionIsNotForgotten(t *testing.T) {
	testFlip(t, func(_ *testing.T, w *testInformer, server *injector) {
		backup := w.cluster.Backup()
		w.create("c")
		w.expect("before", "add c red")
		time.Sleep(time.Minute)
		w.cluster.Intercept(failing("list", errForbidden, 0)) // a server that does not work would be compared anyway
		w.cluster.Restore(backup)
		server.events <- eventOf(watch.Added, "d", "2")
		time.Sleep(5 * time.Second)
		w.cluster.Intercept(nil)
		w.miss()
		time.Sleep(time.Minute) // a silent watch is compared later
		w.expect("after the restore", "delete c red")
		w.checkRewinds(1)
	})
}

func TestFlips_ARequestedPauseIsNotForgotten(t *testing.T) {
	testFlip(t, func(t *testing.T, w *testInformer, _ *injector) {
		t.Helper()
		w.cluster.Intercept(failing("watch", apierrors.NewTooManyRequests("busy", 600), 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(5 * time.Second)
		_, watches := w.requests()
		set(w.available, source.Missing)
		time.Sleep(5 * time.Minute)
		if _, now := w.requests(); now != watches {
			t.Errorf("%d watches during the pause", now-watches)
		}
		w.cluster.Intercept(nil)
		time.Sleep(10 * time.Minute)
		w.create("c")
		w.expect("after the pause", "add c red")
	})
}

func TestFlips_AnotherGenerationDoesNotWaitForAPause(t *testing.T) {
	testFlip(t, func(t *testing.T, w *testInformer, _ *injector) {
		t.Helper()
		w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(10*time.Minute + 3*time.Second)
		w.cluster.Intercept(nil)
		_, watches := w.requests()
		now, _ := w.available.Current()
		now.Generation++
		w.available.Set(now)
		synctest.Wait()
		if _, now := w.requests(); now != watches+1 {
			t.Errorf("%d watches at once, want 1", now-watches)
		}
	})
}

// The watch of a type that was replaced may have sent objects of the next type: a list that fails at first does not end them.
func TestFlips_AFailedFirstListEndsNoObjectsAtOnce(t *testing.T) {
	testFlip(t, func(t *testing.T, w *testInformer, _ *injector) {
		t.Helper()
		replace := func() {
			w.cluster.Intercept(failing("list", apierrors.NewInternalError(errors.New("starting")), 0))
			now, _ := w.available.Current()
			now.Generation++
			now.Since = time.Now()
			w.available.Set(now)
		}
		replace()
		time.Sleep(5 * time.Second)
		w.cluster.Intercept(nil)
		time.Sleep(time.Minute)
		w.expect("after a short outage")
		replace()
		time.Sleep(time.Minute)
		w.expect("after a minute without a list", "delete a red", "delete b red")
	})
}

// The objects of a type that was replaced do not stay as long as its first list waits after an early failure.
func TestFlips_ALongPauseBeforeTheFirstListEndsTheObjects(t *testing.T) {
	for name, tt := range map[string]struct {
		modify  func(*source.Config)
		failure error
	}{
		"the server requests a pause": {func(*source.Config) {}, apierrors.NewTooManyRequests("busy", 3600)},
		"there is no room":            {func(cfg *source.Config) { cfg.Budget = budget.New(100_000) }, nil},
	} {
		for scope, modify := range scopes {
			t.Run(name+", "+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTestInformer(t, func(cfg *source.Config) { modify(cfg); tt.modify(cfg) }, "a", "b")
					w.cluster.Serve(widgetType)
					create(t, w.cluster, "ns", "large", strings.Repeat("x", 200_000))
					if tt.failure != nil {
						w.cluster.Intercept(failing("list", tt.failure, 0))
					}
					now, _ := w.available.Current()
					now.Generation++
					now.Since = time.Now()
					w.available.Set(now)
					time.Sleep(9 * time.Second)
					w.expect("at first")
					time.Sleep(2 * time.Second)
					w.expect("after the overlap", "delete a red", "delete b red")
				})
			})
		}
	}
}

// The watch of a server without versions can't continue when the type was missing for a moment: a list follows.
func TestFlips_AServerWithoutVersionsIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deleted atomic.Bool
		client := &script{list: func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			if !deleted.Load() {
				list.Items = append(list.Items, *newObject("a"))
				list.Items[0].SetResourceVersion("")
			}
			return list, nil
		}}
		available := newAvailability(source.Served)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{})
		synctest.Wait()
		set(available, source.Missing)
		deleted.Store(true)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"DELETED a", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// What was known of a namespace that has left a set does not count when it is back.
func TestFlips_APauseEndsWithItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, scopes["a set"], "a")
		w.cluster.Intercept(failing("watch", apierrors.NewTooManyRequests("busy", 600), 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(5 * time.Second)
		w.cluster.Intercept(nil)
		w.source.SetNamespaces("other")
		w.expect("without the namespace", "delete a red")
		w.source.SetNamespaces("ns")
		w.expect("with the namespace", "add a red")
		w.create("b")
		w.expect("then", "add b red")
	})
}

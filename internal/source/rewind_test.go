package source_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// restore restores b. Then it calls written, if it is not nil, and the server can be reached again.
func (w *testInformer) restore(b *fakecluster.Backup, written func()) {
	w.t.Helper()
	time.Sleep(time.Minute)
	w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
	w.cluster.Restore(b)
	synctest.Wait()
	if written != nil {
		written()
	}
	w.cluster.Intercept(nil)
	w.source.Retry()
	synctest.Wait()
}

// lists returns the numbers of lists of at most one object, and of other lists.
func (w *testInformer) lists() (small, whole int) {
	for _, req := range w.cluster.Requests("list", widgets) {
		if req.Options.Limit == 1 {
			small++
		} else {
			whole++
		}
	}
	return small, whole
}

// endless lets the server choose when a watch ends, so that no end is early.
func endless(cfg *source.Config) {
	cfg.Tweak = func(opts *metav1.ListOptions) { opts.TimeoutSeconds = nil }
}

func (w *testInformer) checkLists(when string, small, whole int) {
	w.t.Helper()
	if gotSmall, gotWhole := w.lists(); gotSmall != small || gotWhole != whole {
		w.t.Errorf("%s %d lists of one object and %d whole ones, want %d and %d", when, gotSmall, gotWhole, small, whole)
	}
}

// checkRewinds checks how often versions have gone back, as State and the observer have it.
func (w *testInformer) checkRewinds(want int) {
	w.t.Helper()
	synctest.Wait()
	reported := 0
	for _, err := range w.observer.errors() {
		if rewound, is := errors.AsType[*source.RewoundError](err); is {
			reported++
			if !before(rewound.Has, rewound.Had) {
				w.t.Errorf("the error has wrong versions: %v", rewound)
			}
		}
	}
	if got := w.source.State().Rewinds; got != want || reported != want {
		w.t.Errorf("versions have gone back %d times, and %d times for the observer, want %d", got, reported, want)
	}
	if reports := w.observer.reports(); want > 0 && reports[len(reports)-1] != "watch succeeded" && reports[len(reports)-1] != "list succeeded" {
		w.t.Errorf("the failure does not end: %v", reports)
	}
}

func before(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

func TestRewind_IsFoundAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "same", "changed", "deleted", "replaced")
		backup := w.cluster.Backup()
		w.setColor("changed", "blue")
		w.remove("deleted", "replaced")
		w.create("added", "replaced")
		w.expect("before", "update changed red to changed blue", "delete deleted red", "delete replaced red", "add added red", "add replaced red")
		w.restore(backup, nil)
		w.expect("restored", "delete added red", "delete replaced red", "update changed blue to changed red", "add deleted red", "add replaced red")
		w.checkRewinds(1)
		w.checkLists("after the restore", 1, 1)
		w.setColor("same", "green")
		w.create("new")
		w.expect("then", "update same red to same green", "add new red")
		w.checkLists("then", 1, 1)
	})
}

// The new history has other content with the versions of the lost one.
func TestRewind_VersionsComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a", "b", "same")
		backup := w.cluster.Backup()
		w.setColor("a", "blue")
		w.setColor("b", "blue")
		w.create("c")
		w.expect("before", "update a red to a blue", "update b red to b blue", "add c red")
		old := w.version("a")
		w.restore(backup, func() { w.setColor("a", "green") })
		if got := w.version("a"); got != old {
			t.Fatalf("version of the object = %s, want the same as in the lost history, %s", got, old)
		}
		w.expect("restored", "delete c red", "update b blue to b red", "update a blue to a green")
		w.checkRewinds(1)
	})
}

// version returns the version of an object in the cluster.
func (w *testInformer) version(name string) string {
	w.t.Helper()
	obj, err := w.cluster.Resource(widgets).Namespace("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return obj.GetResourceVersion()
}

func TestRewind_UnchangedObjectsHaveNoEvent(t *testing.T) {
	for name, form := range map[string]func(*source.Config){
		"whole objects": func(*source.Config) {},
		"metadata":      func(cfg *source.Config) { cfg.Client = ofMetadata{cfg.Client} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, form, "a", "b")
				backup := w.cluster.Backup()
				w.create("c")
				w.expect("before", "add c red")
				w.restore(backup, nil)
				w.expect("restored", "delete c red")
				w.checkRewinds(1)
			})
		})
	}
}

// An ordinary outage costs one list of one object. The end of a watch whose timeout the server chooses costs none.
func TestRewind_NothingHasGoneBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, endless, "a")
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Hour)
		w.checkLists("after ordinary ends", 0, 0)
		w.offline(func() {})
		w.expect("after an outage")
		w.checkLists("after an outage", 1, 0)
		time.Sleep(time.Hour)
		w.cluster.Intercept(failing("watch", apierrors.NewTooManyRequests("later", 1), 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Minute)
		w.cluster.Intercept(nil)
		w.source.Retry()
		time.Sleep(time.Hour)
		w.checkLists("after a throttled watch", 1, 0)
		w.checkRewinds(0)
	})
}

// The server is restored while it stops: its watches end in order, or their connections are lost, which client-go's decoder hides. When
// the next requests arrive, it is there again. Before the next comparison of a silent watch, versions would have come again.
func TestRewind_AnEarlyEndIsCompared(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, scope, "a")
				backup := w.cluster.Backup()
				w.create("b", "c")
				w.expect("before", "add b red", "add c red")
				small, whole := w.lists()
				time.Sleep(time.Minute)
				w.cluster.Restore(backup)
				time.Sleep(time.Second)
				w.expect("restored", "delete b red", "delete c red")
				w.checkRewinds(1)
				w.checkLists("after the restore", small+1, whole+1)
				w.create("d", "e", "f")
				w.expect("then", "add d red", "add e red", "add f red")
				w.checkLists("then", small+1, whole+1)
			})
		})
	}
}

// hanging is a client whose watches hang while hangs is set.
type hanging struct {
	source.Client
	hangs atomic.Bool
}

func (c *hanging) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	if c.hangs.Load() {
		return watch.NewFake(), nil
	}
	return c.Client.Watch(ctx, gvr, namespace, opts)
}

// The server is restored while the connection of a watch hangs.
func TestRewind_AWatchThatHungIsCompared(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &hanging{}
				w := newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					client.Client, cfg.Client = cfg.Client, client
				}, "a")
				backup := w.cluster.Backup()
				w.create("b")
				w.expect("before", "add b red")
				time.Sleep(time.Minute)
				client.hangs.Store(true)
				w.cluster.CloseWatches(widgets)
				synctest.Wait()
				client.hangs.Store(false)
				w.cluster.Restore(backup)
				time.Sleep(11 * time.Minute) // at most 10 are the timeout
				w.expect("restored", "delete b red")
				w.checkRewinds(1)
			})
		})
	}
}

// A watch that lasts until its timeout has ended in order, and so has one that ended with an error of the server.
func TestRewind_OrdinaryEndsAreNotCompared(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &injector{events: make(chan watch.Event)}
				w := newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					server.Client, cfg.Client = cfg.Client, server
				}, "a")
				small, whole := w.lists()
				time.Sleep(time.Hour)
				if n := len(w.cluster.Requests("watch", widgets)); n < 6 {
					t.Errorf("%d watches in an hour", n)
				}
				w.checkLists("after timeouts", small, whole)
				busy := apierrors.NewTooManyRequests("later", 1).Status()
				server.events <- watch.Event{Type: watch.Error, Object: &busy}
				time.Sleep(time.Minute)
				w.checkLists("after an error", small, whole)
				w.checkRewinds(0)
			})
		})
	}
}

// Another type of this name may have lower versions: the server has not gone back.
func TestRewind_AnotherTypeHasNotGoneBack(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var another atomic.Bool
				w := newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					cfg.Confirm = func(context.Context, source.Type) bool { return !another.Load() }
				}, "a")
				backup := w.cluster.Backup()
				w.remove("a")
				w.expect("before", "delete a red")
				small, whole := w.lists()
				time.Sleep(time.Minute)
				another.Store(true)
				w.cluster.Restore(backup)
				time.Sleep(time.Minute)
				w.expect("of another type")
				w.checkRewinds(0)
				if gotSmall, gotWhole := w.lists(); gotSmall == small || gotSmall > small+10 || gotWhole != whole {
					t.Errorf("%d lists of one object and %d whole ones after %d and %d", gotSmall, gotWhole, small, whole)
				}
				another.Store(false)
				time.Sleep(time.Minute)
				w.expect("of the same type", "add a red")
				w.checkRewinds(1)
			})
		})
	}
}

// The type that is in the place of the watch's is confirmed. That it has lower versions is not news of the server.
func TestRewind_TheNextTypeHasNotGoneBack(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *testInformer
				w = newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					cfg.Confirm = func(context.Context, source.Type) bool {
						if now, _ := w.available.Current(); now.Generation == 0 {
							now.Generation++
							w.available.Set(now)
						}
						return true
					}
				}, "a")
				backup := w.cluster.Backup()
				w.remove("a")
				w.expect("before", "delete a red")
				time.Sleep(time.Minute)
				w.cluster.Restore(backup)
				time.Sleep(time.Minute)
				w.expect("of the next type", "add a red")
				w.checkRewinds(0)
			})
		})
	}
}

// Client-go's fakes have neither timeouts nor versions.
func TestRewind_EarlyEndsOfFakesAreNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { cfg.Client = &injector{Client: cfg.Client, fake: true} }, "a")
		time.Sleep(time.Minute)
		small, whole := w.lists()
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		w.checkLists("after an early end", small, whole)
	})
}

// If the comparison fails, the watch continues, and the comparison is repeated: soon, and then each half minute.
func TestRewind_TheComparisonIsRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		fault         error
		lasts, within time.Duration
	}{
		"unreachable":             {errors.New("connection refused"), 2 * time.Second, 4 * time.Second},
		"throttled":               {apierrors.NewTooManyRequests("later", 1), 2 * time.Second, 4 * time.Second},
		"unauthorized":            {apierrors.NewUnauthorized("the server has just started"), 2 * time.Second, 4 * time.Second},
		"not found":               {apierrors.NewNotFound(widgets.GroupResource(), ""), 2 * time.Second, 4 * time.Second},
		"for a long time":         {errors.New("connection refused"), time.Minute, 36 * time.Second},
		"for a still longer time": {errors.New("connection refused"), time.Hour, 36 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, "a")
				backup := w.cluster.Backup()
				w.create("b")
				w.expect("before", "add b red")
				time.Sleep(time.Minute)
				w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
				w.cluster.Restore(backup)
				synctest.Wait()
				w.cluster.Intercept(failing("list", test.fault, 0))
				w.source.Retry()
				time.Sleep(test.lasts)
				w.expect("while lists fail")
				// One each 30 s, and one at the begin of each watch, which lasts for five minutes at least.
				if lists, most := len(w.cluster.Requests("list", widgets)), 8+int(test.lasts/(30*time.Second))+int(test.lasts/(5*time.Minute)); lists > most {
					t.Errorf("%d lists in %v, want at most %d", lists, test.lasts, most)
				}
				w.cluster.Intercept(nil)
				time.Sleep(test.within)
				w.expect("then", "delete b red")
				w.checkRewinds(1)
			})
		})
	}
}

// The outage is not noticed, for example if it falls into a pause of the connection.
func TestRewind_ASilentWatchIsCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var timeouts atomic.Bool
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Tweak = func(opts *metav1.ListOptions) {
				if !timeouts.Load() {
					opts.TimeoutSeconds = nil // so that no end is early
				}
			}
		}, "a")
		time.Sleep(time.Minute)
		w.cluster.CloseWatches(widgets)
		w.create("b")
		w.expect("before", "add b red")
		time.Sleep(4 * time.Minute)
		w.checkLists("of a server that has sent no bookmark", 0, 0)
		w.cluster.SendBookmarks(widgets)
		synctest.Wait()
		w.cluster.CloseWatches(widgets)
		synctest.Wait()
		backup := w.cluster.Backup()
		w.create("c")
		w.expect("then", "add c red")
		w.cluster.Restore(backup)
		time.Sleep(90 * time.Second)
		w.expect("after 90 s")
		time.Sleep(45 * time.Second)
		w.expect("after 135 s", "delete c red")
		w.checkRewinds(1)
		timeouts.Store(true)
		w.cluster.CloseWatches(widgets)
		synctest.Wait()
		small, _ := w.lists()
		time.Sleep(150 * time.Second)
		w.cluster.SendBookmarks(widgets)
		time.Sleep(time.Hour)
		if again, _ := w.lists(); again-small < 6 || again-small > 14 { // once a watch
			t.Errorf("%d lists of one object in an hour without events", again-small)
		}
	})
}

// A watch with events or bookmarks is not compared.
func TestRewind_AWatchWithBookmarksIsNotCompared(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, scope, "a")
				small, whole := w.lists()
				for range 300 {
					w.setColor("a", "red")
					w.cluster.SendBookmarks(widgets)
					time.Sleep(time.Minute)
				}
				w.checkLists("in five hours", small, whole)
			})
		})
	}
}

func TestRewind_IsFoundByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		backup := w.cluster.Backup()
		w.create("b")
		w.expect("before", "add b red")
		time.Sleep(time.Minute)
		var expire atomic.Bool
		expire.Store(true)
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" && expire.Swap(false) {
				return apierrors.NewResourceExpired("too old")
			}
			return nil
		})
		w.cluster.Restore(backup)
		w.expect("restored", "delete b red")
		w.checkRewinds(1)
		w.checkLists("restored", 0, 1)
	})
}

func TestRewind_EachNamespaceOfASet(t *testing.T) {
	for name, silent := range map[string]bool{"after an outage": false, "in a silent watch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					endless(cfg)
					cfg.Namespaces = source.NewNamespaces("ns", "other", "empty")
				}, "a", "b")
				create(t, w.cluster, "other", "x", "red")
				w.cluster.SendBookmarks(widgets)
				w.expect("first", "add x red")
				backup := w.cluster.Backup()
				w.setColor("a", "blue")
				w.remove("b")
				w.expect("before", "update a red to a blue", "delete b red")
				create(t, w.cluster, "other", "y", "red")
				w.expect("before", "add y red")
				time.Sleep(time.Minute)
				if silent {
					w.cluster.Restore(backup)
					w.setColor("a", "green") // with the version of the lost state
					time.Sleep(5 * time.Minute)
				} else {
					w.restore(backup, func() { w.setColor("a", "green") })
					time.Sleep(time.Second)
				}
				got := w.handler.take()
				want := map[string]bool{"update a blue to a green": true, "add b red": true, "delete y red": true}
				for _, event := range got {
					if !want[event] {
						t.Errorf("event %q", event)
					}
					delete(want, event)
				}
				if len(want) > 0 {
					t.Errorf("missing events: %v", want)
				}
				for _, n := range w.source.Namespaces() {
					if n.Failure.Err != nil {
						t.Errorf("namespace %s fails: %v", n.Name, n.Failure.Err)
					}
				}
				w.create("c")
				w.expect("then", "add c red")
			})
		})
	}
}

func TestRewind_IsFoundByTheListOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns") }, "a")
		backup := w.cluster.Backup()
		w.setColor("a", "blue")
		w.create("b")
		w.expect("before", "update a red to a blue", "add b red")
		time.Sleep(time.Minute)
		var expire atomic.Bool
		expire.Store(true)
		written := make(chan struct{})
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" && expire.Swap(false) {
				<-written // otherwise the list may have the object as it was at the backup
				return apierrors.NewResourceExpired("too old")
			}
			return nil
		})
		w.cluster.Restore(backup)
		w.setColor("a", "green") // with the version of the lost state
		close(written)
		w.expect("restored", "delete b red", "update a blue to a green")
	})
}

func TestRewind_InPollMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolledEvery(t, time.Minute, true, "a", "b", "same")
		backup := w.cluster.Backup()
		w.setColor("a", "blue")
		w.setColor("b", "blue")
		w.create("c")
		time.Sleep(2 * time.Minute)
		w.expect("before", "update a red to a blue", "update b red to b blue", "add c red")
		w.cluster.Restore(backup)
		w.setColor("a", "green") // with the version of the lost state
		time.Sleep(2 * time.Minute)
		w.expect("restored", "delete c red", "update b blue to b red", "update a blue to a green")
		w.checkRewinds(1)
	})
}

// The server is restored at random, and changes before and after that. At the end, the informer has what the server has,
// and the events of the handler are consistent.
func TestRewindModel_InformerHasTheObjectsOfTheCluster(t *testing.T) {
	seeds := make([]uint64, fewer(300))
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) { runRewindModel(t, seed) })
		if t.Failed() {
			t.Fatalf("go test -run RewindModel -seed %d", seed)
		}
	}
}

func runRewindModel(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible
	w := newTestInformer(t, func(cfg *source.Config) {
		if seed%3 == 0 {
			cfg.Namespaces = source.NewNamespaces("ns", "empty")
		}
	}, "a", "b", "c")
	checker := &contentChecker{t: t, there: map[string]string{}}
	if _, err := w.AddEventHandler(checker); err != nil {
		t.Fatal(err)
	}
	m := &model{testInformer: w, random: random}
	w.setColor("a", "blue")
	w.cluster.SendBookmarks(widgets)
	synctest.Wait()
	backups := []*fakecluster.Backup{w.cluster.Backup()}
	lasted := func() { time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond) }
	for range 12 {
		for range 3 + random.IntN(12) {
			m.stepObject()
			switch random.IntN(8) {
			case 0:
				lasted()
			case 1:
				backups = append(backups, w.cluster.Backup())
			case 2:
				w.cluster.SendBookmarks(widgets)
			}
		}
		synctest.Wait()
		lost := w.source.State().Version
		// Backups of the lost history are gone with it.
		i := random.IntN(len(backups))
		backups = backups[:i+1]
		switch random.IntN(4) {
		case 0, 1: // an outage that the informer notices
			w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
			w.cluster.Restore(backups[i])
			time.Sleep(time.Second + time.Duration(random.IntN(3000))*time.Millisecond) // at least one attempt
			m.writeBelow(lost)
			w.cluster.Intercept(nil)
			w.source.Retry()
			synctest.Wait()
		case 2: // one that it does not notice, until its watch has been silent for some time
			w.cluster.Restore(backups[i])
			m.writeBelow(lost)
			time.Sleep(11 * time.Minute)
		case 3: // the same, and no watch from before the end of these changes is accepted
			w.cluster.Restore(backups[i])
			m.writeBelow(lost)
			w.cluster.CloseWatches(widgets)
			w.cluster.Expire(widgets)
			time.Sleep(11 * time.Minute)
		}
	}
	w.cluster.Intercept(nil)
	w.source.Retry()
	w.cluster.SendBookmarks(widgets)
	time.Sleep(15 * time.Minute)
	want := map[string]string{}
	list, err := w.cluster.Resource(widgets).Namespace("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		want[list.Items[i].GetName()] = contentOf(&list.Items[i])
	}
	have := map[string]string{}
	for _, obj := range w.GetStore().List() {
		have[obj.(metav1.Object).GetName()] = contentOf(obj.(metav1.Object))
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("store (-cluster +informer):\n%s", diff)
	}
	checker.mu.Lock()
	defer checker.mu.Unlock()
	if diff := cmp.Diff(want, checker.there); diff != "" {
		t.Errorf("handler (-cluster +handler):\n%s", diff)
	}
}

// writeBelow changes objects while the version of the cluster stays below limit.
func (m *model) writeBelow(limit string) {
	client := m.cluster.Resource(widgets).Namespace("ns")
	for range m.random.IntN(6) {
		list, err := client.List(m.t.Context(), metav1.ListOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		version, _ := strconv.Atoi(list.GetResourceVersion())
		if most, _ := strconv.Atoi(limit); version+1 >= most {
			return
		}
		m.stepObject()
	}
}

func contentOf(obj metav1.Object) string {
	return fmt.Sprint(obj.GetUID(), " ", obj.GetResourceVersion(), " ", obj.GetLabels()["color"])
}

// contentChecker is a handler that checks that events are consistent: each begins from the state of the last one, and changes it.
type contentChecker struct {
	t     *testing.T
	mu    sync.Mutex
	there map[string]string
}

func (c *contentChecker) OnAdd(obj any, _ bool) { c.pass("add", nil, obj) }
func (c *contentChecker) OnUpdate(old, obj any) { c.pass("update", old, obj) }
func (c *contentChecker) OnDelete(obj any)      { c.pass("delete", obj, nil) }

func (c *contentChecker) pass(what string, old, obj any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	object, is := either(obj, old).(metav1.Object)
	if !is {
		c.t.Errorf("%s of %T", what, either(obj, old))
		return
	}
	name := object.GetName()
	had, there := c.there[name]
	switch {
	case there != (old != nil):
		c.t.Errorf("%s %s, which is there: %t", what, name, there)
	case what == "update" && (had != contentOf(old.(metav1.Object)) || had == contentOf(object)):
		c.t.Errorf("update %s from %s to %s, and it was %s", name, contentOf(old.(metav1.Object)), contentOf(object), had)
	case what == "update" && old.(metav1.Object).GetUID() != object.GetUID():
		c.t.Errorf("update %s to another object", name)
	case what == "delete" && strings.Fields(had)[0] != string(object.GetUID()):
		c.t.Errorf("delete %s with another UID: %s", name, contentOf(object))
	}
	if obj == nil {
		delete(c.there, name)
		return
	}
	c.there[name] = contentOf(object)
}

func either(obj, old any) any {
	if obj != nil {
		return obj
	}
	return old
}

// While the type is held, no list is sent: it would fail. A comparison that is due follows later.
func TestRewind_AHeldTypeIsNotCompared(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) { endless(cfg); scope(cfg) }, "a")
				time.Sleep(time.Minute)
				w.create("b")
				w.expect("before", "add b red")
				w.cluster.SendBookmarks(widgets)
				synctest.Wait()
				w.cluster.CloseWatches(widgets)
				synctest.Wait()
				backup := w.cluster.Backup()
				w.create("c")
				w.expect("then", "add c red")
				w.cluster.Restore(backup)
				time.Sleep(10 * time.Second) // the next watch is silent
				set(w.available, source.Held)
				synctest.Wait()
				lists := len(w.cluster.Requests("list", widgets))
				time.Sleep(time.Hour)
				if got := len(w.cluster.Requests("list", widgets)) - lists; got != 0 {
					t.Errorf("%d lists while the type is held", got)
				}
				set(w.available, source.Served)
				time.Sleep(time.Minute)
				w.expect("served", "delete c red")
				w.checkRewinds(1)
			})
		})
	}
}

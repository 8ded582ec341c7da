package source_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// The restore also makes discovery believe that the type was replaced. Objects of both generations may differ with equal versions.
func TestRewind_ObjectsOfANewGenerationAreComparedByContent(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, scope, "a", "same")
				backup := w.cluster.Backup()
				w.setColor("a", "blue")
				w.expect("before", "update a red to a blue")
				old := w.version("a")
				w.restore(backup, func() {
					w.setColor("a", "green")
					w.replaceType()
				})
				if got := w.version("a"); got != old {
					t.Fatalf("version of the object = %s, want the same as in the lost history, %s", got, old)
				}
				time.Sleep(time.Second)
				w.expect("restored", "update a blue to a green")
				w.checkRewinds(0)
			})
		})
	}
}

// comparisonFaults are errors of comparisons that are repeated.
var comparisonFaults = map[string]error{
	"unreachable":  errors.New("connection refused"),
	"throttled":    apierrors.NewTooManyRequests("later", 1),
	"unauthorized": apierrors.NewUnauthorized("the server has just started"),
	"not found":    apierrors.NewNotFound(widgets.GroupResource(), ""),
}

// The server passes the version of the watch while comparisons fail: a later version then shows nothing.
func TestRewind_TheVersionIsPassedWhileComparisonsFail(t *testing.T) {
	for name, fault := range comparisonFaults {
		t.Run(name, func(t *testing.T) { testPassedWhileComparisonsFail(t, fault) })
	}
}

func testPassedWhileComparisonsFail(t *testing.T, fault error) {
	t.Helper()
	for name, test := range map[string]struct {
		namespaces []string
		event      bool // an event with a later version comes before a comparison succeeds
		works      bool // lists work again when it comes
	}{
		"an event comes":                        {nil, true, false},
		"an event comes when lists work":        {nil, true, true},
		"a comparison comes":                    {nil, false, false},
		"a set, an event comes":                 {[]string{"ns", "other"}, true, false},
		"a set, an event comes when lists work": {[]string{"ns", "other"}, true, true},
		"a set, a comparison does":              {[]string{"ns", "other"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					if test.namespaces != nil {
						cfg.Namespaces = source.NewNamespaces(test.namespaces...)
					}
				}, "a", "same")
				backup := w.cluster.Backup()
				w.setColor("a", "blue")
				w.create("lost")
				w.expect("before", "update a red to a blue", "add lost red")
				old := w.version("lost")
				time.Sleep(time.Minute)
				w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
				w.cluster.Restore(backup)
				synctest.Wait()
				w.cluster.Intercept(failing("list", fault, 0))
				w.source.Retry()
				time.Sleep(3 * time.Second)
				w.setColor("a", "green")
				w.create("new")
				if got := w.version("new"); got != old {
					t.Fatalf("version of the object = %s, want the same as in the lost history, %s", got, old)
				}
				var passed []string
				if test.works {
					w.cluster.Intercept(nil)
				}
				if test.event {
					w.create("later")
					passed = []string{"add later red"} // the watch goes on
				}
				w.expect("before a comparison succeeds", passed...)
				if !test.works {
					time.Sleep(3 * time.Second)
					w.expect("while lists fail")
					w.cluster.Intercept(nil)
				}
				time.Sleep(time.Minute)
				w.expect("then", "delete lost red", "update a blue to a green", "add new red")
				w.checkRewinds(0)
				w.create("next")
				w.expect("next", "add next red")
				_, whole := w.lists()
				if test.namespaces == nil && whole != 1 {
					t.Errorf("%d whole lists, want 1", whole)
				}
				time.Sleep(time.Hour)
				if _, now := w.lists(); now != whole {
					t.Errorf("%d more whole lists in an hour, want none", now-whole)
				}
			})
		})
	}
}

// The next watch begins with another comparison: what was missed is the same as after an outage.
func TestRewind_ANextWatchNeedsNoListAfterComparisonsThatFailed(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, scope, "a")
				small, whole := w.lists()
				time.Sleep(time.Minute)
				w.cluster.Intercept(failing("list", errors.New("connection refused"), 0))
				w.cluster.CloseWatches(widgets)
				time.Sleep(3 * time.Second)
				if now, _ := w.lists(); now == small {
					t.Fatal("there was no comparison")
				}
				w.cluster.CloseWatches(widgets)
				w.cluster.Intercept(nil)
				time.Sleep(time.Minute)
				w.create("b")
				w.expect("then", "add b red")
				if _, now := w.lists(); now != whole {
					t.Errorf("%d whole lists", now-whole)
				}
			})
		})
	}
}

// opened is a client that calls its function, if there is one, after it has opened a watch.
type opened struct {
	source.Client
	then atomic.Pointer[func()]
}

func (c *opened) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.Client.Watch(ctx, gvr, namespace, opts)
	if then := c.then.Load(); then != nil && err == nil {
		(*then)()
	}
	return in, err
}

// The type is held when the comparison is due, and the server passes the version of the watch before the type is served again.
func TestRewind_TheVersionIsPassedWhileTheTypeIsHeld(t *testing.T) {
	for name, event := range map[string]bool{"an event comes": true, "a comparison comes": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &opened{}
				w := newTestInformer(t, func(cfg *source.Config) {
					cfg.Namespaces = source.NewNamespaces("ns") // the request for the watch of a namespace goes on
					client.Client, cfg.Client = cfg.Client, client
				}, "a", "same")
				backup := w.cluster.Backup()
				w.setColor("a", "blue")
				w.create("lost")
				w.expect("before", "update a red to a blue", "add lost red")
				time.Sleep(time.Minute)
				w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
				w.cluster.Restore(backup)
				synctest.Wait()
				small, whole := w.lists()
				hold := func() { set(w.available, source.Held) }
				client.then.Store(&hold)
				w.cluster.Intercept(nil)
				w.source.Retry()
				synctest.Wait()
				client.then.Store(nil)
				w.setColor("a", "green")
				w.create("new")
				var passed []string
				if event {
					w.create("later")
					passed = []string{"add later red"} // the watch goes on
				}
				time.Sleep(3 * time.Second)
				w.expect("while the type is held", passed...)
				w.checkLists("while the type is held", small, whole)
				set(w.available, source.Served)
				time.Sleep(time.Minute)
				w.expect("served", "delete lost red", "update a blue to a green", "add new red")
				w.checkRewinds(0)
			})
		})
	}
}

// No list is possible after an outage for an hour, and watches are: the informer has all events.
func TestRewind_TheWatchGoesOnWhileComparisonsFail(t *testing.T) {
	for name, begin := range map[string]func(w *testInformer){
		"throttled": func(w *testInformer) { w.interrupt(nil, comparisonFaults["throttled"]) },
		"forbidden": func(w *testInformer) { w.interrupt(nil, errForbidden) },
		"held": func(w *testInformer) {
			w.interrupt(nil, comparisonFaults["throttled"])
			set(w.available, source.Held)
		},
	} {
		for scope, modify := range scopes {
			t.Run(name+", "+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTestInformer(t, func(cfg *source.Config) { modify(cfg); endless(cfg) }, "a")
					_, whole := w.lists()
					begin(w)
					w.create("b")
					w.expect("at once", "add b red")
					time.Sleep(time.Hour)
					w.create("c")
					w.expect("an hour later", "add c red")
					if _, now := w.lists(); now != whole {
						t.Errorf("%d whole lists", now-whole)
					}
					w.cluster.Intercept(nil)
					set(w.available, source.Served)
					time.Sleep(time.Minute)
					w.create("d")
					w.expect("then", "add d red")
				})
			})
		}
	}
}

// Events have come while comparisons failed, and the next watch begins after them: its version says nothing.
func TestRewind_ANextWatchAfterEventsIsLateToo(t *testing.T) {
	for name, fault := range map[string]error{"throttled": comparisonFaults["throttled"], "forbidden": errForbidden} {
		for scope, modify := range scopes {
			t.Run(name+", "+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTestInformer(t, func(cfg *source.Config) { modify(cfg); endless(cfg) }, "a", "same")
					backup := w.cluster.Backup()
					w.create("lost")
					w.expect("before", "add lost red")
					w.interrupt(backup, fault)
					w.create("new", "later")
					w.expect("while lists fail", "add later red")
					w.cluster.CloseWatches(widgets)
					w.cluster.Intercept(nil)
					time.Sleep(time.Minute)
					w.expect("then", "delete lost red", "add new red")
					_, whole := w.lists()
					w.interrupt(nil, nil)
					w.interrupt(nil, fault)
					w.cluster.CloseWatches(widgets)
					w.cluster.Intercept(nil)
					time.Sleep(time.Hour)
					if _, now := w.lists(); now != whole {
						t.Errorf("%d more whole lists after other outages, want none", now-whole)
					}
				})
			})
		}
	}
}

// The source replaces the watch while comparisons fail. That is no other outage, but the server may have passed the version of the next watch.
func TestRewind_AWatchThatTheSourceReplacesIsLateToo(t *testing.T) {
	for name, replace := range map[string]func(w *testInformer, shard *testShard){
		"the shard loses slots": func(w *testInformer, shard *testShard) {
			slots := part(0, 1)
			for i := range sharding.SlotCount {
				if one := part(i, sharding.SlotCount); len(w.in(one)) == 0 {
					slots = slots.Minus(one)
				}
			}
			shard.set(slots)
		},
		"the type is missing for a moment": func(w *testInformer, _ *testShard) {
			set(w.available, source.Missing)
			synctest.Wait()
			set(w.available, source.Served)
		},
	} {
		for scope, modify := range scopes {
			t.Run(name+", "+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shard := newTestShard(part(0, 1))
					w := newTestInformer(t, func(cfg *source.Config) { modify(cfg); cfg.Shard = shard }, "a", "same")
					backup := w.cluster.Backup()
					w.create("lost")
					w.expect("before", "add lost red")
					w.interrupt(backup, comparisonFaults["throttled"])
					w.create("new") // with the version of the watch
					w.expect("while lists fail")
					w.cluster.Intercept(nil)
					replace(w, shard)
					time.Sleep(time.Minute)
					w.expect("then", "delete lost red", "add new red")
					w.checkRewinds(0)
				})
			})
		}
	}
}

// The server is restored during an outage, and passes the version of the informer before the next request succeeds, which is a list. Objects with
// equal versions have other states.
func TestRewind_AListAfterAnOutageIsComparedByContent(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	for name, test := range map[string]struct{ list, watch error }{
		"the watch has expired":       {nil, expired},
		"lists fail after the outage": {comparisonFaults["throttled"], expired},
	} {
		for scope, modify := range scopes {
			t.Run(name+", "+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newTestInformer(t, modify, "a", "same")
					backup := w.cluster.Backup()
					w.setColor("a", "blue")
					w.expect("before", "update a red to a blue")
					down := errors.New("connection refused")
					respond := func(list, watch error) {
						w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
							return map[string]error{"list": list, "watch": watch}[req.Verb]
						})
					}
					time.Sleep(time.Minute)
					respond(down, down)
					w.cluster.Restore(backup)
					time.Sleep(10 * time.Second)
					w.setColor("a", "green") // with the version of the lost state
					w.create("new")
					respond(test.list, test.watch)
					w.source.Retry()
					time.Sleep(10 * time.Second)
					w.cluster.Intercept(nil)
					time.Sleep(time.Minute)
					w.expect("then", "update a blue to a green", "add new red")
				})
			})
		}
	}
}

// A list of a set replaces lists or watches of its namespaces. The server is restored before, and passes the versions of the namespaces. That it may
// have gone back is known only of one of them, or the version of that one is not known any more. An object has another state with an equal version.
func TestRewind_AListOfASetIsComparedByContent(t *testing.T) {
	down, unwatchable := errors.New("connection refused"), apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch")
	for name, test := range map[string]struct {
		modify   func(*source.Config)
		at, then map[string]error // responses at the restore and after it, by verb and namespace
	}{
		"a poll has left out the namespace": {func(cfg *source.Config) {
			cfg.Polling = time.Minute
			now, _ := cfg.Availability.Current()
			now.Unwatchable = true
			cfg.Availability.Set(now)
		}, map[string]error{"list ns": down}, nil},
		"a list after a fall-back has left out the namespace": {func(cfg *source.Config) {
			cfg.Namespaces.Allowed(true)
		}, map[string]error{"watch ": apierrors.NewResourceExpired("too old"), "list ": errForbidden, "list ns": down}, nil},
		"the watch of the namespace has failed": {func(cfg *source.Config) {
			cfg.Polling = time.Minute
		}, map[string]error{"watch ns": down}, map[string]error{"watch ns": unwatchable}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					cfg.Namespaces = source.NewNamespaces("ns", "other")
					test.modify(cfg)
				}, "a", "same")
				respond := func(errs map[string]error) {
					w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error { return errs[req.Verb+" "+req.Namespace] })
				}
				backup := w.cluster.Backup()
				w.setColor("a", "blue")
				time.Sleep(2 * time.Minute)
				w.expect("before", "update a red to a blue")
				respond(test.at)
				time.Sleep(time.Minute) // a poll
				w.cluster.CloseWatches(widgets)
				time.Sleep(10 * time.Second)
				w.cluster.Restore(backup)
				w.setColor("a", "green") // with the version of the lost state
				synctest.Wait()
				respond(test.then)
				w.source.Retry()
				time.Sleep(2 * time.Minute)
				w.expect("then", "update a blue to a green")
			})
		})
	}
}

// The watch of a set ends when discovery no longer lists the type. That is no outage.
func TestRewind_AWatchThatTheSourceEndsIsNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		time.Sleep(time.Minute)
		small, whole := s.lists()
		set(s.available, source.Missing)
		time.Sleep(time.Minute)
		s.checkLists("after the type was missing", small+1, whole) // a probe
	})
}

// In a set of namespaces, the failure is that of the namespace, until a list has replaced its objects.
func TestRewind_IsTheFailureOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) {
			endless(cfg)
			cfg.Namespaces = source.NewNamespaces("ns", "other")
		}, "a")
		backup := w.cluster.Backup()
		w.setColor("a", "blue")
		w.expect("before", "update a red to a blue")
		create(t, w.cluster, "other", "x", "red")
		w.expect("before", "add x red")
		listed := make(chan struct{})
		time.Sleep(time.Minute)
		w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
		w.cluster.Restore(backup)
		synctest.Wait()
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" && req.Options.Limit != 1 && req.Namespace == "ns" {
				<-listed
			}
			return nil
		})
		w.source.Retry()
		w.expect("before ns is listed", "delete x red")
		for _, n := range w.source.Namespaces() {
			if _, is := errors.AsType[*source.RewoundError](n.Failure.Err); is != (n.Name == "ns") {
				t.Errorf("namespace %s: %v", n.Name, n.Failure.Err)
			}
		}
		close(listed)
		w.expect("then", "update a blue to a red")
		for _, n := range w.source.Namespaces() {
			if n.Failure.Err != nil {
				t.Errorf("namespace %s fails: %v", n.Name, n.Failure.Err)
			}
		}
	})
}

// After a restore, the transform fails for an object that has another state with the version of the cached one. A later list has that state.
func TestRewind_AnObjectThatIsLeftOutIsComparedByContentLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, fails := &testInformer{t: t, cluster: fakecluster.New(widgetType), observer: &observer{}, handler: &handler{}}, true
		w.create("a")
		cfg := source.Config{Client: source.Unstructured(w.cluster), GVR: widgets, Availability: newAvailability(source.Served), Observer: w.observer}
		endless(&cfg) // the list that follows a watch is not compared by content
		src := source.New(cfg)
		if err := src.SetTransform(func(obj any) (any, error) {
			if fails && obj.(metav1.Object).GetLabels()["color"] == "green" {
				return nil, errors.New("bad")
			}
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		w.run = runSource(t, src)
		defer w.stop()
		if _, err := w.AddEventHandler(w.handler); err != nil {
			t.Fatal(err)
		}
		backup := w.cluster.Backup()
		w.setColor("a", "blue")
		w.create("c")
		w.expect("before", "add a red", "update a red to a blue", "add c red")
		w.restore(backup, func() { w.setColor("a", "green") })
		w.expect("while the transform fails", "delete c red")
		fails = false
		w.cluster.Intercept(failing("watch", apierrors.NewResourceExpired("too old"), 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Minute)
		w.expect("then", "update a blue to a green")
	})
}

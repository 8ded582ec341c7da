package source_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// interrupt ends the watch, and restores b, if it is not nil. Until the next watch opens, the server can't be reached; then lists fail with fault.
func (w *testInformer) interrupt(b *fakecluster.Backup, fault error) {
	w.t.Helper()
	time.Sleep(time.Minute)
	w.cluster.Intercept(failing("watch", errors.New("connection refused"), 0))
	if b != nil {
		w.cluster.Restore(b)
	}
	w.cluster.CloseWatches(widgets)
	synctest.Wait()
	w.cluster.Intercept(failing("list", fault, 0))
	w.source.Retry()
	synctest.Wait()
}

// A user may watch and not list any more. The watch continues. A comparison that is forbidden is repeated for half a minute.
func TestRewind_AForbiddenComparisonDoesNotEndTheWatch(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, scope, "a")
				small, whole := w.lists()
				for _, outage := range []string{"first", "second"} {
					w.interrupt(nil, errForbidden)
					time.Sleep(500 * time.Millisecond)
					w.create(outage)
					w.expect("while comparisons are repeated", "add "+outage+" red")
					time.Sleep(time.Minute)
					w.create("after the " + outage)
					w.expect("then", "add after the "+outage+" red")
					time.Sleep(time.Hour)
					w.create("long after the " + outage)
					w.expect("later", "add long after the "+outage+" red")
					small += 6
					w.checkLists("after an outage", small, whole)
				}
				w.interrupt(nil, nil)
				time.Sleep(time.Minute)
				w.checkLists("after an outage in which lists work", small+1, whole)
			})
		})
	}
}

// Without an outage, a comparison that is forbidden is not repeated.
func TestRewind_AForbiddenComparisonOfASilentWatchIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, endless, "a")
		time.Sleep(time.Minute)
		w.create("b")
		w.expect("before", "add b red")
		w.cluster.SendBookmarks(widgets)
		synctest.Wait()
		w.cluster.CloseWatches(widgets)
		w.cluster.Intercept(failing("list", errForbidden, 0))
		time.Sleep(time.Hour)
		w.checkLists("in a silent watch", 1, 0)
	})
}

// A server that has just started forbids lists until it knows its roles.
func TestRewind_IsFoundAfterForbiddenComparisons(t *testing.T) {
	unready := apierrors.NewInternalError(errors.New("not ready"))
	type phase struct {
		fault error
		lasts time.Duration
	}
	for name, phases := range map[string][]phase{
		"forbidden":                       {{errForbidden, 20 * time.Second}},
		"failed for a long time":          {{unready, 10 * time.Minute}, {errForbidden, 20 * time.Second}},
		"forbidden, failed and forbidden": {{errForbidden, 5 * time.Second}, {unready, 2 * time.Minute}, {errForbidden, 20 * time.Second}},
	} {
		for scope, modify := range scopes {
			for begin, written := range map[string][]string{
				"": {}, ", the version is passed": {"b"}, ", an event comes": {"b", "c"},
			} {
				t.Run(name+", "+scope+begin, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newTestInformer(t, func(cfg *source.Config) {
							modify(cfg)
							endless(cfg) // otherwise the watch ends during the longest phase
						}, "a", "same")
						backup := w.cluster.Backup()
						w.create("lost")
						w.expect("before", "add lost red")
						w.interrupt(backup, phases[0].fault)
						for _, phase := range phases {
							w.cluster.Intercept(failing("list", phase.fault, 0))
							time.Sleep(phase.lasts)
						}
						w.create(written...)
						synctest.Wait()
						w.cluster.Intercept(nil)
						time.Sleep(time.Minute)
						w.checkStore(part(0, 1))
					})
				})
			}
		}
	}
}

// A server that has just started forbids lists, and is down again before the next comparison. Later it forbids lists for some seconds once more.
func TestRewind_IsFoundAfterAForbiddenComparisonOfAnEarlierOutage(t *testing.T) {
	for scope, modify := range scopes {
		t.Run(scope, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					modify(cfg)
					endless(cfg)
				}, "a", "same")
				backup := w.cluster.Backup()
				w.create("lost")
				w.expect("before", "add lost red")
				w.interrupt(nil, errForbidden)
				time.Sleep(500 * time.Millisecond)
				w.cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("connection refused") })
				w.cluster.Restore(backup)
				time.Sleep(2 * time.Minute)
				w.cluster.Intercept(failing("list", errForbidden, 0))
				w.source.Retry()
				time.Sleep(10 * time.Second)
				w.cluster.Intercept(nil)
				time.Sleep(time.Minute)
				w.expect("at the end", "delete lost red")
				w.checkStore(part(0, 1))
			})
		})
	}
}

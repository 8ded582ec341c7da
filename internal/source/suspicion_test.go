package source_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gvrkit/gvrkit/internal/source"
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

// The server passes the version of the watch while comparisons fail: a later version then shows nothing.
func TestRewind_TheVersionIsPassedWhileComparisonsFail(t *testing.T) {
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
				w.cluster.Intercept(failing("list", errors.New("connection refused"), 0))
				w.source.Retry()
				time.Sleep(3 * time.Second)
				w.setColor("a", "green")
				w.create("new")
				if got := w.version("new"); got != old {
					t.Fatalf("version of the object = %s, want the same as in the lost history, %s", got, old)
				}
				want := []string{"delete lost red", "update a blue to a green", "add new red"}
				if test.works {
					w.cluster.Intercept(nil)
				}
				if test.event {
					w.create("later")
					want = append(want, "add later red")
				}
				if !test.works {
					time.Sleep(3 * time.Second)
					w.expect("while lists fail")
					w.cluster.Intercept(nil)
					time.Sleep(time.Minute)
				}
				w.expect("then", want...)
				w.checkRewinds(0)
				w.create("next")
				w.expect("next", "add next red")
				time.Sleep(time.Minute) // the other namespace also has a comparison
				_, whole := w.lists()
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

package source_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// noteEvents returns the additions, deletions and moves of objects from now on. They may be read after synctest.Wait.
func (s *testSet) noteEvents() *[]string {
	s.t.Helper()
	events := new([]string)
	note := func(event string, obj any) {
		*events = append(*events, event+" "+obj.(*unstructured.Unstructured).GetName())
	}
	_, err := s.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				note("add", obj)
			}
		},
		DeleteFunc: func(obj any) {
			if object, is := source.Moved(obj); is {
				note("move", object)
				return
			}
			note("delete", obj)
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return events
}

func markMoved(cfg *source.Config) { cfg.MarkMoved = true }

// A namespace n with the objects a and b was deleted and created again, with the object c. The set says that the former n is gone. Only the objects
// of the former n are deleted.
func TestNamespaces_OneThatIsGoneWasCreatedAgain(t *testing.T) {
	deleted := []string{"delete a", "delete b"}
	for name, tc := range map[string]struct {
		cut     bool // the watch has ended before the first deletion
		listErr error
		again   bool // the set has the name again while n is listed
		want    []string
	}{
		"the watch has all events":                       {want: slices.Concat(deleted, []string{"add c", "move c"})},
		"the watch has ended":                            {cut: true, want: deleted},
		"the list fails":                                 {listErr: errForbidden, want: slices.Concat(deleted, []string{"add c", "delete c"})},
		"the set has the name again":                     {again: true, want: slices.Concat(deleted, []string{"add c"})},
		"the watch has ended, and the set has it again":  {cut: true, again: true, want: slices.Concat(deleted, []string{"add c"})},
		"the watch has ended, and the list fails":        {cut: true, listErr: errForbidden, want: deleted},
		"the list fails, and the set has the name again": {listErr: errForbidden, again: true, want: slices.Concat(deleted, []string{"add c"})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSet(t, markMoved, nil, "m", "n")
				events := s.noteEvents()
				var removed atomic.Bool
				s.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					switch {
					case req.Namespace != "n":
					case req.Verb == "watch" && tc.cut && !removed.Load():
						return apierrors.NewServiceUnavailable("cut")
					case req.Verb == "list" && removed.Load():
						if tc.again {
							s.set.Follow(map[string]bool{"m": false, "n": false})
						}
						return tc.listErr
					}
					return nil
				})
				if tc.cut {
					s.cluster.CloseWatches(widgets)
					synctest.Wait()
				}
				s.removeInN("a")
				s.removeInN("b")
				create(t, s.cluster, "n", "c", "red")
				synctest.Wait()
				removed.Store(true)
				s.set.Follow(map[string]bool{"m": false}, "n")
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, *events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				want := []string{"m/a", "m/b"}
				if tc.again {
					want = append(want, "n/c")
				}
				s.checkKeys("then", want...)
				checkErrors(t, s.observer)
			})
		})
	}
}

// A namespace without objects that is gone is not listed.
func TestNamespaces_OneThatIsGoneHasNoObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		s.removeInN("a")
		s.removeInN("b")
		s.expect("deleted:", "delete a red", "delete b red")
		s.set.Follow(map[string]bool{"m": false}, "n")
		s.expect("gone:")
		s.checkRequests("then", "n", 1, 1)
	})
}

// The list of a namespace that is gone does not delay the others for long.
func TestNamespaces_ListOfOneThatIsGoneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		s.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.Namespace == "n" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		s.set.Follow(map[string]bool{"m": false, "other": false}, "n")
		time.Sleep(11 * time.Second)
		s.expect("after the list", "delete a red", "delete b red", "add a red", "add b red")
	})
}

// A type that is not in namespaces any more has no objects whose namespaces may be gone.
func TestNamespaces_ThoseThatAreGoneAreNotStoredWithoutObjects(t *testing.T) {
	for name, change := range map[string]func(*testSet, *source.Type){
		"the type is gone": func(_ *testSet, now *source.Type) { now.Serving = source.Gone },
		"the type is cluster-scoped": func(s *testSet, now *source.Type) {
			s.cluster.Serve(fakecluster.Type{GVR: widgets, Kind: "Widget"})
			now.Namespaced = false
			now.Generation++
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSet(t, markMoved, nil, "m", "n")
				was, _ := s.available.Current()
				now := was
				change(s, &now)
				s.available.Set(now)
				time.Sleep(time.Minute)
				s.checkKeys("after the change")
				s.set.Follow(map[string]bool{"m": false}, "n")
				if gone := s.set.Gone(); gone != 0 {
					t.Errorf("the set stores %d names", gone)
				}
				s.cluster.Serve(widgetType)
				create(t, s.cluster, "m", "c", "red")
				was.Generation = now.Generation + 1
				s.available.Set(was)
				time.Sleep(time.Minute)
				s.checkKeys("in namespaces again", "m/c")
				events := s.noteEvents()
				s.cluster.Intercept(failing("list", errForbidden, 0)) // the list would show that the fake server has c
				s.set.Follow(map[string]bool{}, "m")
				synctest.Wait()
				if diff := cmp.Diff([]string{"delete c"}, *events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

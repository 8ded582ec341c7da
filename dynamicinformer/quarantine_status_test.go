package dynamicinformer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// inQuarantine describes the objects that are left out, in order, and checks the counts.
func inQuarantine(t *testing.T, when string, i status.Informer) (described []string) {
	t.Helper()
	counts := map[status.Reason]uint64{}
	for _, o := range i.Quarantine.Objects {
		index := ""
		if o.Index != "" {
			index = " of " + o.Index
		}
		described = append(described, fmt.Sprintf("%s%s %s, %s", o.Key, index, o.Reason, time.Since(o.Since)))
		counts[o.Reason]++
		if o.UID == "" || o.Err == nil || strings.Contains(o.Err.Error(), "index") != (o.Index != "") {
			t.Errorf("%s: %+v", when, o)
		}
	}
	if diff := cmp.Diff(counts, i.Quarantine.Counts); diff != "" && len(counts)+len(i.Quarantine.Counts) > 0 {
		t.Errorf("%s: counts (-objects +got):\n%s", when, diff)
	}
	if i.FailedObjects != i.Quarantine.Count() {
		t.Errorf("%s: %d failed, %d in quarantine", when, i.FailedObjects, i.Quarantine.Count())
	}
	return described
}

// An object is in quarantine until a good version, its deletion, a list without it, or the end of its type.
func TestQuarantine_StatusNamesTheObjects(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType, blockType)
				for _, name := range []string{"d", "c", "b", "a", "good"} {
					create(t, cluster, widgets, "ns", name)
				}
				byLabel := func(obj any) ([]string, error) {
					if obj.(*unstructured.Unstructured).GetLabels()["bad"] == "index" {
						return nil, errBad
					}
					return []string{"good"}, nil
				}
				f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithWatchListPolicy(policy),
					dynamicinformer.WithTransform(rejectBad), dynamicinformer.WithIndexers(cache.Indexers{"two": byLabel, "one": byLabel}))
				relabel(t, cluster, "d", "error")
				relabel(t, cluster, "c", "index")
				relabel(t, cluster, "b", "panic")
				l := syncedLease(t, f)
				check := func(when string, want ...string) {
					t.Helper()
					synctest.Wait()
					i := l.Status()
					if diff := cmp.Diff(want, inQuarantine(t, when, i)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", when, diff)
					}
					if (i.State == status.StateSynced) != (len(want) == 0) && i.State != status.StateNotServed {
						t.Errorf("%s: %s", when, i.State)
					}
				}
				check("listed", "ns/b TransformFailed, 0s", "ns/c of one IndexFailed, 0s", "ns/c of two IndexFailed, 0s", "ns/d TransformFailed, 0s")
				time.Sleep(time.Minute)
				relabel(t, cluster, "a", "nil")
				relabel(t, cluster, "c", "index")
				relabel(t, cluster, "d", "panic")
				check("a is bad, c again, d in another way", "ns/a TransformFailed, 0s", "ns/b TransformFailed, 1m0s", "ns/c of one IndexFailed, 1m0s", "ns/c of two IndexFailed, 1m0s", "ns/d TransformFailed, 1m0s")
				relabel(t, cluster, "b", "")
				relabel(t, cluster, "c", "")
				check("two are good", "ns/a TransformFailed, 0s", "ns/d TransformFailed, 1m0s")
				relabel(t, cluster, "b", "error")
				check("one is bad again", "ns/a TransformFailed, 0s", "ns/b TransformFailed, 0s", "ns/d TransformFailed, 1m0s")
				relabel(t, cluster, "c", "index")
				deleteWidget(t, cluster, "a")
				deleteWidget(t, cluster, "d")
				check("two are deleted", "ns/b TransformFailed, 0s", "ns/c of one IndexFailed, 0s", "ns/c of two IndexFailed, 0s")
				deleteWidget(t, cluster, "b")
				create(t, cluster, widgets, "ns", "b")
				time.Sleep(time.Second)
				relabel(t, cluster, "b", "error")
				check("another b is bad", "ns/b TransformFailed, 0s", "ns/c of one IndexFailed, 1s", "ns/c of two IndexFailed, 1s")

				relabel(t, cluster, "good", "error")
				synctest.Wait()
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.Verb == "watch" {
						return errBad // so that a list shows the deletion
					}
					return nil
				})
				cluster.CloseWatches(widgets)
				synctest.Wait()
				deleteWidget(t, cluster, "b")
				deleteWidget(t, cluster, "c")
				cluster.Expire(widgets)
				cluster.Intercept(nil)
				time.Sleep(time.Hour)
				check("a list without b and c", "ns/good TransformFailed, 1h0m0s")
				create(t, cluster, widgets, "ns", "e")
				relabel(t, cluster, "e", "index")
				cluster.Withdraw(widgets)
				time.Sleep(time.Hour)
				check("the type is gone")
				if i := l.Status(); i.State != status.StateNotServed {
					t.Errorf("state %s", i.State)
				}
				shutdown(t, f)
			})
		})
	}
}

// A quarantine names 1,000 objects and counts all. Objects without a known error keep their reason.
func TestQuarantine_NamesAtMost1000Objects(t *testing.T) {
	for name, test := range map[string]struct {
		reason status.Reason
		opts   []dynamicinformer.Option
	}{
		"transform": {status.ReasonTransformFailed, []dynamicinformer.Option{dynamicinformer.WithTransform(rejectBad)}},
		"index":     {status.ReasonIndexFailed, []dynamicinformer.Option{dynamicinformer.WithIndexers(cache.Indexers{"label": badIndex})}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				for i := range 1200 {
					create(t, cluster, widgets, "ns", fmt.Sprintf("w%04d", i))
					relabel(t, cluster, fmt.Sprintf("w%04d", i), "error")
				}
				f := newFactory(t, cluster, test.opts...)
				l := syncedLease(t, f)
				check := func(when string, count uint64, named int) status.Informer {
					t.Helper()
					time.Sleep(time.Minute)
					i := l.Status()
					objects := i.Quarantine.Objects
					if i.Quarantine.Count() != count || i.FailedObjects != count || i.Quarantine.Counts[test.reason] != count || len(objects) != named || i.Reason != test.reason || i.LastFailed == "" {
						t.Errorf("%s: %d objects, %d failed, %d named, %s, the last one is %q", when, i.Quarantine.Count(), i.FailedObjects, len(objects), i.Reason, i.LastFailed)
					}
					if !slices.IsSortedFunc(objects, func(a, b status.QuarantinedObject) int { return strings.Compare(a.Key, b.Key) }) {
						t.Errorf("%s: the objects are not sorted", when)
					}
					return i
				}
				before := check("listed", 1200, 1000)
				for _, o := range before.Quarantine.Objects {
					relabel(t, cluster, strings.TrimPrefix(o.Key, "ns/"), "")
				}
				check("all named ones are good", 200, 0)
				last := l.Status().LastFailed
				relabel(t, cluster, strings.TrimPrefix(last, "ns/"), "panic")
				check("one fails again", 200, 1)
				if got := l.Status().Quarantine.Objects[0].Key; got != last {
					t.Errorf("%s is named, want %s", got, last)
				}
				if len(before.Quarantine.Objects) != 1000 || before.Quarantine.Objects[0].Key == "" {
					t.Error("an earlier status has changed")
				}
				shutdown(t, f)
			})
		})
	}
}

// Of the objects without a known error, those that can't be decoded keep this reason.
func TestQuarantine_UndecodableObjectsWithoutANameKeepTheirReason(t *testing.T) {
	var initial []string
	for i := range 1003 {
		initial = append(initial, widgetJSON(fmt.Sprintf("w%04d", i), i+2, tooLarge))
	}
	s := serveWidgets(t, initial)
	s.sync(t)
	got := awaitStatus(t, s.lease, "all are left out", failed(1003))
	for n, o := range got.Quarantine.Objects {
		s.send("DELETED", widgetJSON(strings.TrimPrefix(o.Key, "ns/"), 2000+n, `{}`))
	}
	s.send("DELETED", widgetJSON(strings.TrimPrefix(got.LastFailed, "ns/"), 3000, `{}`))
	got = awaitStatus(t, s.lease, "two are left out", failed(2))
	if got.Reason != status.ReasonDecodeFailed || got.Quarantine.Counts[status.ReasonDecodeFailed] != 2 || len(got.Quarantine.Objects) != 0 || got.LastFailed == "" || got.Err == nil {
		t.Errorf("%s: %+v, %q, %v", got.Reason, got.Quarantine, got.LastFailed, got.Err)
	}
	if text := got.Message(); !strings.Contains(text, "2 objects failed") {
		t.Error(text)
	}
}

// The list, the counts and the number of objects in a status are of one moment, also while objects change.
func TestQuarantine_AStatusIsOfOneMoment(t *testing.T) {
	s := serveWidgets(t, []string{widgetJSON("a", 2, `{}`)})
	s.sync(t)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := s.lease.Status()
				named, count := uint64(len(i.Quarantine.Objects)), i.Quarantine.Count()
				if named != count || count != i.FailedObjects || count > 1 || (i.Reason == status.ReasonDecodeFailed) != (count > 0) {
					t.Errorf("%d named, %d counted, %d failed: %s", named, count, i.FailedObjects, i.Message())
					return
				}
			}
		})
	}
	for i := range 300 {
		s.send("ADDED", widgetJSON("b", 10+2*i, tooLarge))
		s.send("DELETED", widgetJSON("b", 11+2*i, `{}`))
	}
	awaitStatus(t, s.lease, "all are deleted", func(i status.Informer) bool { return i.ResourceVersion == "609" })
	close(stop)
	readers.Wait()
}

// Explain, the page and its JSON name the objects, also while a request fails.
func TestQuarantine_IsInAllViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		relabel(t, cluster, "a", "error")
		f := newFactory(t, cluster, dynamicinformer.WithTransform(rejectBad))
		l := syncedLease(t, f)
		cluster.Intercept(func(context.Context, fakecluster.Request) error { return errBad })
		cluster.CloseWatches(widgets)
		time.Sleep(time.Minute)
		if i := l.Status(); i.Reason == status.ReasonTransformFailed || i.FailedObjects != 0 || i.Quarantine.Count() != 1 {
			t.Errorf("%s, %d failed, %d in quarantine", i.Reason, i.FailedObjects, i.Quarantine.Count())
		}
		get := func(path string) string {
			recorded := httptest.NewRecorder()
			f.Handler().ServeHTTP(recorded, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			return recorded.Body.String()
		}
		const name = "/?resource=widgets.v1.example.com&format="
		for view, text := range map[string]string{"Explain": f.Explain(widgets).String(), "text": get(name + "text"), "HTML": get(name + "html"), "JSON": get(name + "json")} {
			if !strings.Contains(text, "ns/a") || !strings.Contains(text, errBad.Error()) || !strings.Contains(text, "TransformFailed") {
				t.Errorf("%s: %s", view, text)
			}
		}
		var table struct {
			Informers []struct{ Quarantine status.Quarantine }
		}
		if err := json.Unmarshal([]byte(get("/?format=json")), &table); err != nil || len(table.Informers) != 1 || len(table.Informers[0].Quarantine.Objects) != 1 {
			t.Errorf("the table: %+v, %v", table, err)
		}
		shutdown(t, f)
	})
}

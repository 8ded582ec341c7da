package dynamicinformer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// tooLarge is a number that no decoder accepts, in an object with a name.
const tooLarge = `{"size":1e999}`

// badWidgets can't be decoded as unstructured objects, or have no name.
var badWidgets = []string{
	`5`, `"c2VjcmV0IGRhdGE="`, `null`, `[1]`, `true`, `{}`, `{"apiVersion":"example.com/v1","kind":"Widget"}`,
	`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","uid":"u-nameless","resourceVersion":"3"}}`,
	`{"apiVersion":"example.com/v1","kind":"Widget","metadata":"text"}`,
	`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":7}}`,
	widgetJSON("large", 4, tooLarge),
}

// partial makes widgets the metadata of widgets.
var partial = strings.NewReplacer("example.com/v1", "meta.k8s.io/v1", "Widget", "PartialObjectMetadata")

// served is an informer on a server whose events a test sends, and its recorded events.
type served struct {
	*typedServer
	lease  *dynamicinformer.Lease
	events *awaited
}

// awaited is a handler whose events a test awaits.
type awaited struct {
	mu       sync.Mutex
	happened []string
	news     chan struct{}
}

func (a *awaited) record(kind string, obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object, err := metaOf(obj)
	if err != nil {
		a.happened = append(a.happened, kind+" "+err.Error())
	} else {
		a.happened = append(a.happened, kind+" "+object.GetName()+" "+object.GetResourceVersion())
	}
	select {
	case a.news <- struct{}{}:
	default:
	}
}

func (a *awaited) OnAdd(obj any, _ bool) { a.record("add", obj) }
func (a *awaited) OnUpdate(_, obj any)   { a.record("update", obj) }
func (a *awaited) OnDelete(obj any)      { a.record("delete", obj) }

func metaOf(obj any) (metav1.Object, error) {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = unknown.Obj
	}
	object, is := obj.(metav1.Object)
	if !is {
		return nil, fmt.Errorf("a %T", obj)
	}
	return object, nil
}

// await waits until the events, sorted, are want, and forgets them.
func (a *awaited) await(t *testing.T, want ...string) {
	t.Helper()
	enough := time.After(30 * time.Second)
	for {
		a.mu.Lock()
		got := slices.Clone(a.happened)
		if len(got) >= len(want) {
			a.happened = nil
		}
		a.mu.Unlock()
		if len(got) >= len(want) {
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			return
		}
		select {
		case <-a.news:
		case <-enough:
			t.Fatalf("events %q, want %q", got, want)
		}
	}
}

// serveWidgets returns a server with the initial objects, and a lease on them.
func serveWidgets(t *testing.T, initial []string, opts ...dynamicinformer.LeaseOption) *served {
	t.Helper()
	return serveForm(t, nil, initial, func(f *dynamicinformer.Factory) *dynamicinformer.Lease { return acquire(t, f, widgets, opts...) })
}

// serveForm is serveWidgets for a form of objects.
func serveForm(t *testing.T, form *strings.Replacer, initial []string, lease func(*dynamicinformer.Factory) *dynamicinformer.Lease) *served {
	t.Helper()
	s := &served{typedServer: &typedServer{Server: stubserver.New(t), events: make(chan string), form: form, initial: initial}, events: &awaited{news: make(chan struct{}, 1)}}
	s.Prepare(s.answer)
	f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
	f.Start(t.Context())
	s.lease = lease(f)
	if _, err := s.lease.AddEventHandler(s.events); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *served) sync(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.lease.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
}

// send sends an event.
func (s *served) send(kind, object string) { s.typedServer.events <- stubserver.Event(kind, object) }

// awaitStatus waits until the status is as wanted.
func awaitStatus(t *testing.T, l *dynamicinformer.Lease, what string, wanted func(status.Informer) bool) status.Informer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var last status.Informer
	for last = range l.Watch(ctx) {
		if wanted(last) {
			return last
		}
	}
	t.Fatalf("never: %s; the status is %+v", what, last)
	return last
}

// failed returns a condition for awaitStatus: so many objects are left out.
func failed(count uint64) func(status.Informer) bool {
	return func(i status.Informer) bool { return i.FailedObjects == count && (count == 0) == (i.Reason == "") }
}

var policies = []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever}

// Of 1,000 objects, 3 can't be decoded.
func TestQuarantine_ServesAllOthers(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			var initial []string
			for i := range 997 {
				initial = append(initial, widgetJSON(fmt.Sprintf("w%03d", i), i+10, `{"size":1}`))
			}
			initial = slices.Insert(initial, 500, widgetJSON("large", 1, tooLarge))
			initial = slices.Insert(initial, 0, widgetJSON("big", 3, `{"list":[{"x":-1e400}]}`))
			initial = append(initial, widgetJSON("huge", 2, `{"deep":[`+strings.Repeat("1", 400)+`]}`))
			s := serveWidgets(t, initial, dynamicinformer.WithWatchListPolicy(policy))
			s.sync(t)
			got := awaitStatus(t, s.lease, "three are left out", failed(3))
			if got.State != status.StateDegraded || got.Reason != status.ReasonDecodeFailed || got.Objects != 997 || !got.Listed {
				t.Errorf("status: %+v", got)
			}
			var names []string
			for _, object := range got.Quarantine.Objects {
				names = append(names, object.Key)
			}
			slices.Sort(names)
			if diff := cmp.Diff([]string{"ns/big", "ns/huge", "ns/large"}, names); diff != "" {
				t.Errorf("the names (-want +got):\n%s", diff)
			}
			if cached := len(s.lease.Informer().GetStore().List()); cached != 997 {
				t.Errorf("%d objects in the cache", cached)
			}
		})
	}
}

// Each kind of bad object alone, in a list and among the initial events of a watch-list.
func TestQuarantine_OfEachBadObject(t *testing.T) {
	for _, policy := range policies {
		for _, bad := range badWidgets {
			t.Run(policy.String()+"/"+bad[:min(40, len(bad))], func(t *testing.T) {
				s := serveWidgets(t, []string{widgetJSON("a", 2, `{}`), bad, widgetJSON("b", 3, `{}`)}, dynamicinformer.WithWatchListPolicy(policy))
				s.sync(t)
				s.events.await(t, "add a 2", "add b 3")
				got := awaitStatus(t, s.lease, "one is left out", failed(1))
				if got.Reason != status.ReasonDecodeFailed || got.LastFailed == "" || strings.Contains(got.Err.Error(), secret) || strings.Contains(got.Err.Error(), "999") {
					t.Errorf("%q: %v (%s)", got.LastFailed, got.Err, got.Reason)
				}
				if strings.Contains(bad, `"large"`) && got.LastFailed != "ns/large" {
					t.Errorf("the name is %q", got.LastFailed)
				}
				s.send("MODIFIED", widgetJSON("a", 15, `{}`))
				s.events.await(t, "update a 15")
			})
		}
	}
}

// An object enters the quarantine and leaves it by events, and the version goes on.
func TestQuarantine_EndsWithAGoodVersion(t *testing.T) {
	s := serveWidgets(t, []string{widgetJSON("a", 2, `{}`), widgetJSON("bad", 3, tooLarge)})
	s.sync(t)
	s.events.await(t, "add a 2")
	s.send("MODIFIED", widgetJSON("bad", 11, `{"size":1}`))
	s.events.await(t, "add bad 11")
	awaitStatus(t, s.lease, "none is left out", failed(0))

	s.send("MODIFIED", widgetJSON("a", 12, tooLarge))
	awaitStatus(t, s.lease, "one that was good is left out, and its version is known", func(i status.Informer) bool {
		return failed(1)(i) && i.LastFailed == "ns/a" && i.ResourceVersion == "12"
	})
	awaitStoreVersion(t, s.lease, "12")
	if item, there, err := s.lease.Informer().GetStore().GetByKey("ns/a"); err != nil || !there || item.(metav1.Object).GetResourceVersion() != "2" {
		t.Errorf("the cache has %v, %v, %v", item, there, err)
	}
	s.send("MODIFIED", widgetJSON("a", 13, `{"size":2}`))
	s.events.await(t, "update a 13")

	// A deletion of an object that was never cached is no event.
	s.send("ADDED", widgetJSON("never", 14, tooLarge))
	awaitStatus(t, s.lease, "another one is left out", failed(1))
	s.send("DELETED", widgetJSON("never", 15, `{}`))
	awaitStatus(t, s.lease, "it is deleted", failed(0))
	s.send("ADDED", widgetJSON("never", 16, tooLarge))
	awaitStatus(t, s.lease, "it is there again", failed(1))
	s.send("DELETED", widgetJSON("never", 17, tooLarge))
	awaitStatus(t, s.lease, "it is deleted again", failed(0))

	// A deletion that can't be decoded has the last state in the cache.
	s.send("DELETED", widgetJSON("bad", 18, tooLarge))
	s.events.await(t, "delete bad 17")
}

// awaitStoreVersion waits until the store is at that version.
func awaitStoreVersion(t *testing.T, l *dynamicinformer.Lease, version string) {
	t.Helper()
	for enough := time.Now().Add(30 * time.Second); l.Informer().GetStore().LastStoreSyncResourceVersion() != version; {
		if time.Now().After(enough) {
			t.Fatalf("the store is at %s, want %s", l.Informer().GetStore().LastStoreSyncResourceVersion(), version)
		}
		<-time.After(time.Millisecond)
	}
}

// An event without a name may concern any cached object. The watch continues, and a list follows it.
func TestQuarantine_AnEventWithoutANameIsFollowedByAList(t *testing.T) {
	s := serveWidgets(t, []string{widgetJSON("a", 2, `{}`), widgetJSON("b", 3, `{}`)})
	s.sync(t)
	s.events.await(t, "add a 2", "add b 3")
	s.send("MODIFIED", `"text"`)
	awaitStatus(t, s.lease, "one is left out", failed(1))
	s.send("MODIFIED", widgetJSON("a", 12, `{}`))
	s.events.await(t, "update a 12")

	s.set(widgetJSON("a", 12, `{}`)) // b was deleted
	lists := s.lease.Status().Traffic.Lists
	s.typedServer.events <- ""
	s.events.await(t, "delete b 12")
	s.typedServer.events <- ""
	s.send("MODIFIED", widgetJSON("a", 13, `{}`)) // of the watch that follows
	s.events.await(t, "update a 13")
	if got := awaitStatus(t, s.lease, "none is left out", failed(0)); got.Traffic.Lists != lists+1 {
		t.Errorf("%d lists after %d", got.Traffic.Lists, lists)
	}
}

// The bad objects of all pages count, and those of pages that the client drops do not.
func TestQuarantine_OfAListInPages(t *testing.T) {
	for name, expires := range map[string]bool{"all pages": false, "the second page has expired": true} {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			s.Prepare(func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				first := strings.Replace(stubserver.WidgetList(widgetJSON("a", 2, `{}`), `5`), `"resourceVersion":"9"`, `"resourceVersion":"9","continue":"c"`, 1)
				switch {
				case query.Get("watch") != "":
					stubserver.Hang("")(w, r)
				case query.Get("continue") == "" && query.Get("limit") != "":
					stubserver.JSON(first)(w, r)
				case query.Get("continue") == "":
					stubserver.JSON(stubserver.WidgetList(widgetJSON("a", 2, `{}`), `5`, widgetJSON("b", 3, `{}`)))(w, r)
				case expires:
					stubserver.Respond(410, "application/json", stubserver.Refusal(410, "Expired"))(w, r)
				default:
					stubserver.JSON(stubserver.WidgetList(`6`, widgetJSON("b", 3, `{}`)))(w, r)
				}
			})
			f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) }()
			f.Start(t.Context())
			want := uint64(2)
			if expires {
				want = 1
			}
			if got := awaitStatus(t, acquire(t, f, widgets), "the bad objects are left out", failed(want)); got.Objects != 2 {
				t.Errorf("status: %+v", got)
			}
		})
	}
}

// With WithStrictDecoding, one bad object fails the list, or ends the watch, as in client-go.
func TestQuarantine_NotWithStrictDecoding(t *testing.T) {
	badOf := map[string]string{
		"unstructured": widgetJSON("bad", 12, tooLarge), "typed": widgetJSON("bad", 12, `{"size":"large"}`),
		"metadata": strings.Replace(widgetJSON("bad", 12, `{}`), `"metadata":{`, `"metadata":{"labels":{"bad":7},`, 1),
	}
	for name, form := range objectForms {
		strict := func(t *testing.T, policy dynamicinformer.WatchListPolicy, initial ...string) *served {
			t.Helper()
			return serveForm(t, form.replacer, append([]string{widgetJSON("a", 2, `{}`)}, initial...), func(f *dynamicinformer.Factory) *dynamicinformer.Lease {
				return form.acquire(t, f, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithStrictDecoding())
			})
		}
		for _, policy := range policies {
			t.Run(name+"/"+policy.String(), func(t *testing.T) {
				s := strict(t, policy, badOf[name])
				got := awaitStatus(t, s.lease, "the list fails", func(i status.Informer) bool { return i.Reason != status.ReasonSyncing && i.Verb == "list" })
				if got.Reason != status.ReasonDecodeFailed || got.Listed || got.Objects != 0 || got.FailedObjects != 0 {
					t.Errorf("status: %+v", got)
				}
			})
		}
		t.Run(name+"/in a watch", func(t *testing.T) {
			s := strict(t, dynamicinformer.WatchListNever)
			s.sync(t)
			s.send("ADDED", badOf[name])
			got := awaitStatus(t, s.lease, "the watch fails", func(i status.Informer) bool { return i.Traffic.Failures[status.ReasonDecodeFailed] > 0 })
			if got.FailedObjects != 0 {
				t.Errorf("status: %+v", got)
			}
		})
	}
	t.Run("an object without a name", func(t *testing.T) {
		s := serveWidgets(t, []string{widgetJSON("a", 2, `{}`), `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"3"}}`}, dynamicinformer.WithStrictDecoding())
		s.sync(t)
		s.events.await(t, "add  3", "add a 2") // client-go caches it
	})
}

// otherType is the Go type of other objects: the fields of its spec have other types.
type otherType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size []string `json:"size"`
	} `json:"spec"`
}

func (o *otherType) DeepCopyObject() runtime.Object {
	c := *o
	return &c
}

// T is not the Go type of the resource: no object fits it, and the informer says so and goes on.
func TestQuarantine_OfATypeThatFitsNoObject(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			s := serveForm(t, nil, []string{widgetJSON("a", 2, `{"size":1}`), widgetJSON("b", 3, `{"size":2}`)}, func(f *dynamicinformer.Factory) *dynamicinformer.Lease {
				l, err := dynamicinformer.AcquireTyped[*otherType](t.Context(), f, widgets, dynamicinformer.WithWatchListPolicy(policy))
				if err != nil {
					t.Fatal(err)
				}
				return l.Lease
			})
			s.sync(t)
			got := awaitStatus(t, s.lease, "both are left out", failed(2))
			if got.State != status.StateDegraded || got.Reason != status.ReasonDecodeFailed || got.Objects != 0 ||
				!strings.Contains(got.Err.Error(), "spec.size") || !strings.Contains(got.Advice(), "the Go type of the informer") {
				t.Errorf("status: %s", got)
			}
			s.send("MODIFIED", widgetJSON("a", 12, `{}`))
			s.events.await(t, "add a 12")
		})
	}
}

// The factory's own client is client-go's: a bad object fails its list.
func TestQuarantine_NotOfTheClient(t *testing.T) {
	s := stubserver.New(t)
	s.Prepare(stubserver.JSON(stubserver.WidgetList(widgetJSON("a", 2, `{}`), `5`)))
	f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := f.Client().Resource(widgets).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Errorf("a list with %d items", len(list.Items))
	}
}

// A factory of New leaves out what its client decodes and has no name, in each form.
func TestQuarantine_OfObjectsWithoutAName(t *testing.T) {
	nameless := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","resourceVersion":"3"}}`
	t.Run("a client of client-go", func(t *testing.T) {
		s := &typedServer{Server: stubserver.New(t), events: make(chan string), initial: []string{widgetJSON("a", 2, `{}`), nameless}}
		s.Prepare(s.answer)
		client, err := dynamic.NewForConfig(s.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		f, err := dynamicinformer.New(client)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) }()
		f.Start(t.Context())
		got := awaitStatus(t, acquire(t, f, widgets), "one is left out", failed(1))
		if got.Objects != 1 || got.Reason != status.ReasonDecodeFailed || !strings.Contains(got.LastFailed, "no name") {
			t.Errorf("status: %+v", got)
		}
	})
	t.Run("typed", func(t *testing.T) {
		_, l := syncTyped(t, []string{widgetJSON("a", 2, `{}`), nameless, `5`, `null`})
		if got := awaitStatus(t, l.Lease, "three are left out", failed(3)); got.Objects != 1 {
			t.Errorf("status: %+v", got)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		s := serveForm(t, partial, []string{widgetJSON("a", 2, `{}`), nameless}, func(f *dynamicinformer.Factory) *dynamicinformer.Lease {
			return acquire(t, f, widgets, dynamicinformer.WithMetadataOnly())
		})
		s.events.await(t, "add a 2")
		if got := awaitStatus(t, s.lease, "one is left out", failed(1)); got.Objects != 1 {
			t.Errorf("status: %+v", got)
		}
	})
}

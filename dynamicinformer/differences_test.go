package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// difference is a behaviour of gvrkit that client-go intentionally does not have.
type difference struct {
	behaviour
	row    string // client-go's column in docs/migration.md
	reason string
}

// Rows of docs/migration.md that have two differences each.
const (
	polls   = "`WaitForCacheSync` polls every 100 ms, one informer after another, and also waits for stopped informers."
	ends    = "An informer that the server throttles sleeps and ignores its stop channel; `Shutdown` returns while a LIST is in progress."
	relists = "A relist sends an update for every cached object, also for a replaced object, and a `DeletedFinalStateUnknown` for a deleted object."
	logs    = "Every retry logs a line, which may contain the body of a response, such as the data of a Secret."
	asks    = "Requests for a type that is not installed, or can't be watched, are retried without end; a type that can't be watched is reported as synced."
)

// differences is the complete list. The table in docs/migration.md has the same rows in the same order.
var differences = []difference{
	{
		behaviour: behaviour{"a failed Get of a generic lister returns nil", func(r *trial) {
			lister := r.plain().ForResource(widgets).Lister()
			if obj, err := lister.Get("missing"); obj != nil || !apierrors.IsNotFound(err) {
				r.errorf("Get: %T, %v", obj, err)
			}
			if obj, err := lister.ByNamespace("ns").Get("missing"); obj != nil || !apierrors.IsNotFound(err) {
				r.errorf("ByNamespace.Get: %T, %v", obj, err)
			}
		}},
		row:    "A generic lister's failed `Get` returns an object that is not nil but holds a nil pointer.",
		reason: "code that compares the object with nil panics on it",
	},
	{
		behaviour: behaviour{"ForResource does not return a stopped informer", func(r *trial) {
			factory := r.plain()
			stopped := factory.ForResource(widgets).Informer()
			stop := make(chan struct{})
			factory.Start(stop)
			synctest.Wait()
			close(stop)
			synctest.Wait()
			again := factory.ForResource(widgets).Informer()
			if _, err := again.AddEventHandler(&recorder{}); again == stopped || err != nil {
				r.errorf("the same one: %v, AddEventHandler: %v", again == stopped, err)
			}
		}},
		row:    "`ForResource` returns a stopped informer again, and that informer rejects handlers.",
		reason: "otherwise a program can't get a running informer (kubernetes#138800)",
	},
	{
		behaviour: behaviour{"waiting does not poll", func(r *trial) {
			factory := r.plain()
			factory.ForResource(widgets)
			release := make(chan struct{})
			r.cluster.Intercept(func(context.Context, fakecluster.Request) error { <-release; return nil })
			r.run(factory)
			const delay = 30 * time.Millisecond // no multiple of 100
			time.AfterFunc(delay, func() { close(release) })
			begun := time.Now()
			if !r.synced(factory, time.Minute, widgets) || time.Since(begun) != delay {
				r.errorf("it took %v, want %v", time.Since(begun), delay)
			}
		}},
		row:    polls,
		reason: "polling is slow, and in fake time it moves the clock",
	},
	{
		behaviour: behaviour{"waiting ends for an informer that was stopped", func(r *trial) {
			answer(r.cluster, apierrors.NewServiceUnavailable("down"))
			factory := r.plain()
			factory.ForResource(widgets)
			stop := make(chan struct{})
			factory.Start(stop)
			synctest.Wait()
			close(stop)
			begun := time.Now()
			if r.synced(factory, time.Minute, widgets) || time.Since(begun) > 0 {
				r.errorf("it took %v", time.Since(begun))
			}
		}},
		row:    polls,
		reason: "an informer that has ended never syncs",
	},
	{
		behaviour: behaviour{"a watch-list stream without its bookmark falls back to LIST", func(r *trial) {
			r.cluster.MuteInitialEventsEnd()
			r.create("ns", "a")
			factory := r.plain()
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			if !r.synced(factory, time.Hour, widgets) {
				r.errorf("not synced after an hour")
			}
			r.expect(events, "add ns/a")
		}},
		row:    "A watch-list stream that never ends its initial events hangs the informer.",
		reason: "some proxies and aggregated servers do not send the bookmark (kubernetes#140890)",
	},
	{
		behaviour: behaviour{"an informer that is throttled ends at once", func(r *trial) {
			answer(r.cluster, apierrors.NewTooManyRequests("slowly", 1))
			factory := r.plain()
			factory.ForResource(widgets)
			stop := make(chan struct{})
			factory.Start(stop)
			synctest.Wait()
			close(stop)
			begun := time.Now()
			factory.Shutdown()
			if took := time.Since(begun); took > 0 {
				r.errorf("it took %v", took)
			}
		}},
		row:    ends,
		reason: "a shutdown takes up to a minute (reflector.watchList)",
	},
	{
		behaviour: behaviour{"a shutdown waits for requests", func(r *trial) {
			release := make(chan struct{})
			r.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Verb == "watch" {
					return apierrors.NewBadRequest("no watch-list here")
				}
				<-release // a client that ignores its context
				return nil
			})
			factory := r.plain()
			factory.ForResource(widgets)
			stop := make(chan struct{})
			factory.Start(stop)
			synctest.Wait()
			close(stop)
			time.AfterFunc(time.Second, func() { close(release) })
			begun := time.Now()
			factory.Shutdown()
			if took := time.Since(begun); took != time.Second {
				r.errorf("it took %v, the request 1 s", took)
			}
			<-release
		}},
		row:    ends,
		reason: "a goroutine that outlives the shutdown is a leak, and fails tests that look for leaks",
	},
	{
		behaviour: behaviour{"a response that is not a list does not empty the cache", func(r *trial) {
			r.create("ns", "a")
			factory := r.newFactory(notAList{r.cluster}, 0, metav1.NamespaceAll, nil)
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			r.cluster.CloseWatches(widgets)
			r.cluster.Expire(widgets)
			r.cluster.Intercept(noWatchList) // the next request is a LIST
			time.Sleep(time.Minute)
			r.expect(events, "add ns/a")
		}},
		row:    "A response to LIST that is not a list, such as a Status, empties the cache.",
		reason: "invalid input must not cause events",
	},
	{
		behaviour: behaviour{"a cluster-scoped type ignores the namespace", func(r *trial) {
			create(r.t, r.cluster, blocks, "", "b")
			factory := r.newDiscovering(r.t, r.cluster, "ns")
			events := listen(r.t, factory.ForResource(blocks).Informer())
			r.run(factory)
			r.expect(events, "add b")
		}},
		row:    "If a namespace is set, requests for a cluster-scoped type get 404 without end.",
		reason: "no server has such a path, for example for ipamblocks",
	},
	{
		behaviour: behaviour{"a type that can't be watched is not reported synced", func(r *trial) {
			listOnly := widgetType
			listOnly.Verbs = []string{"get", "list"}
			r.cluster.Serve(listOnly)
			factory := r.newDiscovering(r.t, r.cluster, metav1.NamespaceAll)
			factory.ForResource(widgets)
			r.run(factory)
			if r.synced(factory, time.Minute, widgets) || r.requests("list") > 0 {
				r.errorf("synced, or asked for: %d lists", r.requests("list"))
			}
		}},
		row:    asks,
		reason: "the cache is stale from then on (velero#9384)",
	},
	{
		behaviour: behaviour{"no request is sent for a type that is not served", func(r *trial) {
			r.cluster = fakecluster.New(blockType)
			factory := r.newDiscovering(r.t, r.cluster, metav1.NamespaceAll)
			factory.ForResource(widgets)
			r.run(factory)
			time.Sleep(10 * time.Minute)
			if got := r.requests("list") + r.requests("watch"); got > 0 {
				r.errorf("%d requests", got)
			}
			r.cluster.Serve(widgetType)
			if !r.synced(factory, time.Minute, widgets) {
				r.errorf("not synced a minute after it is served")
			}
		}},
		row:    asks,
		reason: "the requests hide the reason, and load the server",
	},
	{
		behaviour: behaviour{"the objects of a type that is gone are deleted", func(r *trial) {
			r.create("ns", "a")
			factory := r.newDiscovering(r.t, r.cluster, metav1.NamespaceAll)
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			synctest.Wait()
			r.cluster.Withdraw(widgets)
			time.Sleep(10 * time.Minute)
			r.expect(events, "add ns/a", "delete ns/a")
			before := r.requests("list") + r.requests("watch")
			time.Sleep(time.Hour)
			if got := r.requests("list") + r.requests("watch") - before; got > 0 {
				r.errorf("%d requests while it is gone", got)
			}
		}},
		row:    "When a CRD is deleted, its objects stay in the cache, and requests are retried until the CRD is installed again.",
		reason: "programs continue to use objects that do not exist (kyverno#13862)",
	},
	{
		behaviour: behaviour{"after a gap, handlers get only changes", func(r *trial) {
			r.create("ns", "same")
			r.create("ns", "replaced")
			factory := r.plain()
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			synctest.Wait()
			events.take() // in any order
			answer(r.cluster, apierrors.NewServiceUnavailable("down"))
			r.cluster.CloseWatches(widgets)
			synctest.Wait()
			r.cluster.Intercept(nil)
			if err := r.cluster.Resource(widgets).Namespace("ns").Delete(r.t.Context(), "replaced", metav1.DeleteOptions{}); err != nil {
				r.errorf("%v", err)
			}
			r.create("ns", "replaced")
			r.cluster.Expire(widgets)
			time.Sleep(time.Minute)
			r.expect(events, "delete ns/replaced", "add ns/replaced")
		}},
		row:    relists,
		reason: "handlers do unnecessary work, and take one object for another",
	},
	{
		behaviour: behaviour{"a deletion in a gap has the object", func(r *trial) {
			r.create("ns", "a")
			factory := r.plain()
			deleted := make(chan any, 10)
			if _, err := factory.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { deleted <- obj }}); err != nil {
				r.errorf("%v", err)
			}
			r.run(factory)
			synctest.Wait()
			answer(r.cluster, apierrors.NewServiceUnavailable("down"))
			r.cluster.CloseWatches(widgets)
			synctest.Wait()
			r.cluster.Intercept(nil)
			if err := r.widgets().Delete(r.t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				r.t.Error(err)
			}
			r.cluster.Expire(widgets)
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(deleted) != 1 {
				r.t.Fatalf("%d deletions", len(deleted))
			}
			if object, is := (<-deleted).(*unstructured.Unstructured); !is || object.GetName() != "a" {
				r.errorf("the deletion has no object: %T", object)
			}
		}},
		row:    relists,
		reason: "the informer has the last state, so that the deletion is like that of a watch",
	},
	{
		behaviour: behaviour{"a handler has a resync period where its informer has none", func(r *trial) {
			r.create("ns", "a")
			factory := r.plain()
			events := &recorder{}
			if _, err := factory.ForResource(widgets).Informer().AddEventHandlerWithOptions(events, cache.HandlerOptions{ResyncPeriod: new(10 * time.Second)}); err != nil {
				r.errorf("%v", err)
			}
			r.run(factory)
			time.Sleep(35 * time.Second)
			r.expect(events, "add ns/a", "update ns/a", "update ns/a", "update ns/a")
		}},
		row:    "A handler's resync period has no effect if the factory has none.",
		reason: "the caller has asked for it",
	},
	{
		behaviour: behaviour{"an informer that has ended accepts no handler", func(r *trial) {
			factory := r.plain()
			informer := factory.ForResource(widgets).Informer()
			factory.Shutdown()
			if _, err := informer.AddEventHandler(&recorder{}); err == nil {
				r.errorf("no error")
			}
		}},
		row:    "After `Shutdown`, an informer that was never started accepts handlers.",
		reason: "the handler would never be called",
	},
	{
		behaviour: behaviour{"an object that can't be decoded is left out", func(r *trial) {
			factory := r.newForConfig(r.t, &rest.Config{Transport: scripted{widgetJSON("a", 2, `{}`), `5`, widgetJSON("bad", 3, tooLarge)}})
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			time.Sleep(time.Minute)
			r.expect(events, "add ns/a")
		}},
		row:    "An object that can't be decoded fails the whole list, or ends the watch.",
		reason: "one object would prevent the use of all others",
	},
	{
		behaviour: behaviour{"an object that a list has twice is added once", func(r *trial) {
			factory := r.newForConfig(r.t, &rest.Config{Transport: scripted{widgetJSON("a", 2, `{}`), widgetJSON("a", 2, `{}`)}})
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			r.expect(events, "add ns/a")
		}},
		row:    "An object that a list has twice, as lists with pages of some servers, is added twice.",
		reason: "a handler that counts objects would count it twice",
	},
	{
		behaviour: behaviour{"an object without a name is left out", func(r *trial) {
			factory := r.newForConfig(r.t, &rest.Config{Transport: scripted{widgetJSON("a", 2, `{}`), `{"apiVersion":"example.com/v1","kind":"Widget"}`}})
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			time.Sleep(time.Minute)
			r.expect(events, "add ns/a")
		}},
		row:    "An object without a name, as a fake client may have, is cached.",
		reason: "no program can address it, and all objects without a name have the same key",
	},
	{
		behaviour: behaviour{"an object that the transform fails for is left out of a list", func(r *trial) {
			r.cluster.Intercept(noWatchList)
			r.create("ns", "a")
			r.create("ns", "b")
			factory := r.plain()
			informer := factory.ForResource(widgets).Informer()
			if err := informer.SetTransform(func(obj any) (any, error) {
				if obj.(*unstructured.Unstructured).GetName() == "a" {
					return nil, errBad
				}
				return obj, nil
			}); err != nil {
				r.errorf("SetTransform: %v", err)
			}
			events := listen(r.t, informer)
			r.run(factory)
			time.Sleep(time.Minute)
			r.expect(events, "add ns/b")
		}},
		row:    "A transform that fails for one object fails the whole list, and an index function that fails ends the process.",
		reason: "one object must not affect all others",
	},
	{
		behaviour: behaviour{"the first list is consistent", func(r *trial) {
			r.cluster.Intercept(noWatchList)
			factory := r.plain()
			factory.ForResource(widgets)
			r.run(factory)
			for _, req := range r.cluster.Requests("list", widgets) {
				if version := req.Options.ResourceVersion; version != "" {
					r.errorf("a list may be as old as %q", version)
				}
			}
		}},
		row:    "The first list may come from an outdated cache of the server.",
		reason: "otherwise an informer with an outdated cache reports that it has synced",
	},
	{
		behaviour: behaviour{"a list that begins again has all pages", func(r *trial) {
			var expired atomic.Bool
			r.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
				if req.Options.Continue != "" && !expired.Swap(true) {
					return apierrors.NewResourceExpired("too old")
				}
				return noWatchList(ctx, req)
			})
			for _, name := range []string{"a", "b", "c"} {
				r.create("ns", name)
			}
			factory := r.newFactory(r.cluster, 0, metav1.NamespaceAll, func(opts *metav1.ListOptions) { opts.Limit = 2 })
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			r.expect(events, "add ns/a", "add ns/b", "add ns/c")
		}},
		row:    "If the version of a list expires between two pages, and the list that replaces it has pages too, the cache has only the first page of that list.",
		reason: "objects that exist would be missing, and handlers would get their deletions",
	},
	{
		behaviour: behaviour{"a tweak that replaces all options gets all pages", func(r *trial) {
			var lists atomic.Int32
			r.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
				if req.Verb == "list" && lists.Add(1) > 100 {
					return apierrors.NewServiceUnavailable("down")
				}
				return noWatchList(ctx, req)
			})
			r.create("ns", "a")
			r.create("ns", "b")
			factory := r.newFactory(r.cluster, 0, metav1.NamespaceAll, func(opts *metav1.ListOptions) {
				if opts.SendInitialEvents == nil {
					*opts = metav1.ListOptions{Limit: 1, ResourceVersion: opts.ResourceVersion}
				}
			})
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			r.expect(events, "add ns/a", "add ns/b")
		}},
		row:    "A tweak that replaces all list options, and sets a limit, requests the first page without end and without a pause.",
		reason: "the informer would use all its time and more and more memory",
	},
	{
		behaviour: behaviour{"a restore of etcd is noticed", func(r *trial) {
			r.create("ns", "restored")
			factory := r.plain()
			events := listen(r.t, factory.ForResource(widgets).Informer())
			r.run(factory)
			backup := r.cluster.Backup()
			if err := r.widgets().Delete(r.t.Context(), "restored", metav1.DeleteOptions{}); err != nil {
				r.t.Fatal(err)
			}
			r.create("ns", "lost")
			time.Sleep(time.Minute)
			answer(r.cluster, syscall.ECONNREFUSED)
			r.cluster.Restore(backup)
			time.Sleep(10 * time.Second)
			r.cluster.Intercept(nil)
			time.Sleep(time.Hour)
			r.expect(events, "add ns/restored", "delete ns/restored", "add ns/lost", "delete ns/lost", "add ns/restored")
		}},
		row:    "After a restore of etcd, a watch from a later resourceVersion is silent: the cache keeps lost objects, and misses restored ones.",
		reason: "otherwise the cache is wrong until the program is started again (kubernetes#107457)",
	},
	{
		behaviour: behaviour{"a watch that does not end after its timeout is opened again", func(r *trial) {
			var watches atomic.Int32
			silent := scripted{widgetJSON("a", 2, `{}`)}
			factory := r.newForConfig(r.t, &rest.Config{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.Query().Get("watch") != "" && req.URL.Query().Get("sendInitialEvents") == "" {
					watches.Add(1)
				}
				return silent.RoundTrip(req)
			})})
			factory.ForResource(widgets)
			r.run(factory)
			time.Sleep(time.Hour)
			if n := watches.Load(); n < 2 {
				r.errorf("%d watches in an hour", n)
			}
		}},
		row:    "A watch whose connection hangs stays open: the cache misses all changes.",
		reason: "a server ends a watch at its timeout; there may be no other sign that the connection is broken",
	},
	{
		behaviour: behaviour{"no list follows a lost connection of HTTP/2", func(r *trial) {
			var lists atomic.Int32
			lost := scripted{widgetJSON("a", 2, `{}`)}
			factory := r.newForConfig(r.t, &rest.Config{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				query := req.URL.Query()
				if query.Get("watch") == "" && query.Get("limit") != "1" { // that is a comparison of versions
					lists.Add(1)
				}
				response, err := lost.RoundTrip(req)
				if query.Get("watch") != "" && response.StatusCode == http.StatusOK {
					body, stream := io.Pipe()
					time.AfterFunc(time.Minute, func() { _ = stream.CloseWithError(errors.New("http2: client connection lost")) })
					response.Body = body
				}
				return response, err
			})})
			factory.ForResource(widgets)
			r.run(factory)
			time.Sleep(time.Hour)
			if n := lists.Load(); n != 1 {
				r.errorf("%d lists in an hour", n)
			}
		}},
		row:    "After the loss of a connection of HTTP/2, or of the stream of a watch, everything is listed again.",
		reason: "a load balancer that drops connections causes a list of each resource, all at the same time",
	},
	{
		behaviour: behaviour{"a redirect to another server gets no credentials", func(r *trial) {
			var sent atomic.Bool
			factory := r.newForConfig(r.t, &rest.Config{BearerToken: secret, Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.URL.Host == "elsewhere" {
					sent.Store(sent.Load() || req.Header.Get("Authorization") != "")
				}
				header := http.Header{"Location": {"https://elsewhere" + req.URL.RequestURI()}}
				return &http.Response{StatusCode: http.StatusTemporaryRedirect, Header: header, Body: http.NoBody, Request: req}, nil
			})})
			factory.ForResource(widgets)
			r.run(factory)
			time.Sleep(time.Minute)
			if sent.Load() {
				r.errorf("the token was sent")
			}
		}},
		row:    "A redirect to another server is followed, and that server gets the token.",
		reason: "a server that is not trusted would get the token",
	},
	{
		behaviour: behaviour{"errors contain no response body", func(r *trial) {
			ctx, failures := withLog(r.t, r.t.Context())
			answer(r.cluster, runtime.NewMissingKindErr(secret))
			ctx, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			informer := r.plain().ForResource(widgets).Informer()
			go func() { defer close(ended); informer.RunWithContext(ctx) }()
			time.Sleep(time.Minute)
			cancel()
			<-ended
			lines := failures()
			if len(lines) == 0 {
				r.t.Error("the log is empty")
			}
			for _, line := range lines {
				if strings.Contains(fmt.Sprint(line.Err), secret) {
					r.errorf("the log has %v", line.Err)
				}
			}
		}},
		row:    logs,
		reason: "users who may not read Secrets read logs and pages",
	},
	{
		behaviour: behaviour{"a reason is logged once", func(r *trial) {
			ctx, failures := withLog(r.t, r.t.Context())
			answer(r.cluster, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
			ctx, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			informer := r.plain().ForResource(widgets).Informer()
			go func() { defer close(ended); informer.RunWithContext(ctx) }()
			time.Sleep(time.Hour)
			cancel()
			<-ended
			if got := len(failures()); got != 1 {
				r.errorf("%d lines", got)
			}
		}},
		row:    logs,
		reason: "client-go has logged 250,000 lines a day (kubernetes#142072)",
	},
}

// scripted is a transport to a server without watch-lists and events, with these widgets.
type scripted []string

// RoundTrip implements http.RoundTripper.
func (s scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	switch query := r.URL.Query(); {
	case query.Get("sendInitialEvents") != "":
		response.StatusCode = http.StatusUnprocessableEntity
		response.Body = io.NopCloser(strings.NewReader(stubserver.Refusal(http.StatusUnprocessableEntity, "Invalid")))
	case query.Get("watch") != "":
		body, silent := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = silent.Close() })
		response.Body = body
	default:
		response.Body = io.NopCloser(strings.NewReader(stubserver.WidgetList(s...)))
	}
	return response, nil
}

func TestDifferences(t *testing.T) {
	for _, row := range differences {
		t.Run(row.name, func(t *testing.T) {
			if row.reason == "" {
				t.Error("a difference needs a reason")
			}
			for _, impl := range []implementation{gvrkit, gvrkitPacked} {
				for _, problem := range try(t, impl, row.behaviour) {
					t.Errorf("%s: %s", impl.name, problem)
				}
			}
			if problems := try(t, clientGo, row.behaviour); problems == nil {
				t.Error("client-go has this behaviour too")
			}
		})
	}
}

// The table in docs/migration.md has all differences and no others.
func TestMigration_TableHasTheDifferences(t *testing.T) {
	page, err := os.ReadFile("../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| client-go | gvrkit |\n|---|---|\n")
	if !found {
		t.Fatal("docs/migration.md has no table of differences")
	}
	var got, want []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		got = append(got, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	for _, row := range differences {
		want = append(want, row.row)
	}
	want = slices.Compact(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if slices.Contains(want, "") {
		t.Error("a difference is not in docs/migration.md")
	}
}

// notAList is a client whose server responds to lists with a Status of success.
type notAList struct{ dynamic.Interface }

func (c notAList) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return notAListResource{c.Interface.Resource(gvr)}
}

type notAListResource struct {
	dynamic.NamespaceableResourceInterface
}

func (r notAListResource) Namespace(string) dynamic.ResourceInterface { return r }

func (notAListResource) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return &unstructured.UnstructuredList{Object: map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}}, nil
}

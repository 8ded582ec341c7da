package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	clientcmd "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// wrongOptions are options with values that all servers reject.
var wrongOptions = []struct {
	option, value string
	with          dynamicinformer.InformerOption
}{
	{"WithLabelSelector", "!!", dynamicinformer.WithLabelSelector("!!")},
	{"WithLabelSelector", "a in b", dynamicinformer.WithLabelSelector("a in b")},
	{"WithFieldSelector", "metadata.name", dynamicinformer.WithFieldSelector("metadata.name")},
	{"WithNamespace", "No Good/", dynamicinformer.WithNamespace("No Good/")},
	{"WithNamespaces", "No Good/", dynamicinformer.WithNamespaces("a", "No Good/")},
	{"WithNamespaceSelector", "!!", dynamicinformer.WithNamespaceSelector("!!")},
	{"WithNamespace", "UPPER", dynamicinformer.WithNamespace("UPPER")},
	{"WithNamespace", strings.Repeat("x", 64), dynamicinformer.WithNamespace(strings.Repeat("x", 64))},
}

func TestOptions_AValueThatNoServerAcceptsIsAnError(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	f := newFactory(t, cluster)
	for _, wrong := range wrongOptions {
		_, fromNew := dynamicinformer.New(cluster, wrong.with)
		_, fromNewForConfig := dynamicinformer.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"}, wrong.with)
		_, fromAcquire := f.Acquire(t.Context(), widgets, wrong.with)
		for name, err := range map[string]error{"New": fromNew, "NewForConfig": fromNewForConfig, "Acquire": fromAcquire} {
			option := (*dynamicinformer.OptionError)(nil)
			if !errors.As(err, &option) || !errors.Is(err, dynamicinformer.ErrInvalidOption) || option.Option != wrong.option || option.Value != wrong.value || option.Unwrap() == nil {
				t.Errorf("%s with %s(%q): %#v", name, wrong.option, wrong.value, err)
				continue
			}
			if text := err.Error(); !strings.HasPrefix(text, "dynamicinformer: ") || !strings.Contains(text, fmt.Sprintf("%s(%q): ", wrong.option, wrong.value)) {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	for _, right := range []dynamicinformer.InformerOption{
		dynamicinformer.WithLabelSelector("a in (b),c!=d"), dynamicinformer.WithFieldSelector("metadata.name=a"), dynamicinformer.WithNamespace("ns-1"),
		dynamicinformer.WithLabelSelector(""), dynamicinformer.WithFieldSelector(""), dynamicinformer.WithNamespace(""),
	} {
		if _, err := dynamicinformer.New(cluster, right); err != nil {
			t.Errorf("New: %v", err)
		}
	}
}

// ForResource can't return an error: the reason is in the status.
func TestForResource_OfANameThatNoServerAccepts(t *testing.T) {
	for name, discovered := range map[string]bool{"with discovery": true, "without discovery": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				var resolver dynamicinformer.Option
				if discovered {
					resolver = withDiscovery(t, cluster)
				}
				f := newFactory(t, cluster, resolver)
				empty := schema.GroupVersionResource{}
				f.ForResource(empty)
				f.Start(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				why := notSynced(t, f.WaitForSync(ctx, dynamicinformer.WithFailFast()))
				if why.Reason != status.ReasonBadRequest || !errors.Is(why, discovery.ErrInvalidRef) || why.GVR != empty {
					t.Errorf("%v", why)
				}
				if text := why.Error(); !strings.HasPrefix(text, "(no name): not synced: ") || !strings.HasSuffix(text, "; correct the name of the resource") {
					t.Error(text)
				}
				if requests := cluster.Requests("list", empty); len(requests) > 0 {
					t.Errorf("requests: %v", requests)
				}
				shutdown(t, f)
			})
		})
	}
}

// A wait can't help against an error of the caller.
func TestWaitForSync_FailFastEndsOnTheCallersOwnMistakes(t *testing.T) {
	plain, secure, mutual := stubserver.New(t), stubserver.NewTLS(t), stubserver.NewMutualTLS(t)
	host := func(server *httptest.Server, scheme string) *rest.Config {
		_, address, _ := strings.Cut(server.URL, "://")
		return &rest.Config{Host: scheme + "://" + address, QPS: -1}
	}
	plugin := plain.RESTConfig()
	plugin.ExecProvider = &clientcmd.ExecConfig{Command: "/no/such/plugin", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmd.NeverExecInteractiveMode}
	unknown := stubserver.Respond(400, "application/json", `{"apiVersion":"v1","kind":"Status","status":"Failure","code":400,"reason":"BadRequest","message":"field label not supported: spec.x"}`)
	for _, test := range []struct {
		name   string
		config *rest.Config
		reason status.Reason
		says   string
		is     func(error) bool
	}{
		{"an unknown field label", plain.RESTConfig(), status.ReasonBadRequest, "field label not supported: spec.x", apierrors.IsBadRequest},
		{"an unknown CA", host(secure.Server, "https"), status.ReasonTLS, "certificate", nil},
		{"HTTP to HTTPS", host(secure.Server, "http"), status.ReasonTLS, "", nil},
		{"no certificate", mutual.RESTConfig(), status.ReasonTLS, "remote error: tls: ", nil},
		{"no credentials", plugin, status.ReasonUnauthorized, "getting credentials: exec: ", nil},
		{"HTTPS to HTTP", host(plain.Server, "https"), status.ReasonTLS, "HTTP response to HTTPS client", nil},
	} {
		for name, opts := range map[string][]dynamicinformer.Option{"": {dynamicinformer.WithDiscovery(nil)}, ", with discovery": nil} {
			if opts == nil && test.reason == status.ReasonBadRequest {
				continue // for discovery, this is a normal response
			}
			t.Run(test.name+name, func(t *testing.T) {
				plain.Prepare(unknown)
				secure.Prepare(unknown)
				mutual.Prepare(unknown)
				f, err := dynamicinformer.NewForConfig(test.config, append([]dynamicinformer.Option{dynamicinformer.WithFieldSelector("spec.x=1")}, opts...)...)
				if err != nil {
					t.Fatal(err)
				}
				f.ForResource(widgets)
				f.Start(t.Context())
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				why := notSynced(t, f.WaitForSync(ctx, dynamicinformer.WithFailFast()))
				if ctx.Err() != nil || why.Reason != test.reason || !strings.Contains(why.Error(), test.says) || !strings.Contains(why.Error(), "; c") {
					t.Errorf("%v (%v)", why, ctx.Err())
				}
				if test.is != nil && !test.is(why) {
					t.Errorf("%T", why.Err)
				}
				shutdown(t, f)
			})
		}
	}
}

// client-go panics for a nil client. This constructor can't return an error.
func TestNewDynamicSharedInformerFactory_InvalidArgumentsAreReportedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		client    dynamic.Interface
		namespace string
		says      string
	}{
		"no client":            {nil, "", "the client is nil"},
		"a nil pointer":        {(*dynamic.DynamicClient)(nil), "", "the client is nil"},
		"no name of namespace": {fakecluster.New(widgetType), "No Good/", `WithNamespace("No Good/")`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, failures := withLog(t, t.Context())
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(test.client, 0, test.namespace, nil)
				informer := f.ForResource(widgets).Informer()
				ended := make(chan struct{})
				go func() { defer close(ended); informer.RunWithContext(ctx) }()
				time.Sleep(time.Hour)
				lines := failures()
				if diff := cmp.Diff([]any{status.ReasonBadRequest}, reasonsIn(lines)); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
				if len(lines) == 1 && !strings.Contains(lines[0].Err.Error(), test.says) {
					t.Errorf("error in the log: %v", lines[0].Err)
				}
				cancel()
				<-ended

				handled := make(chan error, 10)
				by := dynamicinformer.NewFilteredDynamicInformer(test.client, widgets, test.namespace, 0, nil, nil).Informer()
				if err := by.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { handled <- err }); err != nil {
					t.Fatal(err)
				}
				stop := make(chan struct{})
				ended = make(chan struct{})
				go func() { defer close(ended); by.Run(stop) }()
				time.Sleep(time.Hour)
				close(stop)
				<-ended
				if n := len(handled); n != 1 {
					t.Fatalf("the watch error handler was called %d times", n)
				}
				if err := <-handled; !strings.Contains(err.Error(), test.says) {
					t.Errorf("the watch error handler was called with %v", err)
				}
				if cluster, is := test.client.(*fakecluster.Cluster); is && len(cluster.Requests("list", widgets))+len(cluster.Requests("watch", widgets)) > 0 {
					t.Error("a request was sent")
				}
			})
		})
	}
}

// The informer would end the process when the first object arrives.
func TestOptions_ANilIndexFunctionIsAnError(t *testing.T) {
	indexers := dynamicinformer.WithIndexers(cache.Indexers{"by-owner": nil})
	_, err := dynamicinformer.New(fakecluster.New(), indexers)
	if !errors.Is(err, dynamicinformer.ErrInvalidOption) || !strings.Contains(err.Error(), `WithIndexers: the function of index "by-owner" is nil`) {
		t.Errorf("error of New = %v", err)
	}
	f := newCRDCluster().factory(t)
	if _, err := f.Acquire(t.Context(), widgets, indexers); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
		t.Errorf("error of Acquire = %v", err)
	}
}

// The options of the leases are the same for all types: no type could be followed with them.
func TestFollow_AnInvalidOptionOfTheLeasesIsAnError(t *testing.T) {
	f := newCRDCluster().factory(t)
	for _, tc := range []struct {
		name string
		opt  dynamicinformer.LeaseOption
	}{
		{"WithLabelSelector", dynamicinformer.WithLabelSelector("!!")},
		{"WithNamespace", dynamicinformer.WithNamespace("a/b")},
		{"WithVersionPolicy", dynamicinformer.WithVersionPolicy(discovery.EveryVersion())},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // without the check, Follow returns nil
		err := f.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{}, dynamicinformer.WithLeaseOptions(tc.opt))
		var wrong *dynamicinformer.OptionError
		if !errors.As(err, &wrong) || wrong.Option != tc.name {
			t.Errorf("%s: error = %v", tc.name, err)
		}
	}
}

func TestNew_RejectsANilPointer(t *testing.T) {
	if _, err := dynamicinformer.New((*dynamic.DynamicClient)(nil)); err == nil {
		t.Error("no error")
	}
}

// The net/http package returns an error, too, for a request with a nil context.
func TestFactory_ANilContextIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		l := acquire(t, f, widgets)
		f.Start(t.Context())
		var none context.Context
		_, acquired := f.Acquire(none, widgets)
		_, typed := dynamicinformer.AcquireTyped[*typedWidget](none, f, widgets)
		_, named := f.AcquireRef(none, "widgets")
		for name, err := range map[string]error{
			"Acquire": acquired, "AcquireTyped": typed, "AcquireRef": named, "Factory.WaitForSync": f.WaitForSync(none), "Lease.WaitForSync": l.WaitForSync(none),
			"AtLeast": l.AtLeast(none, "1"), "Follow": f.Follow(none, discovery.Selector{}, dynamicinformer.FollowFuncs{}), "Shutdown": f.Shutdown(none),
		} {
			if err == nil || !strings.HasSuffix(err.Error(), ": the context is nil") {
				t.Errorf("%s: %v", name, err)
			}
		}
		shutdown(t, f)
	})
}

func TestAcquireTyped_ANilFactoryIsAnError(t *testing.T) {
	if _, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), nil, widgets); err == nil || !strings.Contains(err.Error(), "the factory is nil") {
		t.Error(err)
	}
	for name, view := range map[string]dynamicinformer.InformerFactory{
		"both": dynamicinformer.ObjectOrMetadata(nil, nil), "one": dynamicinformer.ObjectOrMetadata(nil, newFactory(t, fakecluster.New(widgetType))),
	} {
		if _, err := view.ForResource(widgets); err == nil || !strings.Contains(err.Error(), "is nil") {
			t.Errorf("ObjectOrMetadata, %s: %v", name, err)
		}
		view.Start(t.Context().Done()) // does not panic
	}
}

func TestFactory_StartOfANilContextRunsUntilShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		f.Start(nil) //nolint:staticcheck // this is tested
		if err := waitFor(t.Context(), f, time.Minute); err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

// A handler that would never be called is rejected.
func TestFactory_AddEventHandlerAfterShutdownIsAnError(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, f *dynamicinformer.Factory){
		"of an informer that ran":       func(t *testing.T, f *dynamicinformer.Factory) { t.Helper(); start(t.Context(), f) },
		"of an informer that never ran": func(t *testing.T, _ *dynamicinformer.Factory) { t.Helper() },
	} {
		for kind, typ := range map[string]fakecluster.Type{"served": widgetType, "not served": blockType} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cluster := fakecluster.New(typ)
					f := newFactory(t, cluster, withDiscovery(t, cluster))
					before := f.ForResource(widgets).Informer()
					run(t, f)
					shutdown(t, f)
					for when, informer := range map[string]cache.SharedIndexInformer{"before": before, "after": f.ForResource(widgets).Informer(), "first after": f.ForResource(gadgets).Informer()} {
						registration, err := informer.AddEventHandler(&recorder{})
						if err == nil || registration != nil {
							t.Errorf("informer requested %s: %v, %v", when, registration, err)
						}
						if _, err = informer.AddEventHandlerWithResyncPeriod(&recorder{}, time.Minute); err == nil {
							t.Errorf("informer requested %s, with a resync period: no error", when)
						}
					}
				})
			})
		}
	}
}

// A program may run an informer of a factory without the factory, also after its end.
func TestFactory_AddEventHandlerToAnInformerThatRunsByHandAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		informer := f.ForResource(widgets).Informer()
		shutdown(t, f)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); informer.RunWithContext(ctx) }()
		synctest.Wait()
		events := listen(t, informer)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		cancel()
		<-ended
	})
}

// Handlers of a lease are added to a running informer.
func TestLease_HandlersHaveTheirOwnResyncPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		l := syncedLease(t, f)
		with, without := &recorder{}, &recorder{}
		if _, err := l.AddEventHandlerWithOptions(with, cache.HandlerOptions{ResyncPeriod: new(5 * time.Minute)}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.AddEventHandler(without); err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Minute)
		if got := len(with.take()); got < 4 || got > 5 {
			t.Errorf("%d events, want the add and an update each 5 minutes", got)
		}
		if diff := cmp.Diff([]string{"add ns/a"}, without.take()); diff != "" {
			t.Errorf("without a period (-want +got):\n%s", diff)
		}
		if got := len(cluster.Requests("list", widgets)) + len(cluster.Requests("watch", widgets)); got > 5 {
			t.Errorf("%d requests", got)
		}
		l.Release()
		shutdown(t, f)
	})
}

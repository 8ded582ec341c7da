package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// secret is the text that the library must not show.
const secret = "c2VjcmV0IGRhdGE="

// secretFields are the fields of a Secret without kind and version.
const secretFields = `"metadata":{"name":"s","namespace":"ns","resourceVersion":"1"},"data":{"password":"` + secret + `"}`

// leaks are responses that errors of client-go contain. The first reply is for lists, the second one for
// watches.
var leaks = []struct {
	name        string
	list, watch stubserver.Reply
	reason      status.Reason
	is          func(error) bool
}{
	{name: "a list without a kind", list: stubserver.JSON(`{"apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"apiVersion":"v1","kind":"Secret",` + secretFields + `}]}`), reason: status.ReasonDecodeFailed},
	{name: "a list of 64 KB without a kind", list: stubserver.JSON(`{"apiVersion":"v1","items":[{"data":"` + strings.Repeat(secret, 64<<10/len(secret)) + `"}]}`), reason: status.ReasonDecodeFailed},
	{name: "an object without a kind for a list", list: stubserver.JSON(`{"apiVersion":"v1",` + secretFields + `}`), reason: status.ReasonDecodeFailed},
	{name: "an event without a kind", watch: stubserver.Stream(stubserver.Event("ADDED", `{"apiVersion":"v1",`+secretFields+`}`)), reason: status.ReasonDecodeFailed},
	{name: "an event without a version", watch: stubserver.Stream(stubserver.Event("ADDED", `{"kind":"Secret",`+secretFields+`}`)), reason: status.ReasonDecodeFailed},
	{name: "an error event with an object", watch: stubserver.Stream(stubserver.Event("ERROR", `{"apiVersion":"v1","kind":"Secret",`+secretFields+`}`)), reason: status.ReasonUnavailable, is: apierrors.IsUnexpectedObjectError},
	{name: "a Status in the place of an object", watch: stubserver.Stream(stubserver.Event("ADDED", `{"apiVersion":"v1","kind":"Status","message":"`+secret+`"}`)), reason: status.ReasonDecodeFailed},
	{name: "500 with an object as text", list: stubserver.Respond(500, "text/plain", `{"apiVersion":"v1","kind":"Secret",`+secretFields+`}`), reason: status.ReasonUnavailable, is: apierrors.IsInternalError},
	{name: "502 with an object as YAML", list: stubserver.Respond(502, "", "kind: Secret\napiVersion: v1\ndata:\n  password: "+secret+"\n"), reason: status.ReasonUnavailable, is: apierrors.IsInternalError},
	{name: "500 with an object for a watch", watch: stubserver.Respond(500, "", `{"apiVersion":"v1","kind":"Secret",`+secretFields+`}`), reason: status.ReasonUnavailable, is: apierrors.IsInternalError},
	{name: "403 with an object as text", list: stubserver.Respond(403, "text/plain", `{"apiVersion":"v1","kind":"Secret",`+secretFields+`}`), reason: status.ReasonForbidden, is: apierrors.IsForbidden},
}

// leaking responds with list and watch. If watch is nil, watches are rejected, so that a LIST follows. If
// list is nil, lists are empty.
func leaking(list, watch stubserver.Reply) stubserver.Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		watching := r.URL.Query().Get("watch") != ""
		switch {
		case watching && watch != nil:
			watch(w, r)
		case watching:
			stubserver.Respond(405, "application/json", stubserver.Refusal(405, "MethodNotAllowed"))(w, r)
		case list != nil:
			list(w, r)
		default:
			stubserver.JSON(`{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"5"},"items":[]}`)(w, r)
		}
	}
}

// factoriesOf has constructors of factories with our client and with client-go's.
var factoriesOf = map[string]func(t *testing.T, cfg *rest.Config, opts ...dynamicinformer.Option) *dynamicinformer.Factory{
	"NewForConfig": func(t *testing.T, cfg *rest.Config, opts ...dynamicinformer.Option) *dynamicinformer.Factory {
		t.Helper()
		f, err := dynamicinformer.NewForConfig(cfg, append([]dynamicinformer.Option{dynamicinformer.WithDiscovery(nil)}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		return f
	},
	"New": func(t *testing.T, cfg *rest.Config, opts ...dynamicinformer.Option) *dynamicinformer.Factory {
		t.Helper()
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return newFactory(t, client, opts...)
	},
}

func TestFactory_ShowsNoResponseBody(t *testing.T) {
	s := stubserver.New(t)
	for _, leak := range leaks {
		for name, factory := range factoriesOf {
			t.Run(leak.name+"/"+name, func(t *testing.T) {
				s.Prepare(leaking(leak.list, leak.watch))
				f := factory(t, s.RESTConfig())
				checkShownOf(t, f, leak.reason, leak.is)

				handled := make(chan error, 100)
				f = factory(t, s.RESTConfig(), dynamicinformer.WithStrictDecoding(), dynamicinformer.WithWatchErrorHandler(func(_ context.Context, _ *cache.Reflector, err error) {
					select {
					case handled <- err:
					default:
					}
				}))
				f.ForResource(widgets)
				f.Start(t.Context())
				select {
				case err := <-handled:
					checkShows(t, "the watch error handler", fmt.Sprintf("%v\n%+v\n%#v", err, err, err))
				case <-time.After(time.Minute):
					t.Error("the watch error handler was not called")
				}
				shutdown(t, f)
			})
		}
	}
}

func TestFactory_ShowsNoBodyOfADiscoveryResponse(t *testing.T) {
	s := stubserver.New(t)
	for name, answer := range map[string]stubserver.Reply{
		"as text":    stubserver.Respond(500, "text/plain", `{"apiVersion":"v1","kind":"Secret",`+secretFields+`}`),
		"as JSON":    stubserver.Respond(500, "application/json", `{"apiVersion":"v1","kind":"Secret",`+secretFields+`}`),
		"as YAML":    stubserver.Respond(502, "", "data:\n  password: "+secret+"\n"),
		"in a quote": stubserver.Respond(500, "application/json", `{"apiVersion":"v1","kind":"Status","status":"Failure","code":500,"message":"Object 'Kind' is missing in '`+secret+`'"}`),
		"with 200":   stubserver.JSON(`{"apiVersion":"v1",` + secretFields + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			s.Prepare(answer)
			f, err := dynamicinformer.NewForConfig(s.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Acquire(t.Context(), widgets)
			checkShows(t, "Acquire", fmt.Sprintf("%v\n%+v", err, err))
			f.ForResource(widgets)
			checkShownOf(t, f, status.ReasonDiscoveryFailed, nil)
		})
	}
}

// checkShownOf runs an informer of f until a request has failed with reason, and checks all texts about
// this.
func checkShownOf(t *testing.T, f *dynamicinformer.Factory, reason status.Reason, is func(error) bool) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(4), ktesting.AnyToString(func(v any) string { return fmt.Sprintf("%v", v) })))
	f.Start(klog.NewContext(t.Context(), logger))
	l := acquire(t, f, widgets, dynamicinformer.WithAllowAbsent())
	wait, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for now := range l.Watch(wait) {
		if now.Err == nil || now.Reason != reason {
			continue
		}
		checkShows(t, "Status", fmt.Sprintf("%v\n%+v\n%#v", now.Err, now.Err, now))
		if asStatus := apierrors.APIStatus(nil); errors.As(now.Err, &asStatus) {
			checkShows(t, "the APIStatus", fmt.Sprintf("%+v", asStatus.Status()))
		}
		if is != nil && !is(now.Err) {
			t.Errorf("%T: %v: is not what client-go's error is", now.Err, now.Err)
		}
		break
	}
	if wait.Err() != nil {
		t.Fatalf("not %s: %+v", reason, l.Status())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.WaitForSync(ended, dynamicinformer.WithResources(widgets)); err != nil {
		checkShows(t, "WaitForSync", err.Error())
	}
	checkShows(t, "Explain", f.Explain(widgets).String())
	for _, query := range []string{"format=json", "format=text", "format=html", "format=json&resource=widgets.v1.example.com", "format=text&resource=widgets.v1.example.com", "format=html&resource=widgets.v1.example.com"} {
		checkHides(t, "the page "+query, look(t, f.Handler(), query).Body.String())
	}
	l.Release()
	shutdown(t, f)
	for _, line := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		checkShows(t, "the log", fmt.Sprintf("%s %v %v %v", line.Message, line.Err, line.WithKVList, line.ParameterKVList))
	}
}

// checkShows checks that text does not contain the secret, and is short.
func checkShows(t *testing.T, where, text string) {
	t.Helper()
	checkHides(t, where, text)
	if len(text) > 8<<10 {
		t.Errorf("%s: %d bytes: %.300s…", where, len(text), text)
	}
}

func checkHides(t *testing.T, where, text string) {
	t.Helper()
	if at := strings.Index(text, secret); at >= 0 {
		t.Errorf("%s shows the object: …%s…", where, text[max(0, at-200):min(len(text), at+100)])
	}
}

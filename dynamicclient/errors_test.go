package dynamicclient_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// calls are one of each kind.
var calls = []struct {
	name string
	call call
}{
	{"get", get()},
	{"list", list(metav1.ListOptions{})},
	{"watch", watchToEnd(metav1.ListOptions{})},
	{"create", created(fullWidget(), metav1.CreateOptions{})},
	{"delete", deleted(metav1.DeleteOptions{})},
}

// readers are the calls that return what the server sent.
var readers = calls[:3]

// statuses are the errors of API servers.
var statuses = []struct {
	name    string
	replies []stubserver.Reply
	fails   string
}{
	{"bad request", []stubserver.Reply{stubserver.Respond(400, "application/json", stubserver.Failure(400, "BadRequest"))}, "it failed"},
	{"unauthorized", []stubserver.Reply{stubserver.Respond(401, "application/json", stubserver.Failure(401, "Unauthorized"))}, "it failed"},
	{"forbidden", []stubserver.Reply{stubserver.Respond(403, "application/json", stubserver.Failure(403, "Forbidden"))}, "it failed"},
	{"not found", []stubserver.Reply{stubserver.Respond(404, "application/json", stubserver.Failure(404, "NotFound"))}, "it failed"},
	{"conflict", []stubserver.Reply{stubserver.Respond(409, "application/json", stubserver.Failure(409, "Conflict"))}, "it failed"},
	{"expired", []stubserver.Reply{stubserver.Respond(410, "application/json", expired)}, "too old"},
	{"invalid", []stubserver.Reply{stubserver.Respond(422, "application/json", stubserver.Failure(422, "Invalid"))}, "it failed"},
	{"too many requests", []stubserver.Reply{stubserver.Respond(429, "application/json", stubserver.Failure(429, "TooManyRequests"))}, "it failed"},
	{"too many requests, at first", []stubserver.Reply{stubserver.WithHeader("Retry-After", "0", stubserver.Respond(429, "application/json", stubserver.Failure(429, "TooManyRequests"))), stubserver.Respond(403, "application/json", stubserver.Failure(403, "Forbidden"))}, "it failed"},
	{"too many requests, always", []stubserver.Reply{stubserver.WithHeader("Retry-After", "0", stubserver.Respond(429, "application/json", stubserver.Failure(429, "TooManyRequests")))}, "it failed"},
	{"internal error", []stubserver.Reply{stubserver.Respond(500, "application/json", stubserver.Failure(500, "InternalError"))}, "it failed"},
	{"unavailable", []stubserver.Reply{stubserver.Respond(503, "application/json", stubserver.Failure(503, "ServiceUnavailable"))}, "it failed"},
	{"unavailable, at first", []stubserver.Reply{stubserver.WithHeader("Retry-After", "0", stubserver.Respond(503, "text/plain", "busy")), stubserver.Respond(404, "application/json", stubserver.Failure(404, "NotFound"))}, "it failed"},
	{"a Status without a version", []stubserver.Reply{stubserver.Respond(404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"m"}`)}, "m"},
	{"a Status without a kind", []stubserver.Reply{stubserver.Respond(404, "application/json", `{"apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"m"}`)}, "the server could not find the requested resource"},
	{"a success Status with an error code", []stubserver.Reply{stubserver.Respond(500, "application/json", success)}, "an error on the server"},
	{"an object with an error code", []stubserver.Reply{stubserver.Respond(404, "application/json", widgetA)}, "the server could not find the requested resource"},
	{"a list with an error code", []stubserver.Reply{stubserver.Respond(404, "application/json", stubserver.WidgetList(widgetA))}, "the server could not find the requested resource"},
	{"an error without a body", []stubserver.Reply{stubserver.Respond(403, "application/json", "")}, "unknown"},
	{"an error in plain text", []stubserver.Reply{stubserver.Respond(403, "text/plain", "no way")}, "no way"},
	{"an error in HTML", []stubserver.Reply{stubserver.Respond(502, "text/html; charset=utf-8", "<html><h1>502 Bad Gateway</h1></html>")}, "Bad Gateway"},
	{"an error of no type", []stubserver.Reply{stubserver.Respond(404, "", "404 page not found\n")}, "the server could not find the requested resource"},
	{"an error of an invalid type", []stubserver.Reply{stubserver.Respond(404, "a/b/c", stubserver.Failure(404, "NotFound"))}, "unexpected content after media"},
	{"broken JSON with an error code", []stubserver.Reply{stubserver.Respond(409, "application/json", `{"kind":"Status","apiVersion":"v1","sta`)}, "the server reported a conflict"},
}

func TestClient_FailsAsClientGo(t *testing.T) {
	s := serve(t)
	for _, status := range statuses {
		for _, c := range calls {
			t.Run(status.name+"/"+c.name, func(t *testing.T) {
				s.check(t, exchange{replies: status.replies, call: c.call, fails: status.fails})
			})
		}
	}
}

func TestClient_WarnsAsClientGo(t *testing.T) {
	warning := func(next stubserver.Reply) stubserver.Reply {
		return stubserver.WithHeader("Warning", `299 - "this is old"`, stubserver.WithHeader("Warning", `299 agent "so is \"that\""`, stubserver.WithHeader("Warning", `garbage`, next)))
	}
	s := serve(t)
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			row := exchange{replies: []stubserver.Reply{warning(stubserver.JSON(widgetA))}, call: c.call}
			if c.name == "watch" {
				row.replies = []stubserver.Reply{warning(stubserver.Stream(stubserver.Event("ADDED", widgetA)))}
			}
			s.check(t, row)
			if got := s.outcome(t, row, made()).Warnings; len(got) != 2 {
				t.Errorf("warnings = %q, want 2", got)
			}
		})
	}
}

// contextWarnings keeps warnings and what the context of the call says.
type contextWarnings struct{ *warnings }

type calledBy struct{}

func (w contextWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	by, _ := ctx.Value(calledBy{}).(string)
	w.HandleWarningHeader(code, by, text)
}

func TestClient_WarnsWithTheContextOfTheCall(t *testing.T) {
	warned := contextWarnings{&warnings{}}
	row := exchange{
		replies: []stubserver.Reply{stubserver.WithHeader("Warning", `299 - "this is old"`, stubserver.JSON(widgetA))},
		config:  func(cfg *rest.Config) { cfg.WarningHandlerWithContext = warned },
		call: func(ctx context.Context, c dynamic.Interface) (any, error) {
			return get()(context.WithValue(ctx, calledBy{}, "me"), c)
		},
	}
	serve(t).outcome(t, row, made())
	if len(warned.texts) != 1 || warned.texts[0] != "299 me this is old" {
		t.Errorf("warnings = %q", warned.texts)
	}
}

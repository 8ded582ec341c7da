package dynamicinformer_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
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
	replies []reply
	fails   string
}{
	{"bad request", []reply{respond(400, "application/json", failed(400, "BadRequest"))}, "it failed"},
	{"unauthorized", []reply{respond(401, "application/json", failed(401, "Unauthorized"))}, "it failed"},
	{"forbidden", []reply{respond(403, "application/json", failed(403, "Forbidden"))}, "it failed"},
	{"not found", []reply{respond(404, "application/json", failed(404, "NotFound"))}, "it failed"},
	{"conflict", []reply{respond(409, "application/json", failed(409, "Conflict"))}, "it failed"},
	{"expired", []reply{respond(410, "application/json", expired)}, "too old"},
	{"invalid", []reply{respond(422, "application/json", failed(422, "Invalid"))}, "it failed"},
	{"too many requests", []reply{respond(429, "application/json", failed(429, "TooManyRequests"))}, "it failed"},
	{"too many requests, at first", []reply{withHeader("Retry-After", "0", respond(429, "application/json", failed(429, "TooManyRequests"))), respond(403, "application/json", failed(403, "Forbidden"))}, "it failed"},
	{"too many requests, always", []reply{withHeader("Retry-After", "0", respond(429, "application/json", failed(429, "TooManyRequests")))}, "it failed"},
	{"internal error", []reply{respond(500, "application/json", failed(500, "InternalError"))}, "it failed"},
	{"unavailable", []reply{respond(503, "application/json", failed(503, "ServiceUnavailable"))}, "it failed"},
	{"unavailable, at first", []reply{withHeader("Retry-After", "0", respond(503, "text/plain", "busy")), respond(404, "application/json", failed(404, "NotFound"))}, "it failed"},
	{"a Status without a version", []reply{respond(404, "application/json", `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"message":"m"}`)}, "m"},
	{"a Status without a kind", []reply{respond(404, "application/json", `{"apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"m"}`)}, "the server could not find the requested resource"},
	{"a success Status with an error code", []reply{respond(500, "application/json", success)}, "an error on the server"},
	{"an object with an error code", []reply{respond(404, "application/json", widgetA)}, "the server could not find the requested resource"},
	{"a list with an error code", []reply{respond(404, "application/json", widgetList(widgetA))}, "the server could not find the requested resource"},
	{"an error without a body", []reply{respond(403, "application/json", "")}, "unknown"},
	{"an error in plain text", []reply{respond(403, "text/plain", "no way")}, "no way"},
	{"an error in HTML", []reply{respond(502, "text/html; charset=utf-8", "<html><h1>502 Bad Gateway</h1></html>")}, "Bad Gateway"},
	{"an error of no type", []reply{respond(404, "", "404 page not found\n")}, "the server could not find the requested resource"},
	{"an error of an invalid type", []reply{respond(404, "a/b/c", failed(404, "NotFound"))}, "unexpected content after media"},
	{"broken JSON with an error code", []reply{respond(409, "application/json", `{"kind":"Status","apiVersion":"v1","sta`)}, "the server reported a conflict"},
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
	warning := func(next reply) reply {
		return withHeader("Warning", `299 - "this is old"`, withHeader("Warning", `299 agent "so is \"that\""`, withHeader("Warning", `garbage`, next)))
	}
	s := serve(t)
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			row := exchange{replies: []reply{warning(asJSON(widgetA))}, call: c.call}
			if c.name == "watch" {
				row.replies = []reply{warning(stream(eventOf("ADDED", widgetA)))}
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
		replies: []reply{withHeader("Warning", `299 - "this is old"`, asJSON(widgetA))},
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

package dynamicclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// call is what a program asks of a client.
type call func(ctx context.Context, c dynamic.Interface) (any, error)

// exchange is one call on a client and how the server answers. Client-go's client and
// ours must be alike in it.
type exchange struct {
	name    string
	config  func(cfg *rest.Config) // nil changes nothing
	replies []stubserver.Reply
	call    call
	fails   string // what the error says; empty if there is none
}

// outcome is all that a program and a server can tell of an exchange.
type outcome struct {
	Value    any
	Err      *errorDetails
	Warnings []string
	Arrivals []stubserver.Arrival
}

// errorDetails is all that a program can tell of an error.
type errorDetails struct {
	Text, Type string
	Reason     metav1.StatusReason
	Status     *metav1.Status
	Canceled   bool
}

func detailsOf(err error) *errorDetails {
	if err == nil {
		return nil
	}
	v := &errorDetails{
		Text: err.Error(), Type: fmt.Sprintf("%T", err), Reason: apierrors.ReasonForError(err),
		Canceled: errors.Is(err, context.Canceled),
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		v.Status = new(status.Status())
	}
	return v
}

// newClientFunc makes a dynamic client.
type newClientFunc func(cfg *rest.Config) (dynamic.Interface, error)

func stock(cfg *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(cfg) }

// made returns a newClientFunc of our client.
func made(opts ...dynamicclient.Option) newClientFunc {
	return func(cfg *rest.Config) (dynamic.Interface, error) { return dynamicclient.New(cfg, opts...) }
}

// newClientFuncs are the ways to make our client in which it gives client-go's values.
var newClientFuncs = map[string]newClientFunc{
	"ours":               made(),
	"ours, with sharing": made(dynamicclient.WithSharing()),
}

// warnings keeps the warnings that a client got.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(code int, agent, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, fmt.Sprintf("%d %s %s", code, agent, text))
}

// outcome makes a client and runs row on it.
func (s *apiServer) outcome(t *testing.T, row exchange, newClient newClientFunc) outcome {
	t.Helper()
	s.Prepare(row.replies...)
	warned := &warnings{}
	cfg := s.RESTConfig()
	cfg.WarningHandler = warned
	if row.config != nil {
		row.config(cfg)
	}
	client, err := newClient(cfg)
	if err != nil {
		t.Fatalf("no client: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a test that hangs shall say what it hangs in
	defer cancel()
	value, err := row.call(ctx, client)
	return outcome{Value: value, Err: detailsOf(err), Warnings: warned.texts, Arrivals: s.Arrivals()}
}

// check runs row on client-go's client and on ours and compares. The error has to be
// the one that the row expects.
func (s *apiServer) check(t *testing.T, row exchange) {
	t.Helper()
	var failure string
	if v := s.compare(t, row).Err; v != nil {
		failure = v.Text
	}
	if (failure == "") != (row.fails == "") || !strings.Contains(failure, row.fails) {
		t.Errorf("the error is %q, want %q", failure, row.fails)
	}
}

// compare is check for any error. It returns client-go's outcome.
func (s *apiServer) compare(t *testing.T, row exchange) outcome {
	t.Helper()
	want := s.outcome(t, row, stock)
	for name, newClient := range newClientFuncs {
		if got := s.outcome(t, row, newClient); !reflect.DeepEqual(want, got) {
			t.Errorf("%s (-client-go +ours):\n%s", name, diffOf(want, got))
		}
	}
	return want
}

// checkAll checks each row in a subtest.
func (s *apiServer) checkAll(t *testing.T, rows []exchange) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) { s.check(t, row) })
	}
}

// diffOf is cmp.Diff, which does not come to an end with what is very deep.
func diffOf(want, got outcome) string {
	x, errX := json.Marshal(want)
	y, errY := json.Marshal(got)
	if errX != nil || errY != nil || len(x) > 100_000 || len(y) > 100_000 ||
		bytes.Contains(append(x, y...), []byte("[[[[[[[[")) || bytes.Contains(append(x, y...), []byte(`{"a":{"a":{"a":`)) {
		return fmt.Sprintf("-%.2000s (%d bytes, %v)\n+%.2000s (%d bytes, %v)", x, len(x), errX, y, len(y), errY)
	}
	return cmp.Diff(want, got)
}

func widgetsOf(c dynamic.Interface) dynamic.ResourceInterface {
	return c.Resource(widgets).Namespace("ns")
}

// get reads a widget, or one of its subresources.
func get(subresources ...string) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return widgetsOf(c).Get(ctx, "a", metav1.GetOptions{}, subresources...)
	}
}

// list lists the widgets of a namespace.
func list(opts metav1.ListOptions) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) { return widgetsOf(c).List(ctx, opts) }
}

// listOf lists a resource in all namespaces.
func listOf(gvr schema.GroupVersionResource) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return c.Resource(gvr).List(ctx, metav1.ListOptions{})
	}
}

// watchToEnd watches the widgets of a namespace until the stream ends, and returns
// the events.
func watchToEnd(opts metav1.ListOptions) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		w, err := widgetsOf(c).Watch(ctx, opts)
		if err != nil {
			return nil, err
		}
		defer w.Stop()
		return drained(w), nil
	}
}

func drained(w watch.Interface) (events []watch.Event) {
	for event := range w.ResultChan() {
		events = append(events, event)
	}
	return events
}

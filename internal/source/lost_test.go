package source_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

// lostTexts are errors of reads from a connection.
var lostTexts = []string{
	"http2: client connection lost",
	"stream error: stream ID 5; INTERNAL_ERROR; received from peer",
	"connection error: PROTOCOL_ERROR",
	"read tcp 10.0.0.2:40000->10.0.0.1:443: read: no route to host",
	"remote error: tls: internal error",
	"local error: tls: bad record MAC",
}

// unreadable returns client-go's event for a watch whose data can't be read.
func unreadable(text string) watch.Event {
	err := fmt.Errorf("unable to decode an event from the watch stream: %s", text)
	return watch.Event{Type: watch.Error, Object: apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding").AsObject(err)}
}

func TestIsLost(t *testing.T) {
	for _, text := range lostTexts {
		if err := apierrors.FromObject(unreadable(text).Object); !source.IsLost(err) || !source.IsLost(fmt.Errorf("wrapped: %w", err)) {
			t.Errorf("%q is not lost", text)
		}
	}
	for _, text := range []string{
		"", "invalid character 's' looking for beginning of value", "object to decode was longer than maximum allowed size", "unexpected EOF",
		"unable to decode watch event: stream error: ", "couldn't get version/kind; json parse error: unexpected end of JSON input",
	} {
		if source.IsLost(apierrors.FromObject(unreadable(text).Object)) {
			t.Errorf("%q is lost", text)
		}
	}
	for _, err := range []error{nil, context.Canceled, &apierrors.StatusError{}, apierrors.NewInternalError(fmt.Errorf("stream error: %w", context.Canceled))} {
		if source.IsLost(err) {
			t.Errorf("%v is lost", err)
		}
	}
}

// The reflector has all events up to the loss: a watch continues there, and a list of one object compares the versions.
func TestResumableWatch_AWatchFollowsALostConnection(t *testing.T) {
	for _, text := range lostTexts {
		for name, scope := range scopes {
			t.Run(name+", "+text, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &injector{events: make(chan watch.Event)}
					w := newTestInformer(t, func(cfg *source.Config) {
						scope(cfg)
						server.Client, cfg.Client = cfg.Client, server
					}, "a", "b")
					small, whole := w.lists()
					time.Sleep(time.Minute)
					w.setColor("a", "blue")
					w.expect("before", "update a red to a blue")
					server.events <- unreadable(text)
					time.Sleep(time.Second)
					w.expect("after the loss")
					w.checkLists("after the loss", small+1, whole)
					server.events <- unreadable(text)
					synctest.Wait()
					w.remove("b")
					w.create("c")
					time.Sleep(time.Second)
					w.expect("after a loss with events", "delete b red", "add c red")
					if _, got := w.lists(); got != whole {
						t.Errorf("%d lists, want no more than %d", got, whole)
					}
				})
			})
		}
	}
}

// After other events that can't be read, everything is listed: another watch would get them again.
func TestResumableWatch_AListFollowsDataThatCannotBeRead(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &injector{events: make(chan watch.Event)}
				w := newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					server.Client, cfg.Client = cfg.Client, server
				}, "a")
				_, whole := w.lists()
				time.Sleep(time.Minute)
				server.events <- unreadable("invalid character '<' looking for beginning of value")
				time.Sleep(time.Second)
				if _, got := w.lists(); got != whole+1 {
					t.Errorf("%d lists, want one more than %d", got, whole)
				}
			})
		})
	}
}

// losing is a client whose watches are lost before their first event.
type losing struct{ source.Client }

func (c losing) IsWatchListSemanticsUnSupported() bool { return true } // the first list is a LIST

func (c losing) Watch(context.Context, schema.GroupVersionResource, string, metav1.ListOptions) (watch.Interface, error) {
	lost := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
	event := unreadable(lostTexts[1])
	lost.Action(event.Type, event.Object)
	return lost, nil
}

// A proxy may end each stream at once.
func TestResumableWatch_ListsReplaceWatchesThatAreLost(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					cfg.Client = losing{cfg.Client}
				}, "a")
				_, before := w.lists()
				for i := range 10 {
					w.create(fmt.Sprintf("new-%d", i))
					time.Sleep(5 * time.Minute)
					w.expect("in five minutes", fmt.Sprintf("add new-%d red", i))
				}
				if _, whole := w.lists(); whole-before > 110 { // in 3,000 s
					t.Errorf("%d lists in 50 minutes", whole-before)
				}
			})
		})
	}
}

package dynamicinformer_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// losingStream is a server with one widget. The first watch has an event, and then its HTTP/2 stream is reset. Later watches stay open.
type losingStream struct {
	form           *strings.Replacer
	lists, watches atomic.Int32
}

func (s *losingStream) answer(w http.ResponseWriter, r *http.Request) {
	as := func(body string) string {
		if s.form == nil {
			return body
		}
		return s.form.Replace(body)
	}
	query := r.URL.Query()
	switch {
	case query.Get("limit") == "1": // a comparison of versions
		stubserver.JSON(as(`{"apiVersion":"example.com/v1","items":[],"kind":"WidgetList","metadata":{"resourceVersion":"11"}}`))(w, r)
	case query.Get("watch") == "":
		s.lists.Add(1)
		stubserver.JSON(as(stubserver.WidgetList(widgetJSON("a", 8, "{}"))))(w, r)
	case s.watches.Add(1) == 1:
		stubserver.Break(as(stubserver.Event("ADDED", widgetJSON("b", 10, "{}"))))(w, r)
	default:
		stubserver.Hang(as(stubserver.Event("MODIFIED", widgetJSON("a", 11, "{}"))))(w, r)
	}
}

// Load balancers reset streams. That is no error of the data, and no event is lost: no list follows.
func TestLease_AWatchFollowsALostStream(t *testing.T) {
	type row struct {
		objectForm
		factory string
	}
	rows := map[string]row{"client-go's client": {objectForms["unstructured"], "New"}}
	for name, form := range objectForms {
		rows[name] = row{form, "NewForConfig"}
	}
	for name, of := range rows {
		t.Run(name, func(t *testing.T) {
			s, server := stubserver.NewTLS(t), &losingStream{form: of.replacer}
			s.Prepare(server.answer)
			f := factoriesOf[of.factory](t, s.RESTConfig())
			t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
			f.Start(t.Context())
			lease, events := of.acquire(t, f, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever)), &awaited{news: make(chan struct{}, 1)}
			if _, err := lease.AddEventHandler(events); err != nil {
				t.Fatal(err)
			}
			events.await(t, "add a 8", "add b 10", "update a 11")
			got := awaitStatus(t, lease, "the second watch", func(i status.Informer) bool { return i.Traffic.Watches == 2 })
			if diff := cmp.Diff(map[status.Reason]uint64{status.ReasonUnavailable: 1}, got.Traffic.Failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if n := server.lists.Load(); n != 1 {
				t.Errorf("%d lists", n)
			}
			if query := s.Arrivals()[2].Query; !strings.Contains(query, "resourceVersion=10&") {
				t.Errorf("the second watch is %s", query)
			}
		})
	}
}

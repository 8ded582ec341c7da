package dynamicinformer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// The informer says why, also if it is of a Go type or of metadata.
func TestLease_AResponseOfAnotherKindCannotBeDecoded(t *testing.T) {
	s := stubserver.New(t)
	for name, row := range map[string]struct {
		list, watch stubserver.Reply
		text        string // of each error
	}{
		"HTML":                            {list: stubserver.Respond(200, "text/html", "<html>"), text: "text/html"},
		"a list that is said to be HTML":  {list: stubserver.Respond(200, "text/html", stubserver.WidgetList(stubserver.SimilarWidget(1))), text: "text/html"},
		"HTML that is said to be JSON":    {list: stubserver.JSON("<html>"), text: "invalid character '<'"},
		"a part of a list":                {list: stubserver.JSON(`{"kind":"WidgetList","items":[{`), text: "unexpected end of JSON input"},
		"nothing":                         {list: stubserver.JSON(""), text: ""},
		"an object":                       {list: stubserver.JSON(stubserver.SimilarWidget(1)), text: "the server sent a Widget"},
		"a list with metadata of numbers": {list: stubserver.JSON(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":7,"items":7}`), text: "cannot unmarshal number"},
		"HTML for a watch":                {watch: stubserver.Respond(200, "text/html", "<html>"), text: "text/html"},
		"HTML for events":                 {watch: stubserver.JSON("<html>"), text: "invalid character '<'"},
	} {
		for form, acquires := range objectForms {
			t.Run(name+"/"+form, func(t *testing.T) {
				s.Prepare(leaking(row.list, row.watch))
				f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
				f.Start(t.Context())
				lease := acquires.acquire(t, f, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
				got := awaitStatus(t, lease, "the request fails", func(i status.Informer) bool { return i.Err != nil })
				if got.Reason != status.ReasonDecodeFailed || !strings.Contains(got.Err.Error(), row.text) {
					t.Errorf("%s: %v", got.Reason, got.Err)
				}
			})
		}
	}
}

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
func TestLease_AResponseThatIsNoListCannotBeDecoded(t *testing.T) {
	s := stubserver.New(t)
	for name, row := range map[string]struct {
		list stubserver.Reply
		text string // of each error
	}{
		"HTML":                            {stubserver.Respond(200, "text/html", "<html>"), "text/html"},
		"a list that is said to be HTML":  {stubserver.Respond(200, "text/html", stubserver.WidgetList(stubserver.SimilarWidget(1))), "text/html"},
		"HTML that is said to be JSON":    {stubserver.JSON("<html>"), "invalid character '<'"},
		"a part of a list":                {stubserver.JSON(`{"kind":"WidgetList","items":[{`), "unexpected end of JSON input"},
		"nothing":                         {stubserver.JSON(""), ""},
		"an object":                       {stubserver.JSON(stubserver.SimilarWidget(1)), "the server sent a Widget"},
		"a list with metadata of numbers": {stubserver.JSON(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":7,"items":7}`), "cannot unmarshal number"},
	} {
		for form, acquires := range objectForms {
			t.Run(name+"/"+form, func(t *testing.T) {
				s.Prepare(leaking(row.list, nil))
				f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
				f.Start(t.Context())
				lease := acquires.acquire(t, f, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
				got := awaitStatus(t, lease, "the list fails", func(i status.Informer) bool { return i.Err != nil })
				if got.Reason != status.ReasonDecodeFailed || !strings.Contains(got.Err.Error(), row.text) {
					t.Errorf("%s: %v", got.Reason, got.Err)
				}
			})
		}
	}
}

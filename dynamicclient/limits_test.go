package dynamicclient_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// maxEvent is the length of the longest event that client-go takes.
const maxEvent = 16 << 20

// What stands around the data of a long event.
const longBefore, longAfter = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Blob","data":"`, `"}}`

// longEvent returns an event of length bytes.
func longEvent(length int) string {
	return longBefore + strings.Repeat("a", length-len(longBefore+longAfter)) + longAfter
}

// summary returns the kind of each event of a watch, with the length of its data
// and the message of its Status.
func summary(ctx context.Context, c dynamic.Interface) (any, error) {
	events, err := watchToEnd(metav1.ListOptions{})(ctx, c)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, event := range events.([]watch.Event) {
		text := string(event.Type)
		switch object := event.Object.(type) {
		case *unstructured.Unstructured:
			data, _ := object.Object["data"].(string)
			text += fmt.Sprint(" ", len(data))
		case *metav1.Status:
			text += " " + object.Message
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// tooLarge is what client-go says of a longer one. To see it say so takes a second.
var tooLarge = fmt.Sprintf(`ERROR an error on the server ("unable to decode an event from the watch stream: %v") has prevented the request from succeeding`, streaming.ErrObjectTooLarge)

// canned is a transport that answers by itself, at once.
type canned string

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(c))), Request: r,
	}, nil
}

func TestClient_TakesEventsAsLongAsClientGo(t *testing.T) {
	small := stubserver.Event("ADDED", widgetB)
	s := serve(t)
	row := func(length int) exchange {
		answer := canned(small + longEvent(length) + "\n" + small)
		return exchange{config: func(cfg *rest.Config) { cfg.Transport = answer }, call: summary}
	}
	longest := s.outcome(t, row(maxEvent), made()).Value
	if diff := cmp.Diff([]string{"ADDED 0", fmt.Sprint("ADDED ", maxEvent-len(longBefore+longAfter)), "ADDED 0"}, longest); diff != "" {
		t.Errorf("%d bytes (-want +got):\n%s", maxEvent, diff)
	}
	longer := s.outcome(t, row(maxEvent+1), made()).Value
	if diff := cmp.Diff(any([]string{"ADDED 0", tooLarge}), longer); diff != "" {
		t.Errorf("%d bytes (-want +got):\n%s", maxEvent+1, diff)
	}
}

// endless sends begin and then piece for as long as anyone takes it.
func endless(begin, piece string) stubserver.Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		stubserver.SetContentType(w, "application/json")
		fmt.Fprint(w, begin)
		const enough = 128 << 20 // for a client that takes everything
		piece := strings.Repeat(piece, 1<<20/len(piece))
		for sent := 0; sent < enough && r.Context().Err() == nil; sent += len(piece) {
			fmt.Fprint(w, piece)
		}
	}
}

// client-go reads what does not end until there is no memory left, except for what
// is nested too deeply.
func TestClient_EndlessEventIsTooLarge(t *testing.T) {
	const begin = `{"type":"ADDED","object":`
	for name, tc := range map[string]struct{ begin, piece, want string }{
		"plain":      {begin + `{"list":[`, `{"data":"aaaaaaaa\""},`, tooLarge},
		"unusual":    {"{\n" + begin[1:] + `{"list":[`, `{"data":"aaaaaaaa\""},`, tooLarge},
		"no object":  {`"`, `aaaaaaaa`, tooLarge},
		"ever depth": {begin, `{"data":"aaaaaaaa\"","list":[`, strings.Replace(tooLarge, "object to decode was longer than maximum allowed size", "invalid character '[' exceeded max depth", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			row := exchange{replies: []stubserver.Reply{endless(stubserver.Event("ADDED", widgetB)+tc.begin, tc.piece)}, call: summary}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := s.outcome(t, row, made()).Value
			runtime.ReadMemStats(&after)
			if diff := cmp.Diff(any([]string{"ADDED 0", tc.want}), got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 150<<20 {
				t.Errorf("it took %d MB to find out", allocated>>20)
			}
		})
	}
}

package dynamicclient_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

func TestClient_WatchesAsClientGo(t *testing.T) {
	const table = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"rows":[{"cells":["a"],"object":` + widgetB + `}]}`
	added, modified := stubserver.Event("ADDED", widgetA), stubserver.Event("MODIFIED", widgetA)
	line := strings.TrimSpace(added)
	opts := metav1.ListOptions{
		LabelSelector: "x=y", ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: new(int64(5)),
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	all := watchToEnd(metav1.ListOptions{})
	serve(t).checkAll(t, []exchange{
		{name: "no events", replies: []stubserver.Reply{stubserver.Stream("")}, call: all},
		{name: "options", replies: []stubserver.Reply{stubserver.Stream(added)}, call: watchToEnd(opts)},
		{name: "all kinds", replies: []stubserver.Reply{stubserver.Stream(added, modified, stubserver.Event("DELETED", widgetB), stubserver.Event("BOOKMARK", stubserver.Bookmark), stubserver.Event("ERROR", expired))}, call: all},
		{name: "bookmark that ends the initial events", replies: []stubserver.Reply{stubserver.Stream(added, stubserver.Event("BOOKMARK", stubserver.Bookmark), modified)}, call: all},
		{name: "a Status that is no error", replies: []stubserver.Reply{stubserver.Stream(added, stubserver.Event("MODIFIED", success), modified)}, call: all},
		{name: "events after an error", replies: []stubserver.Reply{stubserver.Stream(added, stubserver.Event("ERROR", expired), modified)}, call: all},
		{name: "an error that is an object", replies: []stubserver.Reply{stubserver.Stream(stubserver.Event("ERROR", widgetA))}, call: all},
		{name: "tables", replies: []stubserver.Reply{stubserver.Stream(stubserver.Event("ADDED", table), stubserver.Event("MODIFIED", table))}, call: all},
		{name: "lists", replies: []stubserver.Reply{stubserver.Stream(stubserver.Event("ADDED", stubserver.WidgetList(widgetB)), added)}, call: all},
		{name: "indented", replies: []stubserver.Reply{stubserver.Stream(indented(t, added)+"\n", indented(t, modified), indented(t, stubserver.Event("ERROR", expired)))}, call: all},
		{name: "indented, after events that are not", replies: []stubserver.Reply{stubserver.Stream(added, modified, indented(t, modified), added)}, call: all},
		{name: "without newlines", replies: []stubserver.Reply{stubserver.Stream(line, line, line)}, call: all},
		{name: "several in a line", replies: []stubserver.Reply{stubserver.Stream(line+line+" "+line+"\n", line+line)}, call: all},
		{name: "newlines without events", replies: []stubserver.Reply{stubserver.Stream("\n\n", added, "\r\n \t\n", modified, "\n")}, call: all},
		{name: "in single bytes", replies: []stubserver.Reply{stubserver.Stream(strings.Split(stubserver.Event("ADDED", widgetB)+added, "")...)}, call: all},
		{name: "members the other way round", replies: []stubserver.Reply{stubserver.Stream(`{"object":`+widgetA+`,"type":"ADDED"}`+"\n", added)}, call: all},
		{name: "many", replies: []stubserver.Reply{stubserver.Stream(manyEvents(500))}, call: all},
		{name: "the stream breaks between events", replies: []stubserver.Reply{stubserver.Break(added)}, call: all},
		{name: "the stream breaks in an event", replies: []stubserver.Reply{stubserver.Break(added + modified[:200])}, call: all},
		{name: "created instead of OK", replies: []stubserver.Reply{stubserver.Respond(201, "application/json", added)}, call: all, fails: "got status: 201"},
		{name: "gone", replies: []stubserver.Reply{stubserver.Respond(410, "application/json", expired)}, call: all, fails: "too old resource version"},
		{name: "a namespace that is a path", call: func(ctx context.Context, c dynamic.Interface) (any, error) {
			return c.Resource(widgets).Namespace("a/b").Watch(ctx, metav1.ListOptions{})
		}, fails: "invalid namespace"},
	})
}

// manyEvents returns the events of a busy stream, of several sizes.
func manyEvents(count int) string {
	var b strings.Builder
	for i := range count {
		name := fmt.Sprintf(`"name":"w%d"`, i)
		b.WriteString(stubserver.Event([]string{"ADDED", "MODIFIED"}[i%2], strings.Replace([]string{widgetA, widgetB, stubserver.Bookmark}[i%3], `"name":"a"`, name, 1)))
	}
	return b.String()
}

func TestClient_EventArrivesBeforeTheStreamGoesOn(t *testing.T) {
	line := strings.TrimSpace(stubserver.Event("ADDED", widgetA))
	for name, event := range map[string]string{
		"with a newline":     line + "\n",
		"without a newline":  line,
		"indented":           indented(t, line),
		"of an unusual kind": stubserver.Event("ADDED", success),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.Prepare(stubserver.Hang(event))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // if it does not
			defer cancel()
			client, err := dynamicclient.New(s.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}
			w, err := widgetsOf(client).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if got := <-w.ResultChan(); got.Type != watch.Added || ctx.Err() != nil {
				t.Errorf("the first event is %v, context: %v", got, ctx.Err())
			}
		})
	}
}

func TestClient_WatchesOfOneClientDoNotMix(t *testing.T) {
	const streams = 8
	s := serve(t)
	s.Prepare(func(w http.ResponseWriter, r *http.Request) {
		namespace := strings.Split(r.URL.Path, "/")[5]
		body := strings.ReplaceAll(manyEvents(100), `"namespace":"ns"`, `"namespace":"`+namespace+`"`)
		stubserver.Stream(body)(w, r)
	})
	client, err := dynamicclient.New(s.RESTConfig(), dynamicclient.WithSharing())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan map[string]int)
	for i := range streams {
		go func() { got <- namespacesOf(t, client, fmt.Sprint("n", i)) }()
	}
	all := map[string]int{}
	for range streams {
		for namespace, count := range <-got {
			all[namespace] += count
		}
	}
	want := map[string]int{}
	for i := range streams {
		want[fmt.Sprintf("n%d in n%d", i, i)] = 67
		want[fmt.Sprintf(" in n%d", i)] = 33
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("events by namespace and stream (-want +got):\n%s", diff)
	}
}

// namespacesOf counts the events of a watch on namespace by the namespaces of their
// objects.
func namespacesOf(t *testing.T, client dynamic.Interface, namespace string) map[string]int {
	t.Helper()
	w, err := client.Resource(widgets).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	defer w.Stop()
	counts := map[string]int{}
	for _, event := range drained(w) {
		object := event.Object.(*unstructured.Unstructured)
		counts[object.GetNamespace()+" in "+namespace]++
	}
	return counts
}

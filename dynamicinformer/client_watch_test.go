package dynamicinformer_test

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

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

func TestClient_WatchesAsClientGo(t *testing.T) {
	const table = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"rows":[{"cells":["a"],"object":` + widgetB + `}]}`
	added, modified := eventOf("ADDED", widgetA), eventOf("MODIFIED", widgetA)
	line := strings.TrimSpace(added)
	opts := metav1.ListOptions{
		LabelSelector: "x=y", ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: new(int64(5)),
		SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	all := watchToEnd(metav1.ListOptions{})
	serve(t).checkAll(t, []exchange{
		{name: "no events", replies: []reply{stream("")}, call: all},
		{name: "options", replies: []reply{stream(added)}, call: watchToEnd(opts)},
		{name: "all kinds", replies: []reply{stream(added, modified, eventOf("DELETED", widgetB), eventOf("BOOKMARK", bookmark), eventOf("ERROR", expired))}, call: all},
		{name: "bookmark that ends the initial events", replies: []reply{stream(added, eventOf("BOOKMARK", bookmark), modified)}, call: all},
		{name: "a Status that is no error", replies: []reply{stream(added, eventOf("MODIFIED", success), modified)}, call: all},
		{name: "events after an error", replies: []reply{stream(added, eventOf("ERROR", expired), modified)}, call: all},
		{name: "an error that is an object", replies: []reply{stream(eventOf("ERROR", widgetA))}, call: all},
		{name: "tables", replies: []reply{stream(eventOf("ADDED", table), eventOf("MODIFIED", table))}, call: all},
		{name: "lists", replies: []reply{stream(eventOf("ADDED", widgetList(widgetB)), added)}, call: all},
		{name: "indented", replies: []reply{stream(indented(t, added)+"\n", indented(t, modified), indented(t, eventOf("ERROR", expired)))}, call: all},
		{name: "indented, after events that are not", replies: []reply{stream(added, modified, indented(t, modified), added)}, call: all},
		{name: "without newlines", replies: []reply{stream(line, line, line)}, call: all},
		{name: "several in a line", replies: []reply{stream(line+line+" "+line+"\n", line+line)}, call: all},
		{name: "newlines without events", replies: []reply{stream("\n\n", added, "\r\n \t\n", modified, "\n")}, call: all},
		{name: "in single bytes", replies: []reply{stream(strings.Split(eventOf("ADDED", widgetB)+added, "")...)}, call: all},
		{name: "members the other way round", replies: []reply{stream(`{"object":`+widgetA+`,"type":"ADDED"}`+"\n", added)}, call: all},
		{name: "many", replies: []reply{stream(manyEvents(500))}, call: all},
		{name: "the stream breaks between events", replies: []reply{broken(added)}, call: all},
		{name: "the stream breaks in an event", replies: []reply{broken(added + modified[:200])}, call: all},
		{name: "created instead of OK", replies: []reply{respond(201, "application/json", added)}, call: all, fails: "got status: 201"},
		{name: "gone", replies: []reply{respond(410, "application/json", expired)}, call: all, fails: "too old resource version"},
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
		b.WriteString(eventOf([]string{"ADDED", "MODIFIED"}[i%2], strings.Replace([]string{widgetA, widgetB, bookmark}[i%3], `"name":"a"`, name, 1)))
	}
	return b.String()
}

func TestClient_EventArrivesBeforeTheStreamGoesOn(t *testing.T) {
	line := strings.TrimSpace(eventOf("ADDED", widgetA))
	for name, event := range map[string]string{
		"with a newline":     line + "\n",
		"without a newline":  line,
		"indented":           indented(t, line),
		"of an unusual kind": eventOf("ADDED", success),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.prepare(hang(event))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // if it does not
			defer cancel()
			client, err := dynamicinformer.NewClient(s.config())
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
	s.prepare(func(w http.ResponseWriter, r *http.Request) {
		namespace := strings.Split(r.URL.Path, "/")[5]
		body := strings.ReplaceAll(manyEvents(100), `"namespace":"ns"`, `"namespace":"`+namespace+`"`)
		stream(body)(w, r)
	})
	client, err := dynamicinformer.NewClient(s.config(), dynamicinformer.WithSharing())
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

package dynamicinformer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// cluster is an API server for informers. It has similar objects of each resource, and sends an
// update of each when updates is closed.
type cluster struct {
	*stubserver.Server
	listed  bool // watch-lists are rejected, so that informers list
	updates chan struct{}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Server: stubserver.New(t), updates: make(chan struct{})}
	c.Prepare(c.answer)
	return c
}

// updatedWidget is similarWidget after its update.
func updatedWidget(i int) string {
	return strings.NewReplacer(`"replicas":3`, `"replicas":4`, fmt.Sprintf(`"resourceVersion":"%d"`, i+1), fmt.Sprintf(`"resourceVersion":"%d"`, i+101)).Replace(stubserver.SimilarWidget(i))
}

func (c *cluster) answer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case query.Get("watch") == "":
		stubserver.JSON(stubserver.WidgetList(stubserver.SimilarWidgets()...))(w, r)
	case query.Get("sendInitialEvents") == "":
		c.streamOn("", w, r)
	case c.listed:
		stubserver.Respond(http.StatusUnprocessableEntity, "application/json", stubserver.Refusal(422, "Invalid"))(w, r)
	default:
		c.streamOn(frames("ADDED", stubserver.SimilarWidgets())+stubserver.Event("BOOKMARK", stubserver.Bookmark), w, r)
	}
}

// streamOn streams begin, and the updates when they are due.
func (c *cluster) streamOn(begin string, w http.ResponseWriter, r *http.Request) {
	stubserver.SetContentType(w, "application/json")
	fmt.Fprint(w, begin)
	w.(http.Flusher).Flush()
	select {
	case <-c.updates:
		var updated []string
		for i := range stubserver.Similar {
			updated = append(updated, updatedWidget(i))
		}
		stubserver.Hang(frames("MODIFIED", updated))(w, r)
	case <-r.Context().Done():
	}
}

func frames(kind string, objects []string) string {
	var b strings.Builder
	for _, object := range objects {
		b.WriteString(stubserver.Event(kind, object))
	}
	return b.String()
}

func (c *cluster) factory(t *testing.T, opts ...dynamicinformer.Option) *dynamicinformer.Factory {
	t.Helper()
	f, err := dynamicinformer.NewForConfig(c.RESTConfig(), append([]dynamicinformer.Option{dynamicinformer.WithDiscovery(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// run runs the informers on gvrs until every object has been updated.
func (c *cluster) run(t *testing.T, f *dynamicinformer.Factory, gvrs ...schema.GroupVersionResource) {
	t.Helper()
	updated := make(chan struct{}, 2*stubserver.Similar)
	for _, gvr := range gvrs {
		handler := cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { updated <- struct{}{} }}
		if _, err := f.ForResource(gvr).Informer().AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	f.Start(t.Context())
	c.sync(t, f)
	close(c.updates)
	late := time.After(30 * time.Second)
	for i := range stubserver.Similar * len(gvrs) {
		select {
		case <-updated:
		case <-late:
			t.Fatalf("%d of %d updates have arrived", i, stubserver.Similar*len(gvrs))
		}
	}
}

func (c *cluster) sync(t *testing.T, f *dynamicinformer.Factory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
}

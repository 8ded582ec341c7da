package dynamicinformer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// watchBlocks is the program of the README.
func watchBlocks(ctx context.Context, cfg *rest.Config) error {
	factory, err := dynamicinformer.NewForConfig(cfg)
	if err != nil {
		return err
	}
	blocks := factory.ForResource(schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"})
	show := func(obj any) { fmt.Println(obj.(*unstructured.Unstructured).GetName()) } // read-only
	shown, err := blocks.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: show})
	if err != nil {
		return err
	}
	factory.Start(ctx)
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := factory.WaitForSync(wait); err != nil {
		return err // which resource, which request, since when, and what to do; the informers run until ctx ends
	}
	<-shown.HasSyncedChecker().Done() // the handler has had every listed object
	all, err := blocks.Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	fmt.Println("blocks:", len(all))
	return factory.Shutdown(ctx) // waits for all goroutines of the factory
}

// The program of the README, on a server that has one block.
func Example() {
	server := httptest.NewServer(oneBlock())
	defer server.Close()
	if err := watchBlocks(context.Background(), &rest.Config{Host: server.URL}); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// 10-0-0-0-26
	// blocks: 1
}

// oneBlock serves what an informer asks an API server for, and one block.
func oneBlock() http.Handler {
	const path = "/apis/crd.projectcalico.org/v1"
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, answer(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"crd.projectcalico.org/v1",
		"resources":[{"name":"ipamblocks","kind":"IPAMBlock","verbs":["list","watch"]}]}`))
	mux.HandleFunc("GET "+path+"/ipamblocks", func(w http.ResponseWriter, r *http.Request) {
		answer(`{"type":"ADDED","object":{"kind":"IPAMBlock","apiVersion":"crd.projectcalico.org/v1","metadata":{"name":"10-0-0-0-26","resourceVersion":"1"}}}
			{"type":"BOOKMARK","object":{"kind":"IPAMBlock","apiVersion":"crd.projectcalico.org/v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	return mux
}

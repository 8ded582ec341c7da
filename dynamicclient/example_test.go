package dynamicclient_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
)

// A client that leaves out managedFields while it decodes.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { // instead of an API server
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "example.com/v1", "kind": "GadgetList", "metadata": {"resourceVersion": "7"}, "items": [
			{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}}]}`)
	}))
	defer server.Close()

	client, err := dynamicclient.New(&rest.Config{Host: server.URL}, dynamicclient.WithoutManagedFields())
	if err != nil {
		log.Fatal(err)
	}
	gadgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	list, err := client.Resource(gadgets).Namespace("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, gadget := range list.Items {
		fmt.Println(gadget.GetKind(), gadget.GetName(), len(gadget.GetManagedFields()))
	}
	// Output: Gadget a 0
}

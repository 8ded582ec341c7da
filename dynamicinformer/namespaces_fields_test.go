package dynamicinformer_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// Client options leave fields out of cached objects, but not those of Namespace objects that informers read: labels and the deletionTimestamp.
// For these, Namespace objects are requested as metadata.
func TestNamespaces_KeepTheFieldsThatInformersRead(t *testing.T) {
	s := stubserver.New(t)
	var asMetadata atomic.Bool
	s.Prepare(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "": // the Namespace objects
			kind := `"apiVersion":"v1","kind":"Namespace"`
			asMetadata.Store(strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"))
			if asMetadata.Load() {
				kind = `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"`
			}
			stubserver.Hang(stubserver.Event("ADDED", `{`+kind+`,"metadata":{"name":"ns","uid":"u","resourceVersion":"3","labels":{"team":"red"},"deletionTimestamp":"2026-01-02T03:04:05Z"}}`)+
				stubserver.Event("BOOKMARK", `{`+kind+`,"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`))(w, r)
		case r.URL.Query().Get("watch") != "":
			stubserver.Hang(" ")(w, r)
		default:
			stubserver.JSON(stubserver.WidgetList(stubserver.SimilarWidget(1)))(w, r)
		}
	})
	without := dynamicclient.WithoutFields
	for name, tc := range map[string]struct {
		option   dynamicclient.Option
		metadata bool
	}{
		"only spec":                         {dynamicclient.WithOnlyFields("spec"), true},
		"only labels":                       {dynamicclient.WithOnlyFields("metadata", "labels"), true},
		"no metadata":                       {without("metadata"), true},
		"no deletionTimestamp":              {without("metadata", "deletionTimestamp"), true},
		"not one label":                     {without("metadata", "labels", "team"), true},
		"no labels":                         {without("metadata", "labels"), true},
		"no managed fields":                 {dynamicclient.WithoutManagedFields(), false},
		"only metadata, no spec, no status": {dynamicclient.WithOnlyFields("metadata"), false},
	} {
		for form, opts := range map[string][]dynamicinformer.LeaseOption{
			"unstructured": nil,
			"packed":       {dynamicinformer.WithPackedCache()},
			"metadata":     {dynamicinformer.WithMetadataOnly()},
		} {
			f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever),
				dynamicinformer.WithClientOptions(tc.option))
			if err != nil {
				t.Fatal(err)
			}
			f.Start(t.Context())
			lease, err := f.Acquire(t.Context(), widgets, append(opts, dynamicinformer.WithNamespaceSelector("team=red"))...)
			if err != nil {
				t.Fatal(err)
			}
			got := awaitStatus(t, lease, "the cache has the objects of a namespace", func(i status.Informer) bool { return i.State == status.StateSynced && len(i.Namespaces) == 1 })
			if !got.Namespaces[0].Terminating {
				t.Errorf("%s, %s: the namespace is not terminating: %+v", name, form, got.Namespaces)
			}
			if is := asMetadata.Load(); is != (tc.metadata || form == "metadata") {
				t.Errorf("%s, %s: requested as metadata: %t", name, form, is)
			}
			shutdown(t, f)
		}
	}
}

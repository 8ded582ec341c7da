package inprocess

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/discovery"
)

// rootDiscovery serves GET /apis in both formats. The CRD server has the list of groups, but
// does not serve it: in kube-apiserver, the aggregator does.
func rootDiscovery(groups aggregated.ResourceManager) http.Handler {
	return aggregated.WrapAggregatedDiscoveryToHandler(legacyGroups(groups), groups, nil)
}

// legacyGroups responds with an APIGroupList. It makes the list from the aggregated format:
// the manager has only an HTTP handler for that format.
func legacyGroups(groups aggregated.ResourceManager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		aggregatedReq := req.Clone(req.Context())
		aggregatedReq.Header.Set("Accept", discovery.AcceptV2)
		aggregatedReq.Header.Del("If-None-Match") // it is an ETag of the legacy format
		response := httptest.NewRecorder()
		groups.ServeHTTP(response, aggregatedReq)

		var all apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(response.Body.Bytes(), &all); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		list, _, _ := discovery.SplitGroupsAndResources(all)
		list.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		body, err := json.Marshal(list)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // an error means that the client has disconnected
	})
}

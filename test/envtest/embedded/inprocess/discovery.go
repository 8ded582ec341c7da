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

// rootDiscovery serves GET /apis in both formats. The CRD server keeps the list of
// groups, but kube-apiserver's aggregator is what serves it.
func rootDiscovery(groups aggregated.ResourceManager) http.Handler {
	return aggregated.WrapAggregatedDiscoveryToHandler(legacyGroups(groups), groups, nil)
}

// legacyGroups answers with an APIGroupList. The manager has one way out, its
// HTTP handler for the aggregated format, so the list is made from that.
func legacyGroups(groups aggregated.ResourceManager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ask := req.Clone(req.Context())
		ask.Header.Set("Accept", discovery.AcceptV2)
		ask.Header.Del("If-None-Match") // it is the ETag of the other format
		answer := httptest.NewRecorder()
		groups.ServeHTTP(answer, ask)

		var all apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
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

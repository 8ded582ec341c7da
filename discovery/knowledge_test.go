package discovery

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nodes is a resource of an aggregated API.
var nodes = Resource{GVR: schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}}

func metricsDoc() *document {
	return &document{named: root{groups: []groupDoc{{name: nodes.GVR.Group, versions: []versionDoc{
		{name: nodes.GVR.Version, resources: []Resource{nodes}},
	}}}}}
}

func metricsAPI() *apiService {
	item := &apiService{}
	item.Metadata.Name = "v1beta1.metrics.k8s.io"
	item.Spec.Group, item.Spec.Version = nodes.GVR.Group, nodes.GVR.Version
	item.Spec.Service = &struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}{"kube-system", "metrics-server"}
	return item
}

// An APIService that is written anew is gone for a moment, and a document of that
// moment may come late.
func TestKnowledge_AnAPIServiceThatIsBackHasNotGone(t *testing.T) {
	for name, back := range map[string]bool{"back": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			k := knowledge{apisRule: true, apisCurrent: true, doubtFor: time.Hour}
			now := time.Now()
			k.learnAPIs([]*apiService{metricsAPI()})
			k.learn(metricsDoc(), now)
			before := k.catalogue(nil, now)
			k.forgetAPI(metricsAPI())
			if back {
				k.learnAPI(metricsAPI())
			}
			k.learn(&document{}, now)
			c := k.catalogue(before, now)
			if _, served := c.index().byGVR[nodes.GVR]; served != back {
				t.Errorf("served = %v, want %v", served, back)
			}
		})
	}
}

package discovery

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
			if served := c.served(nodes.GVR) != nil; served != back {
				t.Errorf("served = %v, want %v", served, back)
			}
		})
	}
}

// gadgetCRD is an established CRD.
func gadgetCRD(uid types.UID) *crd {
	item := &crd{}
	item.Metadata.Name, item.Metadata.UID = "gadgets.example.org", uid
	item.Spec.Group, item.Spec.Names.Plural = "example.org", "gadgets"
	item.Spec.Versions = []crdVersion{{Name: "v1", Served: true}}
	item.Status.Conditions = []condition{{Type: established, Status: "True"}}
	return item
}

// News of the one before may come late.
func TestKnowledge_TheEndOfAnotherCRDIsNoNews(t *testing.T) {
	k := knowledge{crdsRule: true, crdsCurrent: true}
	now := time.Now()
	k.learnCRD(gadgetCRD("2"), now)
	if k.forgetCRD(gadgetCRD("1"), now) || k.crds["gadgets.example.org"] == nil {
		t.Error("the end of CRD 1 ended CRD 2")
	}
	if !k.forgetCRD(gadgetCRD("2"), now) {
		t.Error("its own end did not")
	}
}

// Nobody has to see the end of the one before.
func TestKnowledge_AnotherUIDIsTheEndOfTheCRDBefore(t *testing.T) {
	k := knowledge{crdsRule: true, crdsCurrent: true}
	now := time.Now()
	k.learnCRD(gadgetCRD("1"), now)
	fresh := gadgetCRD("2")
	fresh.Status.Conditions = nil
	k.learnCRD(fresh, now)
	if got := k.gone[fresh.groupResource()].CRDUID; got != "1" {
		t.Errorf("gone is CRD %q, want 1", got)
	}
	k.learnCRD(gadgetCRD("2"), now)
	if _, gone := k.gone[fresh.groupResource()]; gone {
		t.Error("it is mourned after the new one was established")
	}
}

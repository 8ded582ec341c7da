package dynamicinformer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// staleDocuments is a transport to a cluster whose group is stale in the discovery document, and whose group version lists the type ships,
// as long as they stay as they are.
type staleDocuments struct {
	*crdCluster
	stay atomic.Bool
}

func (s *staleDocuments) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := s.crdCluster.RoundTrip(req)
	if err != nil || !s.stay.Load() {
		return res, err
	}
	switch req.URL.Path {
	case "/apis":
		var list map[string]any
		body, err := io.ReadAll(res.Body)
		if err != nil || json.Unmarshal(body, &list) != nil {
			panic(err)
		}
		version := map[string]any{"version": "v1", "freshness": "Stale"}
		list["items"] = append(list["items"].([]any)[:1], map[string]any{"metadata": map[string]any{"name": "things.example.com"}, "versions": []any{version}})
		return answerAs(req, http.StatusOK, res.Header.Get("Content-Type"), list), nil
	case "/apis/things.example.com/v1":
		ship := map[string]any{"name": "ships", "singularName": "oneships", "kind": "Ships", "namespaced": true, "verbs": []string{"list", "watch"}}
		return answerAs(req, http.StatusOK, "application/json", map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "things.example.com/v1", "resources": []any{ship},
		}), nil
	}
	return res, nil
}

// The informer has the event that its CRD was deleted. Its objects are gone at once, and also if it sends no request that could show that the
// type does not exist.
func TestType_ADocumentOlderThanTheEndOfATypeDoesNotBringItBack(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces []string
		events     []string
	}{
		"in some namespaces": {[]string{"a", "b"}, []string{"add a/x", "delete a/x"}},
		"in no namespace":    {nil, []string{"add a/x", "move a/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &staleDocuments{crdCluster: newCRDCluster()}
				cluster.define("ships")
				cluster.define("boats")
				create(t, cluster, kindOf("ships"), "a", "x")
				resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://cluster.invalid"}, &http.Client{Transport: cluster})
				if err != nil {
					t.Fatal(err)
				}
				f := newFactory(t, cluster.Cluster, dynamicinformer.WithDiscovery(resolver))
				f.Start(t.Context())
				l := acquire(t, f, kindOf("ships"), dynamicinformer.WithNamespaces("a", "b"))
				events := listen(t, l.Informer())
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				cluster.stay.Store(true)
				cluster.change("boats", label("blue")) // documents are requested
				if err := l.SetNamespaces(tc.namespaces...); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				cluster.undefine("ships")
				check := func(when string, reasons ...status.Reason) {
					t.Helper()
					if at := l.Status(); at.State != status.StateNotServed || !slices.Contains(reasons, at.Reason) || at.Objects != 0 {
						t.Errorf("%s, the status: %+v", when, at)
					}
				}
				time.Sleep(time.Second)
				check("while the documents stay", status.ReasonNotFound, status.ReasonDiscoveryFailed)
				time.Sleep(30 * time.Second)
				check("half a minute later", status.ReasonNotFound, status.ReasonDiscoveryFailed)
				cluster.stay.Store(false)
				time.Sleep(time.Minute)
				check("later", status.ReasonNotFound)
				if diff := cmp.Diff(tc.events, events.take()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if err := l.SetNamespaces("a"); err != nil {
					t.Fatal(err)
				}
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "a", "y")
				time.Sleep(time.Minute)
				if diff := cmp.Diff([]string{"add a/y"}, events.take()); diff != "" {
					t.Errorf("after its return (-want +got):\n%s", diff)
				}
				shutdown(t, f)
			})
		})
	}
}

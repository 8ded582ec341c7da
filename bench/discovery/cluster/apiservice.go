package cluster

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiServiceName returns the name of the APIService of gv.
func apiServiceName(gv schema.GroupVersion) string {
	return strings.TrimSuffix(gv.Version+"."+gv.Group, ".")
}

// apiService returns the APIService by which a group version is served.
func apiService(gv schema.GroupVersion, custom bool, version string) map[string]any {
	seed := fnv.New64()
	_, _ = seed.Write([]byte(gv.String())) // it never fails
	random := rand.New(rand.NewPCG(2, seed.Sum64()))
	metadata := map[string]any{"name": apiServiceName(gv), "uid": uid(random), "resourceVersion": version, "creationTimestamp": created}
	spec := map[string]any{"version": gv.Version, "groupPriorityMinimum": 1000, "versionPriority": 100}
	if gv.Group != "" {
		spec["group"] = gv.Group
	}
	reason := "Local"
	switch {
	case gv.Group == aggregated:
		spec["service"] = map[string]any{"namespace": "kube-system", "name": "metrics-server", "port": 443}
		reason = "Passed"
	case custom:
		metadata["labels"] = map[string]any{"kube-aggregator.kubernetes.io/automanaged": "true"}
	default:
		metadata["labels"] = map[string]any{"kube-aggregator.kubernetes.io/automanaged": "onstart"}
	}
	return map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec,
		"status": map[string]any{"conditions": []any{condition("Available", reason, "it is there")}},
	}
}

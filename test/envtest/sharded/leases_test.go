package sharded_test

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/sharding"
)

// checkTable requests the table that kubectl get leases prints. kube-apiserver's has the holders, a CRD's only the names.
func (g *group) checkTable(cfg *rest.Config, holders bool) {
	g.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		g.Fatal(err)
	}
	raw, err := client.CoordinationV1().RESTClient().Get().Namespace("default").Resource("leases").
		Param("labelSelector", sharding.GroupLabel+"="+g.name).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		g.Fatal(err)
	}
	var want, got []string
	for _, p := range g.running() {
		want = append(want, p.name)
	}
	holder := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Holder" })
	if holder < 0 {
		if holders || len(table.Rows) != len(want) {
			g.Errorf("kubectl get leases prints %d rows without holders: %s", len(table.Rows), raw)
		}
		return
	}
	for _, row := range table.Rows {
		got = append(got, row.Cells[holder].(string))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		g.Errorf("kubectl get leases prints the holders %q, want %q", got, want)
	}
}

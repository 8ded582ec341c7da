package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// stockSerializer is what client-go's dynamic client decodes with.
func stockSerializer() runtime.NegotiatedSerializer {
	return dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
}

// jsonInfo returns the serializers of n for JSON.
func jsonInfo(tb testing.TB, n runtime.NegotiatedSerializer) runtime.SerializerInfo {
	tb.Helper()
	info, ok := runtime.SerializerInfoForMediaType(n.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		tb.Fatal("no JSON")
	}
	return info
}

// variants returns serializers that must give the same results as client-go's.
func variants() map[string]runtime.NegotiatedSerializer {
	return map[string]runtime.NegotiatedSerializer{
		"own":    Negotiated(stockSerializer(), Settings{Tables: NewTables(Own)}),
		"shared": Negotiated(stockSerializer(), Settings{Tables: NewTables(Shared), Sharing: Shared}),
	}
}

// identical reports whether a and b are equal, including the sign of zeros.
func identical(a, b any) bool {
	if !reflect.DeepEqual(a, b) {
		return false
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errText(errX) == errText(errY) && bytes.Equal(x, y)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// block returns object i of a series that resembles Calico's IPAMBlocks.
func block(i int) map[string]any {
	r := rand.New(rand.NewPCG(uint64(i), 7)) //nolint:gosec // test data
	node := fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i>>8, i&255)
	allocations, attributes, sequences := make([]any, 64), []any{}, map[string]any{}
	for k := range 30 {
		allocations[2*k] = k
		sequences[fmt.Sprint(2*k)] = 1700000000000000000 + r.Int64N(1<<40)
		attributes = append(attributes, map[string]any{
			"handle_id": fmt.Sprintf("k8s-pod-network.%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()),
			"secondary": map[string]any{
				"namespace": fmt.Sprintf("team-%02d", r.IntN(40)),
				"node":      node,
				"pod":       fmt.Sprintf("checkout-%x-%05x", r.Uint32(), r.IntN(1<<20)),
			},
		})
	}
	return map[string]any{
		"apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMBlock",
		"metadata": map[string]any{
			"name": fmt.Sprintf("10-0-%d-%d-26", i>>8, i&255), "uid": fmt.Sprintf("%016x-%016x", r.Uint64(), r.Uint64()),
			"resourceVersion": fmt.Sprint(1000 + i), "generation": 7, "creationTimestamp": "2026-01-02T03:04:05Z",
			"annotations": map[string]any{"projectcalico.org/metadata": `{"creationTimestamp":null}`},
			"managedFields": []any{map[string]any{
				"apiVersion": "crd.projectcalico.org/v1", "manager": "calico-ipam", "operation": "Update", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}, "f:affinity": map[string]any{}, "f:allocations": map[string]any{}}},
			}},
		},
		"spec": map[string]any{
			"affinity": "host:" + node, "allocations": allocations, "attributes": attributes, "cidr": fmt.Sprintf("10.0.%d.%d/26", i>>8, i&255),
			"deleted": false, "sequenceNumberForAllocation": sequences, "strictAffinity": i%2 == 0, "ratio": 0.5,
		},
	}
}

func encode(tb testing.TB, v any) []byte {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// listOf returns the body of a list with items.
func listOf(tb testing.TB, items ...any) []byte {
	tb.Helper()
	return encode(tb, map[string]any{
		"apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMBlockList",
		"metadata": map[string]any{"resourceVersion": "9", "continue": "", "remainingItemCount": 3}, "items": items,
	})
}

// frame returns a watch event as an API server sends it.
func frame(tb testing.TB, kind string, object any) []byte {
	tb.Helper()
	return append(append(append([]byte(`{"type":"`+kind+`","object":`), encode(tb, object)...), '}'), '\n')
}

// whole leaves a test that needs no race detector out of short runs. make test runs the tests of this package twice: all without the race
// detector, and then with it, which takes ten times as long, and with -short.
func whole(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it has one goroutine, and runs without -short")
	}
}

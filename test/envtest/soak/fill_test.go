package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
)

// Lists of this size fill the tables of a client. A part of an object is in them after it has been decoded a few times.
const (
	fillPages    = 20
	fillPageSize = 1000
	fillCopies   = 4
)

// fill fills tables with strings and parts of objects like those of the soak. Tables are bounded, but only hours of a
// soak would fill them. Until then the heap would grow, as it does with a leak.
func fill(ctx context.Context, tables *dynamicclient.Tables, of *ledger) error {
	client, err := dynamicclient.New(&rest.Config{Host: "http://127.0.0.1", QPS: -1, Transport: filler{of}}, dynamicclient.WithTables(tables), dynamicclient.WithSharing())
	for page := 0; err == nil && page < fillPages; page++ {
		_, err = client.Resource(of.gvr).List(ctx, metav1.ListOptions{Continue: strconv.Itoa(page)})
	}
	return err
}

// filler is a transport to a server with many objects, some of which are equal.
type filler struct{ of *ledger }

// RoundTrip implements [http.RoundTripper].
func (f filler) RoundTrip(req *http.Request) (*http.Response, error) {
	page, err := strconv.Atoi(req.URL.Query().Get("continue"))
	if err != nil {
		return nil, err
	}
	var items []any
	for i := range fillPageSize {
		number := 1_000_000 + page*fillPageSize + i
		boat := f.of.newBoat("a", "x", number, 1)
		boat.SetUID(types.UID(fmt.Sprintf("%032x", number)))
		boat.SetResourceVersion(strconv.Itoa(number))
		for range fillCopies {
			items = append(items, boat.Object)
		}
	}
	content, err := json.Marshal(map[string]any{"apiVersion": f.of.gvr.GroupVersion().String(), "kind": f.of.kind + "List", "metadata": map[string]any{}, "items": items})
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(content)), Request: req}, nil
}

// Package load_test changes large objects often, and measures the heap and the latency of informers of client-go and of gvrkit, one
// after the other: a block of 1.26 MB changes 20 times a second, and one of many blocks of 10 KB changes 50 times a second. After a warm-up, in
// which each object changes, the heap must not grow.
//
//	go test ./test/envtest/load                                                   # a quarter of a second for each, 50 blocks
//	go test ./test/envtest/load -v -load.blocks 5000 -load.duration 1m -timeout 0 # as make load
//
// The server is a part of the test, so that each change is sent at its time on any machine: an API server with etcd takes
// longer to write such an object than an informer to read it.
package load_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var (
	duration = flag.Duration("load.duration", 250*time.Millisecond, "how long the objects of each case change for each contestant")
	blocks   = flag.Int("load.blocks", 50, "the number of small blocks")
)

var gvr = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loadCase has objects that change at a rate.
type loadCase struct {
	name               string
	objects, addresses int
	rate               int // changes of all objects per second
	bytes              int // of each object, about

	// warm is the number of changes before the measurement.
	warm int
	// part and noise are how much the heap may seem to grow: a part of it, and MB in addition.
	part, noise float64
}

// sightings is how often a decoder reads a part of an object until its tables have it, as far as there is room. They have room for a part of
// 5,000 blocks only: after one change of each, they are full.
const sightings = 4

func TestLoad_LargeObjectsThatChangeOften(t *testing.T) {
	for _, c := range []loadCase{
		{name: "a block of 1.26 MB", objects: 1, addresses: 4096, rate: 20, bytes: 1_260_000, warm: 1, part: .1, noise: 5},
		{name: "blocks of 10 KB", objects: *blocks, addresses: 32, rate: 50, bytes: 10_000, warm: max(*blocks, min(sightings**blocks, 5000)), part: .01, noise: .5},
	} {
		t.Run(c.name, func(t *testing.T) {
			var heaps []float64
			for i, with := range contestants {
				r := newLoad(t, c).run(with)
				heaps = append(heaps, r.heap)
				t.Logf("%s: %v, %.3f of client-go's", with.name, r, r.heap/heaps[0])
				r.check(t, c)
				if with.transform != nil && c.objects >= 1000 && r.heap > heaps[i-1]/10 {
					t.Errorf("%s has %.1f MB of heap, not a tenth of %.1f MB", with.name, r.heap, heaps[i-1])
				}
			}
		})
	}
}

// load is a server with the objects of a case.
type load struct {
	*testing.T
	loadCase
	config *rest.Config
	turns  chan struct{} // each makes the server change an object
	made   atomic.Int64  // changes so far, in all watches
	latency
}

// firstVersion is the version of the list.
const firstVersion = 1000

func newLoad(t *testing.T, c loadCase) *load {
	t.Helper()
	l := &load{T: t, loadCase: c, turns: make(chan struct{}), latency: newLatency(c.objects)}
	if size := len(l.block(0, firstVersion)); size < l.bytes*97/100 || size > l.bytes*103/100 {
		l.Fatalf("an object has %d bytes, want %d", size, l.bytes)
	}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	l.config = &rest.Config{Host: server.URL, QPS: -1}
	return l
}

func (l *load) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// ServeHTTP responds to lists and watches. It refuses watch-lists.
func (l *load) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/apis/"+gvr.GroupVersion().String()+"/"+gvr.Resource:
		http.NotFound(w, r)
	case query.Get("sendInitialEvents") != "":
		faultproxy.Status(http.StatusBadRequest, "BadRequest", "sendInitialEvents is not known").ServeHTTP(w, r)
	case query.Get("watch") == "":
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"IPAMBlockList","metadata":{"resourceVersion":"%d"},"items":[`, gvr.GroupVersion(), firstVersion)
		for i := range l.objects {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			_, _ = w.Write(l.block(i, firstVersion)) // the client may be gone
		}
		fmt.Fprint(w, "]}")
	default:
		l.watch(w, r)
	}
}

// watch changes an object in each turn: the last one first, then the one before it, and so on. Another watch goes on where the one before has ended.
func (l *load) watch(w http.ResponseWriter, r *http.Request) {
	flusher := http.NewResponseController(w)
	_ = flusher.Flush() // the client waits for the header
	for {
		select {
		case <-l.turns:
		case <-r.Context().Done():
			return
		}
		n := int(l.made.Add(1))
		i, version := l.objects-1-n%l.objects, firstVersion+n
		_, err := fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", l.block(i, version))
		if err == nil {
			err = flusher.Flush()
		}
		if err != nil {
			return
		}
		l.wrote(blockName(i), strconv.Itoa(version))
	}
}

// fewest is how many changes are made, also if the time of the contestant is over: less would not show a leak.
const fewest = 6

// change makes the server change the objects at the rate of the case for this time, and calls changed after each change with the
// number of changes.
func (l *load) change(length time.Duration, changed func(n int)) {
	tick, end := time.NewTicker(time.Second/time.Duration(l.rate)), time.Now().Add(length)
	defer tick.Stop()
	for n := 1; n <= fewest || time.Now().Before(end); n++ {
		<-tick.C
		l.changeOne(n)
		changed(n)
	}
}

// warmUp makes the server change the objects, each at least once, and waits for the changes.
func (l *load) warmUp() {
	for n := range l.warm {
		l.changeOne(n + 1)
	}
	if !l.arrive() {
		l.Fatalf("%d changes have not arrived", l.missing())
	}
	l.forget()
}

// changeOne makes the server change an object, as the n-th change.
func (l *load) changeOne(n int) {
	select {
	case l.turns <- struct{}{}:
	case <-time.After(30 * time.Second):
		l.Fatal("no watch is open")
	}
	l.sent(n)
}

func blockName(i int) string { return fmt.Sprintf("10-%d-%d-0", i>>8, i&255) }

// block returns the JSON of a block all of whose addresses are in use.
func (l *load) block(i, version int) []byte {
	var allocations, attributes []any
	sequences, node := map[string]any{}, fmt.Sprintf("ip-10-%d-%d-7.eu-west-1.compute.internal", i>>8, i&255)
	for n := range l.addresses {
		allocations = append(allocations, n)
		attributes = append(attributes, map[string]any{
			"handle_id": fmt.Sprintf("k8s-pod-network.%064x", i<<16+n),
			"secondary": map[string]any{
				"namespace": fmt.Sprintf("namespace-%02d", n%50), "node": node,
				"pod": fmt.Sprintf("a-service-of-team-%03d-7d9c5b8f6b-%05d", n%200, n), "timestamp": "2026-01-01 00:00:00 +0000 UTC",
			},
		})
		sequences[strconv.Itoa(n)] = 1_700_000_000_000_000_000 + n
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": "IPAMBlock",
		"metadata": map[string]any{
			"name": blockName(i), "uid": fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "resourceVersion": strconv.Itoa(version),
			"generation": version, "creationTimestamp": "2026-01-01T00:00:00Z",
		},
		"spec": map[string]any{
			"cidr": fmt.Sprintf("10.%d.%d.0/20", i>>8, i&255), "affinity": "host:" + node, "strictAffinity": false,
			"allocations": allocations, "unallocated": []any{}, "attributes": attributes,
			"sequenceNumber": version, "sequenceNumberForAllocation": sequences, "deleted": false,
		},
	})
	if err != nil {
		panic(err)
	}
	return text
}

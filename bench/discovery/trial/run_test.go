package trial

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
)

// serve serves a cluster with n CRDs until the test ends.
func serve(t *testing.T, n int) cluster.Admin {
	t.Helper()
	c, err := cluster.New(cluster.Size{CRDs: n, SchemaBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return cluster.Admin{Host: server.URL}
}

// Of a small cluster.
const (
	fewCRDs  = 5
	fewAsks  = 40
	fastPoll = 20 * time.Millisecond
	longRest = 700 * time.Millisecond
)

func TestRun_MeasuresEverySystem(t *testing.T) {
	t.Parallel() // it waits most of the time
	own := map[string]func(*testing.T, Figures){
		mappers.ClientGo: checkClientGo, mappers.ControllerRuntime: checkControllerRuntime, mappers.GVRKit: checkGVRKit, mappers.GVRKitAsking: checkBrief,
	}
	for _, system := range mappers.All() {
		t.Run(system.Name, func(t *testing.T) {
			t.Parallel()
			f, err := Run(t.Context(), Job{
				System: system.Name, Host: serve(t, fewCRDs).Host, CRDs: fewCRDs, Rest: longRest, Poll: fastPoll, Asks: fewAsks,
			})
			if err != nil {
				t.Fatal(err)
			}
			checkStart(t, f.Start)
			own[system.Name](t, f)
			if !system.Brief {
				checkAnswers(t, f)
			}
		})
	}
}

// checkBrief checks that nothing but the start was measured.
func checkBrief(t *testing.T, f Figures) {
	t.Helper()
	if f.Mapping != nil || f.Unknown != nil || f.Polled != nil || f.Start.All != 0 {
		t.Errorf("more than the start: %+v", f)
	}
}

// checkAnswers checks what has to hold for who is measured in full.
func checkAnswers(t *testing.T, f Figures) {
	t.Helper()
	if s := f.Start; s.All <= s.First || s.AllRequests < s.FirstRequests {
		t.Errorf("start: %+v", s)
	}
	for name, warm := range map[string]*Warm{"RESTMapping": f.Mapping, "kind": f.Kind, "name": f.Name} {
		if warm.Requests != 0 || warm.Nanos <= 0 {
			t.Errorf("%s: %+v", name, warm)
		}
	}
	if f.Unknown.Asks != fewAsks || f.Unknown.Nanos <= 0 {
		t.Errorf("unknown: %+v", f.Unknown)
	}
	checkLatency(t, f.Polled)
}

func checkStart(t *testing.T, s Start) {
	t.Helper()
	if s.First <= 0 || s.FirstRequests < 2 || s.Requests < s.FirstRequests || s.Bytes == 0 || s.CPU <= 0 || s.PeakRSS == 0 {
		t.Errorf("start: %+v", s)
	}
}

func checkLatency(t *testing.T, a *Arrival) {
	t.Helper()
	if a == nil || a.Latency <= 0 || a.Latency > 3*time.Minute {
		t.Errorf("a new type: %+v", a)
	}
}

// checkClientGo checks that it asks only if it forgets.
func checkClientGo(t *testing.T, f Figures) {
	t.Helper()
	if f.Start.Requests != 2 || f.Unknown.Requests != 0 {
		t.Errorf("start: %+v, unknown: %+v", f.Start, f.Unknown)
	}
	if n := f.Noticed; n.Asks != fewAsks/forgetful || n.Requests != 2*int64(n.Asks) {
		t.Errorf("noticed: %+v", n)
	}
	if f.Polled.Requests < 4 || f.Polled.Requests%2 != 0 || f.Awaited != nil {
		t.Errorf("polled: %+v, awaited: %+v", f.Polled, f.Awaited)
	}
}

// checkControllerRuntime checks that it asks each time.
func checkControllerRuntime(t *testing.T, f Figures) {
	t.Helper()
	if f.Unknown.Requests != fewAsks || f.Noticed != nil || f.Awaited != nil {
		t.Errorf("unknown: %+v, noticed: %+v, awaited: %+v", f.Unknown, f.Noticed, f.Awaited)
	}
}

// checkGVRKit checks that it asks once, and is told.
func checkGVRKit(t *testing.T, f Figures) {
	t.Helper()
	if f.Unknown.Requests > 4 || f.Noticed != nil {
		t.Errorf("unknown: %+v, noticed: %+v", f.Unknown, f.Noticed)
	}
	checkLatency(t, f.Awaited)
}

func TestRun_LeavesTheClusterAsItWas(t *testing.T) {
	t.Parallel() // they wait most of the time
	admin := serve(t, 2)
	job := Job{System: mappers.GVRKit, Host: admin.Host, CRDs: 2, Rest: shortRest, Poll: 10 * time.Millisecond, Asks: 1}
	for range 2 {
		if _, err := Run(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRun_ABriefJobIsTheStartAlone(t *testing.T) {
	t.Parallel() // they wait most of the time
	f, err := Run(t.Context(), Job{System: mappers.ClientGo, Host: serve(t, 0).Host, Rest: shortRest, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	if f.Start.Requests != 2 || f.Mapping != nil || f.Polled != nil {
		t.Errorf("%+v", f)
	}
}

func TestRun_FailsIfTheClusterHasLess(t *testing.T) {
	t.Parallel() // they wait most of the time
	_, err := Run(t.Context(), Job{System: mappers.ClientGo, Host: serve(t, 1).Host, CRDs: 2, Brief: true})
	if err == nil || !strings.Contains(err.Error(), "client-go, 2 CRDs: start: ") {
		t.Errorf("error: %v", err)
	}
}

package faultproxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnEffect_CountsTheRequestsThatAFaultChanges(t *testing.T) {
	const bookmark, added = `{"type":"BOOKMARK","object":{}}` + "\n", `{"type":"ADDED","object":{}}` + "\n"
	for name, test := range map[string]struct {
		fault Fault
		body  string
		want  int64
	}{
		"nothing":                       {nil, added, 0},
		"an error":                      {Fail(500), added, 1},
		"the next handler is not asked": {Respond(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), "", 1},
		"a bookmark is dropped":         {DropBookmarks(), bookmark, 1},
		"there is no bookmark":          {DropBookmarks(), added, 0},
		"a delay":                       {DelayBookmarks(time.Millisecond), bookmark, 0},
		"a second event":                {GarbleFrame(2), added + bookmark, 1},
		"there is no second event":      {GarbleFrame(2), added, 0},
		"a body that breaks":            {CutAt(10), added, 1},
		"a body that is shorter":        {CutAt(1000), added, 0},
		"the first of no requests":      {Times(0, Fail(500)), added, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var effects atomic.Int64
			handler := OnEffect(test.fault, func() { effects.Add(1) })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.body)
			}))
			func() {
				defer func() { _ = recover() }() // http.ErrAbortHandler
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=true", nil))
			}()
			if got := effects.Load(); got != test.want {
				t.Errorf("%d effects, want %d", got, test.want)
			}
		})
	}
}

// A test may count the effects of each of several faults, and those of all of them.
func TestOnEffect_CountsTheEffectsOfFaultsThatCountTheirs(t *testing.T) {
	var inner, outer atomic.Int64
	count := func(n *atomic.Int64) func() { return func() { n.Add(1) } }
	fault := OnEffect(OnEffect(Times(1, Truncate(1)), count(&inner)), count(&outer))
	handler := fault(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	for _, want := range []string{"o", "ok"} {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods", nil))
		if got.Body.String() != want {
			t.Errorf("%q, want %q", got.Body, want)
		}
	}
	if inner.Load() != 1 || outer.Load() != 1 {
		t.Errorf("%d effects of the inner fault and %d of the outer one, want 1 of each", inner.Load(), outer.Load())
	}
}

// A fault that reads a document requests it again for a client that has it. The client gets 304 with and without the fault.
func TestOnEffect_DoesNotCountADocumentThatTheClientHas(t *testing.T) {
	const etag, document = `"1"`, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1"}]}]}`
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, document)
	})
	for group, want := range map[string]struct {
		codes   []int
		effects int64
	}{
		"example.com": {[]int{http.StatusOK, http.StatusNotModified}, 0},
		"apps":        {[]int{http.StatusOK, http.StatusNotModified}, 2}, // the second time, the client has the changed document
	} {
		var effects atomic.Int64
		handler := OnEffect(StaleGroup(group), func() { effects.Add(1) })(server)
		has := ""
		for _, code := range want.codes {
			got, request := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis", nil)
			request.Header.Set("If-None-Match", has)
			handler.ServeHTTP(got, request)
			if got.Code != code {
				t.Errorf("%s: %d, want %d", group, got.Code, code)
			}
			has = got.Header().Get("Etag")
		}
		if got := effects.Load(); got != want.effects {
			t.Errorf("%s: %d effects, want %d", group, got, want.effects)
		}
	}
}

// A watch without events has the same bytes with and without the fault.
func TestOnEffect_CountsAWatchThatEndsBetweenEvents(t *testing.T) {
	const added = `{"type":"ADDED","object":{}}` + "\n"
	for name, test := range map[string]struct {
		fault Fault
		body  string
		want  int64
	}{
		"broken before the first event": {CutAt(0), "", 1},
		"broken after an event":         {CutAt(len(added)), added, 1},
		"ended after an event":          {Truncate(len(added)), added, 1},
		"silent after an event":         {HangAt(len(added)), added, 1},
		"ended by the client":           {CutAt(len(added) + 1), added, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				var effects atomic.Int64
				handler := OnEffect(test.fault, func() { effects.Add(1) })(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, test.body)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}))
				go func() {
					defer func() { _ = recover() }() // http.ErrAbortHandler
					handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=true", nil))
				}()
				synctest.Wait() // the fault has ended the watch, if it does so
				leave()
				synctest.Wait()
				if got := effects.Load(); got != test.want {
					t.Errorf("%d effects, want %d", got, test.want)
				}
			})
		})
	}
}

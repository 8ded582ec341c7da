package discovery

import (
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
)

// The other tests have a transport of their own. Compression, broken connections and
// requests that end with their context are net/http's, here with a real one.
func TestFeed_OverAConnection(t *testing.T) {
	var (
		log     = make(chan string, 10)
		watches = make(chan func(http.ResponseWriter, *http.Request), 2)
		left    = make(chan struct{})
	)
	flush := func(w http.ResponseWriter) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}
	watches <- func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", crdNamed("b", "8"))
		flush(w)
		panic(http.ErrAbortHandler)
	}
	watches <- func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", crdNamed("after-"+r.URL.Query().Get("resourceVersion"), "9"))
		flush(w)
		<-r.Context().Done()
		close(left)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			(<-watches)(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprintf(z, `{"metadata":{"resourceVersion":"7"},"items":[%s]}`, crdNamed("a", "7"))
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed[*crd]{
		endpoint: &endpoint{base: base, client: server.Client()},
		path:     crdPath,
		list:     func(items []*crd) { log <- "list" + namesOf(items) },
		event:    func(kind watch.EventType, item *crd) { log <- string(kind) + " " + item.Metadata.Name },
		state:    func(s feedState) { log <- string(s.phase) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx)
	}()
	want := []string{"Connecting", "list a", "Watching", "ADDED b", "Failing", "Watching", "ADDED after-8"}
	var got []string
	for range want {
		select {
		case line := <-log:
			got = append(got, line)
		case <-time.After(time.Minute):
			t.Fatalf("no callback any more after %q", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("callbacks (-want +got):\n%s", diff)
	}
	cancel()
	<-done
	<-left
	if len(log) != 0 {
		t.Errorf("another callback: %s", <-log)
	}
}

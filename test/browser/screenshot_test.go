package browser_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

var screenshot = flag.String("screenshot", "", "where TestPage_Screenshot writes its picture; by default nowhere that lasts")

// slowPool is a handler whose calls wait for done.
type slowPool struct{ done <-chan struct{} }

func (s *slowPool) OnAdd(any, bool)   { <-s.done }
func (s *slowPool) OnUpdate(any, any) { <-s.done }
func (s *slowPool) OnDelete(any)      { <-s.done }

// today is the time of the bubble at the beginning. Without it, the picture would show the year 2000.
const today = 26*365*24*time.Hour + 200*24*time.Hour + 3*time.Hour

// pass lets the time of the bubble pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in a bubble

// The factory runs for an hour in the time of a bubble. Then the test makes a picture of its page.
func TestPage_Screenshot(t *testing.T) {
	browser := newChromium(t)
	var shown *httptest.ResponseRecorder
	synctest.Test(t, func(t *testing.T) { shown = anHour(t) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), shown.Header())
		_, _ = w.Write(shown.Body.Bytes())
	}))
	defer server.Close()

	path := *screenshot
	if path == "" {
		path = filepath.Join(t.TempDir(), "page.png")
	}
	browser.run(server.URL, "--screenshot="+path, "--window-size=1440,700", "--hide-scrollbars", "--virtual-time-budget=1000")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[any]bool{}
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			colours[picture.At(x, y)] = true
		}
	}
	if size := picture.Bounds().Size(); size.X != 1440 || size.Y != 700 || len(colours) < 50 || len(data) > 200<<10 {
		t.Errorf("picture: %v, %d colours, %d bytes", size, len(colours), len(data))
	}
}

// anHour runs a factory for about an hour, and returns its page.
func anHour(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	pass(today)
	cluster := newCluster()
	create(t, cluster, blocks, "", 212)
	create(t, cluster, pools, "", 4)
	create(t, cluster, certs, "shop", 63)
	create(t, cluster, routes, "shop", 18)
	f := newFactory(t, cluster)
	f.Start(t.Context())

	quick := cache.ResourceEventHandlerFuncs{}
	done := make(chan struct{})
	for _, held := range []struct {
		l       *dynamicinformer.Lease
		handler cache.ResourceEventHandler
	}{
		{acquire(t, f, blocks, dynamicinformer.WithLeaseName("ipam-garbage-collector")), quick},
		{acquire(t, f, blocks, dynamicinformer.WithLeaseName("metrics")), quick},
		{acquire(t, f, pools, dynamicinformer.WithLeaseName("ipam-garbage-collector")), quick},
		{acquire(t, f, certs, dynamicinformer.WithLeaseName("certificate-watcher"), dynamicinformer.WithVersionPolicy(discovery.FollowPreferred())), quick},
		{acquire(t, f, routes, dynamicinformer.WithLeaseName("traffic-report")), &slowPool{done}},
		{acquire(t, f, apps, dynamicinformer.WithLeaseName("deployer")), quick},
	} {
		if _, err := held.l.AddEventHandler(held.handler); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	pass(47 * time.Minute)
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.GVR != pools || req.Verb == "create" {
			return nil
		}
		return apierrors.NewForbidden(pools.GroupResource(), "", fmt.Errorf(`user "system:serviceaccount:net:ipam-gc" cannot %s resource "ippools" at the cluster scope`, req.Verb))
	})
	cluster.Expire(pools)
	cluster.CloseWatches(pools)
	pass(12 * time.Minute)
	create(t, cluster, certs, "shop", 1)
	pass(9 * time.Second)
	create(t, cluster, blocks, "", 2)
	pass(3 * time.Second)
	synctest.Wait()

	shown := httptest.NewRecorder()
	f.Handler().ServeHTTP(shown, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?format=html", http.NoBody))
	close(done)
	shutdown(t, f)
	return shown
}

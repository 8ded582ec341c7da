package source_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/attempt"
	"github.com/gvrkit/gvrkit/internal/source"
)

// disconnected is a transport whose connections fail.
type disconnected struct{ err error }

func (f disconnected) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// After several attempts, client-go returns a watch without events, and no error.
func TestObserver_WatchThatCouldNotReachTheServerHasFailed(t *testing.T) {
	for name, cause := range map[string]error{
		"closed":  io.EOF,
		"timeout": &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded},
	} {
		for _, observed := range []bool{false, true} {
			for kind, opts := range map[string]metav1.ListOptions{"watch": {ResourceVersion: "7"}, "watch-list": watchList()} {
				t.Run(name+" "+kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { checkUnreached(t, cause, observed, opts) })
				})
			}
		}
	}
}

// checkUnreached sends a watch with client-go, whose attempts are observed or not.
func checkUnreached(t *testing.T, cause error, observed bool, opts metav1.ListOptions) {
	t.Helper()
	httpClient := &http.Client{Transport: disconnected{cause}}
	if observed {
		httpClient = attempt.Client(httpClient)
	}
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://server", QPS: -1}, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	observer := &observer{}
	lw := newLW(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
	if _, err = lw.WatchWithContext(t.Context(), opts); err == nil {
		t.Fatal("the watch has no error")
	}
	if said := observer.reports(); len(said) == 0 || slices.Contains(said, "watch succeeded") {
		t.Errorf("reports %q", said)
	}
	switch {
	case observed && !strings.Contains(err.Error(), cause.Error()):
		t.Errorf("error %q, want that of the last attempt", err)
	case observed && len(observer.errors()) < 2:
		t.Error("the attempts are not reported")
	}
}

// The watches of client-go's fake have no events either, until an object changes.
func TestObserver_WatchOfTheFakeClientSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &observer{}
		client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		ask(t, source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer}, "watch", metav1.ListOptions{ResourceVersion: "7"})
		if said := observer.reports(); !slices.Equal(said, []string{"watch succeeded"}) {
			t.Errorf("reports %q", said)
		}
	})
}

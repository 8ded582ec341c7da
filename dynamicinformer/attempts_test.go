package dynamicinformer_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// client-go tries such an answer again ten times before it lets anybody know.
func TestNewForConfig_ReasonsAppearWithTheFirstAttempt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "no", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	f, err := dynamicinformer.NewForConfig(&rest.Config{Host: server.URL}, dynamicinformer.WithDiscovery(nil))
	if err != nil {
		t.Fatal(err)
	}
	f.Start(t.Context())
	l := acquire(t, f, widgets)
	begun := time.Now()
	for now := range l.Watch(t.Context()) {
		if now.Err == nil {
			continue
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the reason appeared after %v", took)
		}
		if now.Reason != status.ReasonUnavailable || !apierrors.IsServiceUnavailable(now.Err) || now.Attempts != 1 {
			t.Errorf("status: %+v", now)
		}
		break
	}
	l.Release()
	shutdown(t, f)
}

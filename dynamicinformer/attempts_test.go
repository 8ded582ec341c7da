package dynamicinformer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// client-go retries such a request ten times before it returns the error.
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
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second) // shorter than one of client-go's pauses
	defer cancel()
	seen := false
	for now := range l.Watch(ctx) {
		if now.Err == nil {
			continue
		}
		seen = true
		if now.Reason != status.ReasonUnavailable || !apierrors.IsServiceUnavailable(now.Err) || now.Attempts != 1 {
			t.Errorf("status: %+v", now)
		}
		break
	}
	if !seen {
		t.Error("no reason has appeared in 25 s")
	}
	l.Release()
	shutdown(t, f)
}

package dynamicclient_test

import (
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	blocks  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer is a server that clients are compared on.
type apiServer struct{ *stubserver.Server }

func serve(t *testing.T) *apiServer {
	t.Helper()
	return &apiServer{stubserver.New(t)}
}

func serveTLS(t *testing.T) *apiServer {
	t.Helper()
	return &apiServer{stubserver.NewTLS(t)}
}

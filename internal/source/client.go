package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// ErrNotAList is the error of a list whose response is not a list.
var ErrNotAList = errors.New("the response is not a list")

// ErrInvalid is the error of a source whose configuration allows no request.
var ErrInvalid = errors.New("invalid client or options")

var errNoClient = fmt.Errorf("%w: the dynamic client is nil", ErrInvalid)

// client is the last stage: the dynamic client. Its errors contain no response bodies, since
// they are stored, logged and displayed.
type client struct {
	Config
	gvr       schema.GroupVersionResource
	namespace string // of requests; empty for a cluster-scoped type, whatever Config has
}

func (c *client) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.resource().List(ctx, opts)
	if err != nil {
		return list, errtext.Clean(err)
	}
	// Without this check, the response would be read as an empty list and empty the cache.
	if kind := list.GetKind(); kind != "" && !strings.HasSuffix(kind, "List") {
		return list, fmt.Errorf("%w: the server sent a %s", ErrNotAList, errtext.Cut(kind))
	}
	return list, nil
}

func (c *client) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.resource().Watch(ctx, opts)
	return in, errtext.Clean(err)
}

// resource returns the client of the resource in the namespace.
func (c *client) resource() dynamic.ResourceInterface {
	return c.Client.Resource(c.gvr).Namespace(c.namespace)
}

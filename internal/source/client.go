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

// ErrNotAList says that a server answered a list with something else.
var ErrNotAList = errors.New("the answer is not a list")

// ErrInvalid says that no request can be made with what the source was given.
var ErrInvalid = errors.New("no request can be made")

var errNoClient = fmt.Errorf("%w: the dynamic client is nil", ErrInvalid)

// client is the last stage: the dynamic client itself. The errors that it returns quote no
// body of an answer: they are kept, logged and shown.
type client struct {
	Config
	gvr       schema.GroupVersionResource
	namespace string // of the requests; that of Config is the user's wish
}

func (c *client) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.resource().List(ctx, opts)
	if err != nil {
		return list, errtext.Clean(err)
	}
	// What is no list would pass for an empty one, and empty the cache.
	if kind := list.GetKind(); kind != "" && !strings.HasSuffix(kind, "List") {
		return list, fmt.Errorf("%w: the server sent a %s", ErrNotAList, errtext.Cut(kind))
	}
	return list, nil
}

func (c *client) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.resource().Watch(ctx, opts)
	return in, errtext.Clean(err)
}

// resource returns where to send requests.
func (c *client) resource() dynamic.ResourceInterface {
	return c.Client.Resource(c.gvr).Namespace(c.namespace)
}

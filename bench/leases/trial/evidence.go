package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// listPoll is how often it is tried to list a type that comes.
const listPoll = 10 * time.Millisecond

// errWatchEnded says that there is no more evidence.
var errWatchEnded = errors.New("the benchmark's own watch has ended")

// evidence is what a plain watch of one CRD sees, and when. It is used by one goroutine.
type evidence struct {
	sights <-chan sight
}

// sight is one event.
type sight struct {
	kind        watch.EventType
	established bool
	at          time.Time
}

func (s sight) isDeletion() bool { return s.kind == watch.Deleted }

func (s sight) isEstablished() bool { return s.kind != watch.Deleted && s.established }

// ownConfig returns a config that shares no connection with cfg: what this benchmark does
// is not to be in a system's way.
func ownConfig(cfg *rest.Config) *rest.Config {
	own := rest.CopyConfig(cfg)
	own.Dial = (&net.Dialer{}).DialContext
	return own
}

// observe watches the CRD called name until ctx ends.
func observe(ctx context.Context, client dynamic.Interface, name string) (*evidence, error) {
	crds := client.Resource(definitions)
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, err := crds.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	opts.ResourceVersion = list.GetResourceVersion()
	w, err := crds.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	sights := make(chan sight, 100)
	go func() {
		defer close(sights)
		defer w.Stop()
		for event := range w.ResultChan() {
			s := sight{kind: event.Type, at: time.Now()}
			if crd, is := event.Object.(*unstructured.Unstructured); is {
				s.established = isEstablished(crd)
			}
			select {
			case sights <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	return &evidence{sights: sights}, nil
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, is := condition.(map[string]any); is && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// await waits for the next event that is of a sort, and returns when it came.
func (e *evidence) await(ctx context.Context, of func(sight) bool) (time.Time, error) {
	for {
		select {
		case s, more := <-e.sights:
			if !more {
				return time.Time{}, errWatchEnded
			}
			if of(s) {
				return s.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// rawClient returns a client that reads nothing into what servers answer.
func rawClient(cfg *rest.Config) (rest.Interface, error) {
	raw := rest.CopyConfig(cfg)
	raw.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(raw)
}

// listable waits until the server answers a list of a type, and returns when it did.
func listable(ctx context.Context, raw rest.Interface, gvr schema.GroupVersionResource) (time.Time, error) {
	ticker := time.NewTicker(listPoll)
	defer ticker.Stop()
	path := fmt.Sprintf("/apis/%s/%s/%s", gvr.Group, gvr.Version, gvr.Resource)
	for {
		err := raw.Get().AbsPath(path).MaxRetries(0).Do(ctx).Error()
		switch {
		case err == nil:
			return time.Now(), nil
		case !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err):
			return time.Time{}, fmt.Errorf("list %s: %w", path, err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// The store has the objects of a list later than the reflector: an index function may take time. No bubble: a goroutine that waits for
// the lock of the store stops its clock.
func TestNamespaces_AnObjectOfANamespaceThatIsBeingListedIsNotMissing(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	first := create(t, cluster, widgets, "a", "first")
	const many = 200
	for i := range many {
		create(t, cluster, widgets, "b", fmt.Sprint("b", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var waits atomic.Int32
	indexing, goOn := make(chan struct{}), make(chan struct{})
	slow := func(obj any) ([]string, error) {
		if obj.(*unstructured.Unstructured).GetLabels()["slow"] != "" && waits.Add(1) == 1 {
			close(indexing)
			<-goOn
		}
		return nil, nil
	}
	f := newFactory(t, cluster, dynamicinformer.WithNamespaces("a"), dynamicinformer.WithIndexers(cache.Indexers{"slow": slow}))
	f.Start(ctx)
	l := acquire(t, f, widgets)
	if err := l.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	first.SetLabels(map[string]string{"slow": "1"})
	if _, err := cluster.Resource(widgets).Namespace("a").Update(ctx, first, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-indexing
	if err := l.SetNamespaces("a", "b"); err != nil {
		t.Fatal(err)
	}
	for now := range l.Watch(ctx) {
		if slices.ContainsFunc(now.Namespaces, func(n status.Namespace) bool { return n.Name == "b" && n.Listed }) {
			break
		}
	}
	reads := make(chan error)
	go func() { // waits for the lock of the store
		for {
			_, err := l.Lister().ByNamespace("b").Get(fmt.Sprint("b", many-1))
			if err == nil || !errors.Is(err, status.ErrIncomplete) || ctx.Err() != nil {
				reads <- err
				return
			}
		}
	}()
	go func() {
		for {
			objects, err := l.Lister().ByNamespace("b").List(labels.Everything())
			if err == nil && len(objects) < many {
				err = fmt.Errorf("a list has %d objects, and no error", len(objects))
			}
			if err == nil || !errors.Is(err, status.ErrIncomplete) || ctx.Err() != nil {
				reads <- err
				return
			}
		}
	}()
	close(goOn)
	for range 2 {
		if err := <-reads; err != nil {
			t.Error(err)
		}
	}
	l.Release()
	shutdown(t, f)
}

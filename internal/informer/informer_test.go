package informer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/status"
)

// settable is an informer that takes transforms as answer says.
type settable struct {
	cache.SharedIndexInformer
	answer func() error
}

func (s settable) SetTransform(cache.TransformFunc) error { return s.answer() }

func keep(object any) (any, error) { return object, nil }

// The informer may begin to list at the very moment that it has its transform.
func TestInformer_KnowsOfATransformBeforeItIsThere(t *testing.T) {
	var transformed atomic.Bool
	known := false
	i := &Informer{transformed: &transformed, SharedIndexInformer: settable{answer: func() error {
		known = transformed.Load()
		return nil
	}}, source: source.New(source.Config{})}
	if err := i.SetTransform(keep); err != nil || !known || !transformed.Load() {
		t.Errorf("known then %v, now %v, error %v", known, transformed.Load(), err)
	}
	if err := i.SetTransform(nil); err != nil || transformed.Load() {
		t.Errorf("without a transform: known %v, error %v", transformed.Load(), err)
	}
}

func TestInformer_ARefusedTransformIsNone(t *testing.T) {
	errStarted := errors.New("informer has already started")
	for _, before := range []bool{false, true} {
		var transformed atomic.Bool
		transformed.Store(before)
		i := &Informer{transformed: &transformed, SharedIndexInformer: settable{answer: func() error { return errStarted }}, source: source.New(source.Config{})}
		if err := i.SetTransform(keep); !errors.Is(err, errStarted) || transformed.Load() != before {
			t.Errorf("from %v to %v, error %v", before, transformed.Load(), err)
		}
	}
}

// Otherwise the objects of the old cache would stay in memory as long as the informer.
func TestInformer_ReleasesTheOldCacheWhenItHasListed(t *testing.T) {
	listed := make(chan struct{})
	old, i := &Informer{}, &Informer{listed: listed}
	i.ReadFrom(old)
	if i.filled() != old || i.before.Load() == nil {
		t.Error("the old cache is not read")
	}
	close(listed)
	if i.filled() != i || i.before.Load() != nil {
		t.Error("the old cache is still referred to")
	}
}

// A reflector that ends may report that its list was canceled.
func TestUntilEnd_NoErrorsOfTheEnd(t *testing.T) {
	calls := 0
	handler := untilEnd(func(context.Context, *cache.Reflector, error) { calls++ })
	ctx, cancel := context.WithCancel(t.Context())
	handler(ctx, nil, errors.New("refused"))
	cancel()
	handler(ctx, nil, ctx.Err())
	if calls != 1 {
		t.Errorf("%d calls, want 1", calls)
	}
}

// listedMeanwhile is a lister of a namespace that is complete after the first read.
type listedMeanwhile struct {
	cache.GenericNamespaceLister
	complete func()
}

func (l listedMeanwhile) Get(name string) (runtime.Object, error) {
	l.complete()
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// The object may be in the list that has arrived since.
func TestWholeNamespace_IsIncompleteIfItWasBeforeTheRead(t *testing.T) {
	set := source.NewNamespaces("n")
	i := &Informer{source: source.New(source.Config{Client: source.Unstructured(fakecluster.New()), Namespaces: set})}
	_, err := wholeNamespace{listedMeanwhile{complete: func() { set.Set() }}, i, "n"}.Get("a")
	if !errors.Is(err, status.ErrIncomplete) {
		t.Errorf("error = %v", err)
	}
	if err := i.Incomplete("n"); err != nil {
		t.Errorf("after the read: %v", err)
	}
}

// renaming is an indexer whose object has another name after each read.
type renaming struct {
	cache.Indexer
	t     *testing.T
	names int
}

func (r *renaming) rename() {
	r.names++
	for _, err := range []error{r.Add(widget(fmt.Sprint(r.names), "red")), r.Delete(widget(fmt.Sprint(r.names-1), "red"))} {
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *renaming) IndexKeys(index, value string) ([]string, error) {
	defer r.rename()
	return r.Indexer.IndexKeys(index, value)
}

func (r *renaming) ByIndex(index, value string) ([]any, error) {
	defer r.rename()
	return r.Indexer.ByIndex(index, value)
}

func (r *renaming) Index(index string, obj any) ([]any, error) {
	defer r.rename()
	return r.Indexer.Index(index, obj)
}

func (r *renaming) GetByKey(key string) (any, bool, error) {
	defer r.rename()
	return r.Indexer.GetByKey(key)
}

// A list of a namespace and Index read one state of the cache, as client-go's do.
func TestReadIndexer_IndexReadsOneState(t *testing.T) {
	color := func(obj any) ([]string, error) {
		return []string{obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)["color"].(string), "any"}, nil
	}
	i := New(Config{Source: source.Config{}, Unindexed: &failures{}, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "color": color}})
	users := i.GetIndexer().(*readIndexer)
	if err := users.Add(widget("0", "red")); err != nil {
		t.Fatal(err)
	}
	users.Indexer = &renaming{Indexer: users.Indexer, t: t}
	list := 0
	if err := cache.ListAllByNamespace(users, "ns", labels.Everything(), func(any) { list++ }); err != nil || list != 1 {
		t.Errorf("a list of the namespace has %d objects, want 1, error %v", list, err)
	}
	for name, arg := range map[string]any{cache.NamespaceIndex: &metav1.ObjectMeta{Namespace: "ns"}, "color": widget("", "red")} {
		if found, err := users.Index(name, arg); err != nil || len(found) != 1 {
			t.Errorf("Index of %q returns %d objects, want 1, error %v", name, len(found), err)
		}
	}
	if found, err := users.Index(cache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "none"}); err != nil || found == nil || len(found) != 0 {
		t.Errorf("%v, error %v, want an empty slice as client-go's", found, err)
	}
}

// A user's function of namespaces gets a metav1.ObjectMeta from a list of a namespace. If it fails, the list reads all objects, and the
// status has no failure.
func TestPackedStore_AnIndexOfNamespacesMayRefuseTheArgumentOfALister(t *testing.T) {
	failures := &failures{}
	i := New(Config{Packer: packed.NewPacker(), Unindexed: failures, Indexers: cache.Indexers{cache.NamespaceIndex: func(obj any) ([]string, error) {
		object, is := obj.(*unstructured.Unstructured)
		if !is {
			return nil, errors.New("no object")
		}
		return []string{object.GetNamespace()}, nil
	}}})
	if err := i.GetIndexer().Add(widget("a", "red")); err != nil {
		t.Fatal(err)
	}
	found, err := lister.New(i.GetIndexer(), schema.GroupVersionResource{}).Namespace("ns").List(nil)
	if err != nil || len(found) != 1 || len(failures.keys) != 0 {
		t.Errorf("%d objects, want 1, error %v, failures of %q", len(found), err, failures.keys)
	}
}

// failures has the keys of the objects for which an index function has failed.
type failures struct{ keys []string }

func (f *failures) HasUnindexed() bool { return false }
func (f *failures) Unindexed(key string, _ types.UID, _ string, _ error) {
	f.keys = append(f.keys, key)
}

package metadatainformer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	upstream "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/metadatainformer"
)

// clusterClient is a metadata client of a cluster in memory. It has only lists and watches.
type clusterClient struct{ *fakecluster.Cluster }

func (c clusterClient) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	all := c.Cluster.Resource(gvr)
	return clusterGetter{clusterResource{all: all}, all}
}

type clusterGetter struct {
	clusterResource

	all dynamic.NamespaceableResourceInterface
}

func (g clusterGetter) Namespace(namespace string) metadata.ResourceInterface {
	return clusterResource{all: g.all.Namespace(namespace)}
}

type clusterResource struct {
	metadata.ResourceInterface // nil

	all dynamic.ResourceInterface
}

func (r clusterResource) List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	whole, err := r.all.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: whole.GetResourceVersion(), Continue: whole.GetContinue()}}
	for i := range whole.Items {
		list.Items = append(list.Items, *partial(&whole.Items[i]))
	}
	return list, nil
}

func (r clusterResource) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	whole, err := r.all.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(whole, func(e watch.Event) (watch.Event, bool) {
		if object, is := e.Object.(*unstructured.Unstructured); is {
			e.Object = partial(object)
		}
		return e, true
	}), nil
}

// partial returns the metadata of object.
func partial(object *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, m); err != nil {
		panic(err)
	}
	m.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return m
}

// history is a handler that records the events of each object. Updates that change nothing don't count: their
// number is not part of the contract.
type history struct {
	mu     sync.Mutex
	events map[string][]string // by key
	last   map[string]string
}

func newHistory() *history { return &history{events: map[string][]string{}, last: map[string]string{}} }

func (h *history) OnAdd(obj any, _ bool) { h.record("add", obj) }
func (h *history) OnUpdate(_, obj any)   { h.record("update", obj) }
func (h *history) OnDelete(obj any)      { h.record("delete", obj) }

func (h *history) record(kind string, obj any) {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = unknown.Obj
	}
	key, version := versionOf(obj)
	if kind == "delete" { // its version depends on what the server reported last
		version = ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if kind != "update" || h.last[key] != version {
		h.events[key] = append(h.events[key], kind+" "+version)
	}
	h.last[key] = version
}

// versionOf returns the key and the version of an object, which must be metadata.
func versionOf(obj any) (key, version string) {
	m := obj.(*metav1.PartialObjectMetadata)
	return m.Namespace + "/" + m.Name, fmt.Sprint(m.UID, " ", m.ResourceVersion)
}

// Random changes of objects give the same events and caches as with client-go's factory. If watches and requests
// fail too, the events may differ, since a list merges changes. The cache has then what the server has, and each
// handler what is cached.
func TestFactory_RandomOperationsAsClientGo(t *testing.T) {
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { compareWithClientGo(t, seed) }) })
	}
}

func compareWithClientGo(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // test data
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	cluster := fakecluster.New(fakecluster.Type{GVR: gvr, Kind: "Widget", Namespaced: true})
	cluster.SetVersion(1000)
	faults, resync, namespace := r.IntN(2) == 0, []time.Duration{0, 7 * time.Minute}[r.IntN(2)], []string{"", "ns"}[r.IntN(2)]
	selector := []string{"", "x!=3"}[r.IntN(2)]
	tweak := func(o *metav1.ListOptions) { o.LabelSelector = selector }
	factories := []upstream.SharedInformerFactory{
		upstream.NewFilteredSharedInformerFactory(clusterClient{cluster}, resync, namespace, tweak),
		metadatainformer.NewFilteredSharedInformerFactory(clusterClient{cluster}, resync, namespace, tweak),
	}
	handlers := [2][]*history{}
	listen := func() {
		for i, f := range factories {
			h := newHistory()
			handlers[i] = append(handlers[i], h)
			if _, err := f.ForResource(gvr).Informer().AddEventHandler(h); err != nil {
				t.Fatal(err)
			}
		}
	}
	listen()
	stop, startAt := make(chan struct{}), r.IntN(10)
	for step := range 60 {
		if step == startAt {
			for _, f := range factories {
				f.Start(stop)
			}
		}
		synctest.Wait()
		if step == 40 {
			listen()
			synctest.Wait()
		}
		change(t, r, cluster, gvr, faults)
		time.Sleep([]time.Duration{0, time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 40 * time.Second}[r.IntN(5)])
	}
	cluster.Intercept(nil)
	time.Sleep(time.Hour)
	synctest.Wait()
	server, err := cluster.Resource(gvr).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range server.Items {
		key, version := versionOf(partial(&server.Items[i]))
		want[key] = version
	}
	var caches [2]map[string]string
	for i, f := range factories {
		caches[i] = map[string]string{}
		objects, err := f.ForResource(gvr).Lister().List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			key, version := versionOf(object)
			caches[i][key] = version
		}
	}
	if diff := cmp.Diff(want, caches[1]); diff != "" {
		t.Errorf("cache (-server +ours):\n%s", diff)
	}
	if diff := cmp.Diff(caches[0], caches[1]); diff != "" && !faults {
		t.Errorf("caches (-client-go +ours):\n%s", diff)
	}
	for n, theirs := range handlers[0] {
		ours := handlers[1][n]
		if diff := cmp.Diff(theirs.events, ours.events); diff != "" && !faults {
			t.Errorf("events of handler %d (-client-go +ours):\n%s", n, diff)
		}
		cached := maps.Clone(ours.last)
		maps.DeleteFunc(cached, func(_, version string) bool { return version == "" })
		if diff := cmp.Diff(caches[1], cached); diff != "" {
			t.Errorf("handler %d does not have what is cached (-cache +handler):\n%s", n, diff)
		}
	}
	close(stop)
	for _, f := range factories {
		f.Shutdown()
	}
}

// change makes a random change of the objects, or of the cluster.
func change(t *testing.T, r *rand.Rand, cluster *fakecluster.Cluster, gvr schema.GroupVersionResource, faults bool) {
	t.Helper()
	objects := cluster.Resource(gvr).Namespace([]string{"ns", "other"}[r.IntN(2)])
	name, label := fmt.Sprintf("w%d", r.IntN(4)), map[string]string{"x": fmt.Sprint(r.IntN(5))}
	switch op := r.IntN(13); {
	case op < 4:
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("example.com/v1")
		object.SetKind("Widget")
		object.SetName(name)
		object.SetLabels(label)
		if _, err := objects.Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	case op < 7:
		if object, err := objects.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
			object.SetLabels(label)
			if _, err := objects.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	case op < 9:
		if err := objects.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	case !faults:
	case op == 9:
		cluster.CloseWatches(gvr)
	case op == 10:
		cluster.Expire(gvr)
		cluster.CloseWatches(gvr)
	case op == 11:
		fault := []error{apierrors.NewInternalError(errors.New("bad")), apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewNotFound(schema.GroupResource{}, "")}[r.IntN(3)]
		verbs := [][]string{{"watch"}, {"list"}, {"list", "watch"}}[r.IntN(3)]
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if slices.Contains(verbs, req.Verb) {
				return fault
			}
			return nil
		})
	default:
		cluster.Intercept(nil)
	}
}

package shapes_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // the zero logger is silent
	fakecluster.LogErrorsAtOnce()
	if isChild() { // its informers may run until it ends
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// factory is a parameter or a field in programs that name client-go's type.
type factory = upstream.DynamicSharedInformerFactory

type tweak = func(*metav1.ListOptions)

// library has the constructors of one package.
type library struct {
	name                string
	packed              bool // its caches are packed
	newFactory          func(client dynamic.Interface, resync time.Duration) factory
	newFiltered         func(client dynamic.Interface, resync time.Duration, namespace string, tweak tweak) factory
	newFilteredInformer func(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resync time.Duration, indexers cache.Indexers, tweak tweak) informers.GenericInformer
}

const clientGo = "client-go"

var libraries = []library{
	{
		name: clientGo,
		newFactory: func(client dynamic.Interface, resync time.Duration) factory {
			return upstream.NewDynamicSharedInformerFactory(client, resync)
		},
		newFiltered: func(client dynamic.Interface, resync time.Duration, namespace string, tweak tweak) factory {
			return upstream.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
		},
		newFilteredInformer: func(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resync time.Duration, indexers cache.Indexers, tweak tweak) informers.GenericInformer {
			return upstream.NewFilteredDynamicInformer(client, gvr, namespace, resync, indexers, tweak)
		},
	},
	ours("gvrkit", false),
	ours("gvrkit with packed caches", true),
}

func ours(name string, packed bool) library {
	return library{
		name: name, packed: packed,
		newFactory: func(client dynamic.Interface, resync time.Duration) factory {
			return dynamicinformer.NewDynamicSharedInformerFactory(client, resync)
		},
		newFiltered: func(client dynamic.Interface, resync time.Duration, namespace string, tweak tweak) factory {
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
		},
		newFilteredInformer: dynamicinformer.NewFilteredDynamicInformer,
	}
}

// setenv sets the form of the caches that the test makes from here on.
func (l library) setenv(t *testing.T) {
	t.Helper()
	if l.packed {
		t.Setenv("GVRKIT_PACKED_CACHES", "true")
	}
}

// shape is one way in which programs use the package. Its program notes what it sees.
type shape struct {
	name string
	use  func(p *program)
	want []string // the notes

	// clientGo are the notes with client-go, if they are others. Then difference is the row of docs/migration.md,
	// which is client-go's column of the table, and want are the notes with gvrkit.
	clientGo   []string
	difference string
}

// shapes are all shapes that run in bubbles.
var shapes = slices.Concat(requestShapes, stopShapes, handlerShapes, storeShapes, errorShapes, typeShapes, fakeShapes)

// program is one run of a shape with one library, in a bubble. Its cluster has two types and no objects.
type program struct {
	library
	t       *testing.T
	cluster *fakecluster.Cluster
	stop    <-chan struct{} // closes when the shape has returned

	mu    sync.Mutex
	notes []string
}

func (p *program) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// must ends the test if a call that the shape is not about has failed.
func (p *program) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// run runs the program of s in a bubble, and returns its notes.
func run(t *testing.T, l library, s shape) (notes []string) {
	t.Helper()
	l.setenv(t)
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		p := &program{library: l, t: t, cluster: fakecluster.New(widgetType, nodeType), stop: stop}
		func() {
			defer close(stop) // a goroutine that does not end then fails the bubble
			s.use(p)
		}()
		notes = p.notes
	})
	return notes
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		for _, l := range libraries {
			t.Run(s.name+"/"+l.name, func(t *testing.T) { s.check(t, l, run(t, l, s)) })
		}
	}
}

func (s *shape) check(t *testing.T, l library, notes []string) {
	t.Helper()
	want := s.want
	if l.name == clientGo && s.clientGo != nil {
		want = s.clientGo
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// Each difference is in docs/migration.md, and is one.
func TestShapes_DifferencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| client-go | gvrkit |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, s := range shapes {
		switch {
		case s.clientGo == nil && s.difference == "":
		case s.clientGo == nil || s.difference == "" || slices.Equal(s.clientGo, s.want):
			t.Errorf("%s: it needs two expectations and a row of docs/migration.md", s.name)
		case !strings.Contains(table, "| "+s.difference+" |"):
			t.Errorf("%s: docs/migration.md has no row %q", s.name, s.difference)
		}
	}
}

// Two types, one with namespaces and one without.
var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	nodes   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "nodes"}

	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
	nodeType   = fakecluster.Type{GVR: nodes, Kind: "Node"}
)

// widget returns an object without a cluster's fields. Its spec has a size.
func widget(namespace, name string, size int64) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"app": name}},
		"spec":     map[string]any{"size": size},
	}}
	obj.SetNamespace(namespace)
	return obj
}

func (p *program) create(namespace, name string) *unstructured.Unstructured {
	p.t.Helper()
	return p.createIn(p.cluster, widget(namespace, name, 1))
}

func (p *program) createIn(client dynamic.Interface, obj *unstructured.Unstructured) *unstructured.Unstructured {
	p.t.Helper()
	created, err := client.Resource(widgets).Namespace(obj.GetNamespace()).Create(p.t.Context(), obj, metav1.CreateOptions{})
	p.must(err)
	return created
}

// resize updates the size of a widget in namespace ns.
func (p *program) resize(name string, size int64) {
	p.t.Helper()
	client := p.cluster.Resource(widgets).Namespace("ns")
	obj, err := client.Get(p.t.Context(), name, metav1.GetOptions{})
	p.must(err)
	p.must(unstructured.SetNestedField(obj.Object, size, "spec", "size"))
	_, err = client.Update(p.t.Context(), obj, metav1.UpdateOptions{})
	p.must(err)
}

// removeA deletes ns/a.
func (p *program) removeA() {
	p.t.Helper()
	p.must(p.cluster.Resource(widgets).Namespace("ns").Delete(p.t.Context(), "a", metav1.DeleteOptions{}))
}

// noteOpen notes the number of open watches.
func (p *program) noteOpen() {
	synctest.Wait()
	p.note("watches: %d widgets, %d nodes", p.cluster.OpenWatches(widgets), p.cluster.OpenWatches(nodes))
}

// events is a handler that records its events, as "add ns/name". It is safe for concurrent use.
type events struct {
	mu   sync.Mutex
	seen []string
}

func (e *events) record(event string, obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		key = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, event+" "+key)
}

func (e *events) OnAdd(obj any, _ bool) { e.record("add", obj) }
func (e *events) OnUpdate(_, obj any)   { e.record("update", obj) }
func (e *events) OnDelete(obj any)      { e.record("delete", obj) }

// listen adds a handler to informer.
func (p *program) listen(informer cache.SharedIndexInformer) *events {
	p.t.Helper()
	e := &events{}
	_, err := informer.AddEventHandler(e)
	p.must(err)
	return e
}

// noteEvents waits until all goroutines are idle, and notes the events since the last call, sorted: there is no order
// between objects.
func (p *program) noteEvents(what string, e *events) {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.seen)
	p.note("%s: %s", what, strings.Join(e.seen, ", "))
	e.seen = nil
}

// after returns a channel that closes after d.
func after(d time.Duration) <-chan struct{} {
	ch := make(chan struct{})
	time.AfterFunc(d, func() { close(ch) })
	return ch
}

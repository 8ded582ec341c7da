package source_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// The set, the type, the objects and the failures of single namespaces change at random. At the end, the informer has
// what plain lists of the namespaces in the set have, and the handler got consistent events.
func TestNamespacesModel_InformerHasTheObjectsOfTheSet(t *testing.T) {
	seeds := make([]uint64, fewer(200))
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			runNamespacesModel(t, seed)
			if t.Failed() {
				t.Errorf("go test -run NamespacesModel -seed %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

func runNamespacesModel(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible
	set := source.NewNamespaces("n0", "n1")
	w := newTestInformer(t, func(cfg *source.Config) { cfg.Namespaces, cfg.KeepCache = set, seed%2 == 0 })
	checker := &keyChecker{t: t, there: map[string]metav1.Object{}}
	if _, err := w.AddEventHandler(checker); err != nil {
		t.Fatal(err)
	}
	m := &namespacesModel{model: model{testInformer: w, random: random}, set: set, failing: map[string]bool{}}
	for range 80 {
		m.step()
		if random.IntN(3) > 0 {
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
	}
	m.settle()
	want := m.reference()
	if diff := cmp.Diff(want, w.keys()); diff != "" {
		t.Errorf("store (-cluster +informer):\n%s", diff)
	}
	if diff := cmp.Diff(want, checker.keys()); diff != "" {
		t.Errorf("handler (-cluster +handler):\n%s", diff)
	}
	for _, key := range want {
		name, _ := parseKey(key)
		got, err := w.cluster.Resource(widgets).Namespace(name[0]).Get(t.Context(), name[1], metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if have := checker.there[key]; have.GetResourceVersion() != got.GetResourceVersion() {
			t.Errorf("%s has version %s in the handler, and %s in the cluster", key, have.GetResourceVersion(), got.GetResourceVersion())
		}
	}
	if names, _ := set.Current(); len(names) != w.cluster.OpenWatches(widgets) {
		t.Errorf("open watches = %d, want one for each of %v", w.cluster.OpenWatches(widgets), names)
	}
	for _, state := range w.source.Namespaces() {
		if !state.Listed || state.Failure.Err != nil {
			t.Errorf("%+v", state)
		}
	}
}

func parseKey(key string) (parts [2]string, ok bool) {
	_, err := fmt.Sscanf(key[:2]+" "+key[3:], "%s %s", &parts[0], &parts[1])
	return parts, err == nil
}

// namespacesModel changes a set of namespaces and its cluster at random.
type namespacesModel struct {
	model
	set     *source.Namespaces
	mu      sync.Mutex
	failing map[string]bool // verb and namespace
}

func (m *namespacesModel) namespace() string { return fmt.Sprintf("n%d", m.random.IntN(4)) }

func (m *namespacesModel) step() {
	switch m.random.IntN(10) {
	case 0, 1:
		m.changeSet()
	case 2:
		m.stepFailure()
	case 3:
		if kind := m.random.IntN(7); kind != 5 { // failures are those of namespaces
			m.stepTypeOf(kind)
		}
	default:
		m.stepObjectIn(m.namespace())
	}
}

func (m *namespacesModel) changeSet() {
	var names []string
	for i := range 4 {
		if m.random.IntN(2) == 0 {
			names = append(names, fmt.Sprintf("n%d", i))
		}
	}
	m.set.Set(names...)
}

func (m *namespacesModel) stepFailure() {
	m.mu.Lock()
	key := []string{"list ", "watch "}[m.random.IntN(2)] + m.namespace()
	m.failing[key] = !m.failing[key]
	m.mu.Unlock()
	m.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.failing[req.Verb+" "+req.Namespace] {
			return apierrors.NewServiceUnavailable("down")
		}
		return nil
	})
	if m.random.IntN(2) == 0 {
		m.cluster.CloseWatches(widgets)
	}
}

func (m *namespacesModel) stepObjectIn(namespace string) {
	name := string(rune('a' + m.random.IntN(4)))
	client := m.cluster.Resource(widgets).Namespace(namespace)
	switch m.random.IntN(7) {
	case 0, 1, 2:
		obj := newObject(name)
		obj.SetNamespace(namespace)
		obj.SetResourceVersion("")
		_, _ = client.Create(m.t.Context(), obj, metav1.CreateOptions{}) // fails if the object exists or the type does not
	case 3, 4:
		_ = client.Delete(m.t.Context(), name, metav1.DeleteOptions{})
	default:
		if obj, err := client.Get(m.t.Context(), name, metav1.GetOptions{}); err == nil {
			obj.SetLabels(map[string]string{"color": fmt.Sprint(m.random.IntN(100))})
			_, _ = client.Update(m.t.Context(), obj, metav1.UpdateOptions{})
		}
	}
}

// reference returns the keys of plain lists of the namespaces in the set.
func (m *namespacesModel) reference() []string {
	var keys []string
	names, _ := m.set.Current()
	for _, namespace := range names {
		list, err := m.cluster.Resource(widgets).Namespace(namespace).List(m.t.Context(), metav1.ListOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		for _, item := range list.Items {
			keys = append(keys, item.GetNamespace()+"/"+item.GetName())
		}
	}
	slices.Sort(keys)
	return keys
}

// keyChecker is a handler that checks the order of the events of each object.
type keyChecker struct {
	t     *testing.T
	there map[string]metav1.Object
}

func (c *keyChecker) uid(key string) types.UID {
	if obj := c.there[key]; obj != nil {
		return obj.GetUID()
	}
	return ""
}

func keyOfObject(obj any) (string, metav1.Object) {
	object := obj.(metav1.Object)
	return object.GetNamespace() + "/" + object.GetName(), object
}

func (c *keyChecker) OnAdd(obj any, _ bool) {
	key, object := keyOfObject(obj)
	if c.there[key] != nil {
		c.t.Errorf("%s is added though it is there", key)
	}
	c.there[key] = object
}

func (c *keyChecker) OnUpdate(old, obj any) {
	key, object := keyOfObject(obj)
	if _, was := keyOfObject(old); c.uid(key) != object.GetUID() || was.GetUID() != object.GetUID() {
		c.t.Errorf("%s is updated to %s and was added as %s", key, object.GetUID(), c.uid(key))
	}
	if c.there[key] != nil && older(object, c.there[key]) {
		c.t.Errorf("%s goes back from version %s to %s", key, c.there[key].GetResourceVersion(), object.GetResourceVersion())
	}
	c.there[key] = object
}

func (c *keyChecker) OnDelete(obj any) {
	if _, is := obj.(metav1.Object); !is {
		c.t.Errorf("delete event with a %T", obj)
		return
	}
	key, object := keyOfObject(obj)
	switch {
	case c.uid(key) != object.GetUID():
		c.t.Errorf("%s is deleted as %s and was added as %s", key, object.GetUID(), c.uid(key))
	case older(object, c.there[key]):
		c.t.Errorf("%s is deleted at version %s, before its last state", key, object.GetResourceVersion())
	}
	delete(c.there, key)
}

func older(a, b metav1.Object) bool {
	x, y := a.GetResourceVersion(), b.GetResourceVersion()
	return len(x) < len(y) || len(x) == len(y) && x < y
}

func (c *keyChecker) keys() []string {
	var keys []string
	for key := range c.there {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

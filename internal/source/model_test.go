package source_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/source"
)

var seed = flag.Uint64("seed", 0, "the only seed of the model test")

// A type and its objects change at random, also while requests fail. At the end, the informer has
// the objects of the cluster, and the handler got consistent events.
func TestModel_InformerHasTheObjectsOfTheCluster(t *testing.T) {
	seeds := make([]uint64, 300)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
		if t.Failed() {
			t.Fatalf("go test -run Model -seed %d", seed)
		}
	}
}

func runModel(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible
	w := newTestInformer(t, func(cfg *source.Config) { cfg.KeepCache = seed%2 == 0 }, "a", "b", "c")
	eventChecker := &eventChecker{t: t, there: map[string]types.UID{}}
	if _, err := w.AddEventHandler(eventChecker); err != nil {
		t.Fatal(err)
	}
	m := &model{testInformer: w, random: random}
	for range 60 {
		m.step()
		if random.IntN(3) > 0 {
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
	}
	m.settle()
	want := m.keys()
	if diff := cmp.Diff(want, w.keys()); diff != "" {
		t.Errorf("store (-cluster +informer):\n%s", diff)
	}
	if diff := cmp.Diff(want, eventChecker.keys()); diff != "" {
		t.Errorf("handler (-cluster +handler):\n%s", diff)
	}
}

// model applies random changes to a cluster.
type model struct {
	*testInformer
	random *rand.Rand
	absent bool // the type does not exist
	broken bool // requests fail
}

func (m *model) step() {
	if m.random.IntN(2) == 0 {
		m.stepObject()
	} else {
		m.stepType()
	}
}

// stepObject changes an object.
func (m *model) stepObject() {
	name := string(rune('a' + m.random.IntN(6)))
	client := m.cluster.Resource(widgets).Namespace("ns")
	switch m.random.IntN(7) {
	case 0, 1, 2:
		obj := newObject(name)
		obj.SetResourceVersion("")
		_, _ = client.Create(m.t.Context(), obj, metav1.CreateOptions{}) // fails if the object exists or the type does not
	case 3, 4:
		_ = client.Delete(m.t.Context(), name, metav1.DeleteOptions{})
	case 5, 6:
		if obj, err := client.Get(m.t.Context(), name, metav1.GetOptions{}); err == nil {
			obj.SetLabels(map[string]string{"color": fmt.Sprint(m.random.IntN(100))})
			_, _ = client.Update(m.t.Context(), obj, metav1.UpdateOptions{})
		}
	}
}

// stepType changes the type, or makes requests fail.
func (m *model) stepType() { m.stepTypeOf(m.random.IntN(7)) }

func (m *model) stepTypeOf(kind int) {
	switch kind {
	case 0:
		m.cluster.CloseWatches(widgets)
	case 1:
		if !m.absent {
			m.cluster.CloseWatches(widgets)
			m.cluster.Expire(widgets)
		}
	case 2:
		m.goAway()
	case 3:
		if m.absent {
			m.createType()
			m.absent = false
		}
	case 4: // deleted and created again without an event
		if !m.absent {
			m.cluster.Serve(widgetType)
			m.replaceType()
		}
	case 5:
		m.broken = !m.broken
		m.fail()
	case 6:
		if !m.absent {
			set(m.available, []source.Serving{source.Held, source.Served, source.Missing}[m.random.IntN(3)])
		}
	}
}

func (m *model) goAway() {
	if m.absent {
		return
	}
	m.absent = true
	serving := source.Gone
	if m.random.IntN(2) == 0 {
		serving = source.Missing
	}
	m.cluster.Withdraw(widgets)
	set(m.available, serving)
}

func (m *model) fail() {
	if !m.broken {
		m.cluster.Intercept(nil)
		return
	}
	verb := []string{"list", "watch"}[m.random.IntN(2)]
	m.cluster.Intercept(failing(verb, apierrors.NewServiceUnavailable("down"), m.random.IntN(3)))
	m.cluster.CloseWatches(widgets)
}

// settle ends all failures.
func (m *model) settle() {
	m.cluster.Intercept(nil)
	if m.absent {
		m.createType()
		m.absent = false
	}
	set(m.available, source.Served)
	time.Sleep(time.Minute)
	synctest.Wait()
}

// keys returns the cluster's objects.
func (m *model) keys() []string {
	list, err := m.cluster.Resource(widgets).List(m.t.Context(), metav1.ListOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	var keys []string
	for _, item := range list.Items {
		keys = append(keys, item.GetNamespace()+"/"+item.GetName())
	}
	slices.Sort(keys)
	return keys
}

// eventChecker is a handler that checks the order of events.
type eventChecker struct {
	t     *testing.T
	there map[string]types.UID
}

func (b *eventChecker) OnAdd(obj any, _ bool) {
	object := obj.(metav1.Object)
	if _, there := b.there[object.GetName()]; there {
		b.t.Errorf("%s is added though it is there", object.GetName())
	}
	b.there[object.GetName()] = object.GetUID()
}

func (b *eventChecker) OnUpdate(oldObj, newObj any) {
	old, object := oldObj.(metav1.Object), newObj.(metav1.Object)
	if uid := b.there[object.GetName()]; uid != object.GetUID() || uid != old.GetUID() {
		b.t.Errorf("%s is updated from %s to %s and was added as %s", object.GetName(), old.GetUID(), object.GetUID(), uid)
	}
}

func (b *eventChecker) OnDelete(obj any) {
	object, ok := obj.(metav1.Object)
	if !ok {
		b.t.Errorf("delete event with a %T", obj)
		return
	}
	if uid := b.there[object.GetName()]; uid != object.GetUID() {
		b.t.Errorf("%s is deleted as %s and was added as %s", object.GetName(), object.GetUID(), uid)
	}
	delete(b.there, object.GetName())
}

func (b *eventChecker) keys() []string {
	var keys []string
	for name := range b.there {
		keys = append(keys, "ns/"+name)
	}
	slices.Sort(keys)
	return keys
}

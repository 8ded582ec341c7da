package envtest_test

import (
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// ledger is a handler that holds what it is told to the rules: an object is added that is
// not there, changed into itself and deleted when it is there, and objects of a type that
// was created again come when all of the old one have gone.
type ledger struct {
	mu      sync.Mutex
	there   map[string]types.UID
	of      map[string]string // which generation each is of, as its label says
	adds    int
	updates int // but for those with equal resourceVersions
	deletes int
	broken  []string
}

// keepLedger adds one to the lease's informer.
func keepLedger(l *dynamicinformer.Lease) *ledger {
	GinkgoHelper()
	b := &ledger{there: map[string]types.UID{}, of: map[string]string{}}
	_, err := l.AddEventHandler(b)
	Expect(err).NotTo(HaveOccurred())
	return b
}

func (b *ledger) OnAdd(obj any, _ bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, object := b.open("add", obj)
	if _, there := b.there[key]; there {
		b.complain("%s is added though it is there", key)
	}
	generation := object.GetLabels()["generation"]
	for other, old := range b.of {
		if old != generation {
			b.complain("%s of generation %s is added while %s of %s is there", key, generation, other, old)
			break
		}
	}
	b.there[key], b.of[key] = object.GetUID(), generation
	b.adds++
}

func (b *ledger) OnUpdate(oldObj, newObj any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, object := b.open("update", newObj)
	_, old := b.open("update", oldObj)
	if uid := b.there[key]; uid != object.GetUID() || uid != old.GetUID() {
		b.complain("%s is updated from %s to %s and was added as %s", key, old.GetUID(), object.GetUID(), uid)
	}
	if old.GetResourceVersion() != object.GetResourceVersion() {
		b.updates++
	}
}

func (b *ledger) OnDelete(obj any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, object := b.open("delete", obj)
	if uid, there := b.there[key]; !there || uid != object.GetUID() {
		b.complain("%s is deleted as %s and was added as %q", key, object.GetUID(), uid)
	}
	if _, found, _ := unstructured.NestedMap(object.Object, "spec"); !found {
		b.complain("%s is deleted without its last state", key)
	}
	delete(b.there, key)
	delete(b.of, key)
	b.deletes++
}

func (b *ledger) open(what string, obj any) (string, *unstructured.Unstructured) {
	if last, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
		obj = last.Obj
	}
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		b.complain("%s of a %T", what, obj)
		object = &unstructured.Unstructured{Object: map[string]any{}}
	}
	return cache.MetaObjectToName(object).String(), object
}

func (b *ledger) complain(format string, args ...any) {
	b.broken = append(b.broken, fmt.Sprintf(format, args...))
}

// entries returns how many adds and deletes there were.
func (b *ledger) entries() [2]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return [2]int{b.adds, b.deletes}
}

// changes returns how many updates there were, without those that change nothing.
func (b *ledger) changes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.updates
}

// check expects that all rules have been kept.
func (b *ledger) check() {
	GinkgoHelper()
	b.mu.Lock()
	defer b.mu.Unlock()
	Expect(b.broken).To(BeEmpty())
}

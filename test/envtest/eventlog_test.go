package envtest_test

import (
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// eventLog is a handler that checks events: an object is added if the handler does not have it,
// and updated or deleted with the same UID if the handler has it. When a type was created again,
// all objects of the old type are deleted before the first object of the new type is added.
type eventLog struct {
	whole func(obj any) bool // whether obj is of the right Go type, with its state

	mu         sync.Mutex
	present    map[string]types.UID
	generation map[string]string // of each object, from its label
	adds       int
	updates    int // without updates with equal resourceVersions
	unchanged  int // updates with equal resourceVersions
	deletes    int
	violations []string
}

// newEventLog adds an eventLog to the lease's informer.
func newEventLog(l *dynamicinformer.Lease) *eventLog {
	GinkgoHelper()
	return newEventLogOf(l, func(obj any) bool {
		object, is := obj.(*unstructured.Unstructured)
		if !is {
			return false
		}
		_, found, _ := unstructured.NestedMap(object.Object, "spec")
		return found
	})
}

// newEventLogOf is newEventLog for an informer whose objects are as whole demands.
func newEventLogOf(l *dynamicinformer.Lease, whole func(obj any) bool) *eventLog {
	GinkgoHelper()
	b := &eventLog{whole: whole, present: map[string]types.UID{}, generation: map[string]string{}}
	_, err := l.AddEventHandler(b)
	Expect(err).NotTo(HaveOccurred())
	return b
}

func (b *eventLog) OnAdd(obj any, _ bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, object := b.open("add", obj)
	if _, present := b.present[key]; present {
		b.report("%s is added twice", key)
	}
	generation := object.GetLabels()["generation"]
	for other, old := range b.generation {
		if old != generation {
			b.report("%s of generation %s is added before the deletion of %s of generation %s", key, generation, other, old)
			break
		}
	}
	b.present[key], b.generation[key] = object.GetUID(), generation
	b.adds++
}

func (b *eventLog) OnUpdate(oldObj, newObj any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, object := b.open("update", newObj)
	_, old := b.open("update", oldObj)
	if uid := b.present[key]; uid != object.GetUID() || uid != old.GetUID() {
		b.report("%s is updated from UID %s to %s and was added with UID %s", key, old.GetUID(), object.GetUID(), uid)
	}
	if old.GetResourceVersion() != object.GetResourceVersion() {
		b.updates++
	} else {
		b.unchanged++
	}
}

func (b *eventLog) OnDelete(obj any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, object := b.open("delete", obj)
	if uid, present := b.present[key]; !present || uid != object.GetUID() {
		b.report("%s is deleted with UID %s and was added with UID %q", key, object.GetUID(), uid)
	}
	delete(b.present, key)
	delete(b.generation, key)
	b.deletes++
}

func (b *eventLog) open(what string, obj any) (string, metav1.Object) {
	if last, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
		obj = last.Obj
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		b.report("%s event of type %T", what, obj)
		object = &metav1.ObjectMeta{}
	} else if !b.whole(obj) {
		b.report("%s of %s: its type is %T, or it has no state", what, object.GetName(), obj)
	}
	return cache.MetaObjectToName(object).String(), object
}

func (b *eventLog) report(format string, args ...any) {
	b.violations = append(b.violations, fmt.Sprintf(format, args...))
}

// addsAndDeletes returns the numbers of adds and deletes.
func (b *eventLog) addsAndDeletes() [2]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return [2]int{b.adds, b.deletes}
}

// changes returns the number of updates with changes.
func (b *eventLog) changes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.updates
}

// repeats returns the number of updates with equal resourceVersions.
func (b *eventLog) repeats() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unchanged
}

// check expects that there are no violations.
func (b *eventLog) check() {
	GinkgoHelper()
	b.mu.Lock()
	defer b.mu.Unlock()
	Expect(b.violations).To(BeEmpty())
}

package handlers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// packedModel is a handler of packed objects that checks each call against the calls before.
type packedModel struct {
	knows    map[string]string // name to version
	problems []string
}

func (m *packedModel) call(text, name, version string, knows bool) {
	if _, known := m.knows[name]; known != knows {
		m.problems = append(m.problems, fmt.Sprintf("%s of %s %s, known: %v", text, name, version, known))
	}
	m.knows[name] = version
}

func (m *packedModel) OnAdd(obj *packed.Object, _ bool) {
	m.call("addition", obj.GetName(), obj.GetResourceVersion(), false)
}

func (m *packedModel) OnUpdate(old, obj *packed.Object) {
	if before := m.knows[old.GetName()]; before != old.GetResourceVersion() {
		m.problems = append(m.problems, fmt.Sprintf("update from %s of %s, which is %s", old.GetResourceVersion(), old.GetName(), before))
	}
	m.call("update", obj.GetName(), obj.GetResourceVersion(), true)
}

func (m *packedModel) OnDelete(obj cache.DeletedObject[*packed.Object]) {
	m.call("deletion", obj.GetName(), "", true)
	delete(m.knows, obj.GetName())
}

func (m *packedModel) OnMoved(obj any) { m.OnDelete(obj.(cache.DeletedObject[*packed.Object])) }

// give calls h as a handler of a set does.
func give(h cache.ResourceEventHandler, e event) {
	switch {
	case e.kind == added:
		h.OnAdd(e.obj, e.initial)
	case e.kind == updated:
		h.OnUpdate(e.old, e.obj)
	case e.moved:
		h.(MovedHandler).OnMoved(e.obj)
	default:
		h.OnDelete(e.obj)
	}
}

// lifecycle is the objects of one name in a cache.
type lifecycle struct {
	cached any       // nil: none
	uid    types.UID // of the last object; it may come back unless it is deleted on the server
	gone   bool      // it is deleted on the server
	// given is the UID of the object that the handler knew before the events that wait, and end what a handler without merging would know
	// of it: "moved" or "deleted". Another object of its name that is deleted shows that it is deleted too.
	given types.UID
	end   string
	last  string // how the last event says that the object is gone, for a handler with merging
}

// next returns a random event.
func (l *lifecycle) next(t *testing.T, r *rand.Rand, packer *packed.Packer, name string, version int) (e event) {
	t.Helper()
	number := any(int64(version))
	if r.IntN(3) == 0 {
		number = version // it is not packed
	}
	if l.cached == nil {
		if l.uid == "" || l.gone || r.IntN(3) == 0 {
			l.uid = types.UID(fmt.Sprint(version))
		}
		l.cached = versionOf(t, packer, name, string(l.uid), version, number)
		return addition(l.cached, r.IntN(3) == 0)
	}
	old := l.cached
	obj := versionOf(t, packer, name, string(l.uid), version, number)
	switch action := r.IntN(8); action {
	case 0:
		return update(old, old)
	case 1, 2, 3:
		l.cached = obj
		return update(old, obj)
	default:
		l.cached, l.gone = nil, action == 4
		e = deletion(obj)
		e.moved = action > 5
		if r.IntN(3) == 0 {
			e.obj = cache.DeletedFinalStateUnknown{Key: "ns/" + name, Obj: old}
		}
		switch {
		case l.uid == l.given && e.moved:
			l.end = "moved"
		case l.uid == l.given || !e.moved:
			l.end = "deleted"
		}
		return e
	}
}

// Random events wait for a handler. Merged, they say the same about each object that the handler knows as one after another: that it is there,
// deleted or moved. The handler gets no events of other objects that are gone. The same is true of a handler of packed objects, for those that are
// packed.
func TestPending_MergedEventsSayTheSame(t *testing.T) {
	seeds, packer := uint64(300), packed.NewPacker()
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 21))
		p := pending{limit: 1 + r.IntN(6), reduce: (&Set{}).reducedEvent}
		merged, plain := &packedModel{knows: map[string]string{}}, &packedModel{knows: map[string]string{}}
		toMerged, toPlain := OfPacked(merged), OfPacked(plain)
		names := map[string]*lifecycle{"x": {}, "y": {}}
		version := 0
		for range 30 {
			for _, l := range names {
				l.given, l.end, l.last = "", "", ""
				if l.cached != nil {
					l.given = l.uid
				}
			}
			for range r.IntN(10) {
				version++
				name := []string{"x", "y"}[r.IntN(2)]
				e := names[name].next(t, r, packer, name, version)
				give(toPlain, e)
				p.add(e)
			}
			states := 0
			for o := p.first; o != nil; o = o.after {
				states += o.states()
			}
			if states != p.states || states > p.limit {
				t.Errorf("seed %d: %d states, %d are counted, and the limit is %d", seed, states, p.states, p.limit)
			}
			for e, some := p.next(); some; e, some = p.next() {
				give(toMerged, e)
				name, _ := cache.DeletionHandlingObjectToName(e.obj)
				switch l := names[name.Name]; {
				case e.kind != deleted:
					l.last = ""
				case e.moved:
					l.last = "moved"
				default:
					l.last = "deleted"
				}
			}
			for name, l := range names {
				want := l.end
				if l.cached != nil || l.given == "" {
					want = ""
				}
				if l.last != want {
					t.Errorf("seed %d, version %d: %s is %q, want %q", seed, version, name, l.last, want)
				}
			}
			if diff := cmp.Diff(plain.knows, merged.knows); diff != "" {
				t.Errorf("seed %d, version %d: packed objects (-plain +merged):\n%s", seed, version, diff)
			}
		}
		for _, problem := range append(plain.problems, merged.problems...) {
			t.Errorf("seed %d: %s", seed, problem)
		}
		if t.Failed() {
			return
		}
	}
}

package handlers

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const modelSlots = 4

// slotOf returns the slot of a UID of the model, which ends with it.
func slotOf(uid types.UID) int { return int(uid[len(uid)-1] - '0') }

// modelShard is a shard whose view and term a test changes.
type modelShard struct {
	mu   sync.Mutex
	view [modelSlots]bool
	term bool
	// quiet has the slots on which no call may be in progress, or begin, except OnMoved: the handlers are quiescent
	// since the process has lost them.
	quiet   [modelSlots]bool
	mayMove [modelSlots]bool // the slots that the view has not had at some time
}

func (s *modelShard) Owns(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownsLocked(slotOf(uid))
}

func (s *modelShard) ownsLocked(slot int) bool { return s.term && s.view[slot] }

func (s *modelShard) Has(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view[slotOf(uid)]
}

// change changes the view or the term.
func (s *modelShard) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	for slot := range modelSlots {
		if s.ownsLocked(slot) {
			s.quiet[slot] = false
		}
		s.mayMove[slot] = s.mayMove[slot] || !s.view[slot]
	}
}

// modelCluster is the objects of a server, and of the cache of an informer with a shard, which follows late.
type modelCluster struct {
	objects, cached map[string]*metav1.PartialObjectMetadata
	follows         [modelSlots]bool // the slots of the cache
	version         int
}

// modelHandler checks each call against the calls before.
type modelHandler struct {
	shard  *modelShard
	random func(n int) int // safe for concurrent use
	slow   int

	mu       sync.Mutex
	knows    map[string]string // name to UID and version
	running  map[types.UID]bool
	problems []string
	resyncs  uint64
	history  []string
}

func (h *modelHandler) OnAdd(obj any, initial bool) { h.call(addition(obj, initial)) }
func (h *modelHandler) OnUpdate(old, obj any)       { h.call(update(old, obj)) }
func (h *modelHandler) OnDelete(obj any)            { h.call(deletion(obj)) }
func (h *modelHandler) OnMoved(obj any)             { h.call(moving(obj)) }

// stateOf returns the UID and version of an object.
func stateOf(obj any) string { return strings.TrimPrefix(addition(obj, false).text(), "add ") }

func (h *modelHandler) call(e event) {
	uid := uidOf(e.obj)
	h.begin(e, uid)
	if pause := h.random(1 + h.slow); pause > 0 {
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, uid)
}

func (h *modelHandler) begin(e event, uid types.UID) {
	h.shard.mu.Lock()
	quiet, mayMove := h.shard.quiet[slotOf(uid)], h.shard.mayMove[slotOf(uid)]
	h.shard.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	text := e.text()
	if e.moved {
		text = strings.Replace(text, "delete", "moved", 1)
	}
	h.history = append(h.history, text)
	problem := func(what string) { h.problems = append(h.problems, fmt.Sprintf("%s: %s", text, what)) }
	name, _ := cache.DeletionHandlingObjectToName(e.obj)
	before, known := h.knows[name.Name]
	switch {
	case e.kind == added && known:
		problem("the handler knows " + before)
	case e.kind == updated && (!known || stateOf(e.old) != before):
		problem(fmt.Sprintf("the handler knows %q", before))
	case e.kind == deleted && !known: // it may know an earlier object of that name, which an update has replaced
		problem("the handler does not know it")
	}
	switch {
	case !e.moved && quiet:
		problem("it is not owned")
	case e.moved && !mayMove:
		problem("its slot was in the view all the time")
	}
	if len(h.running) > 0 {
		problem("during another call")
	}
	if !e.moved {
		h.running[uid] = true
	}
	if e.counts == 0 {
		h.resyncs++
	}
	if e.kind == deleted {
		delete(h.knows, name.Name)
		return
	}
	h.knows[name.Name] = stateOf(e.obj)
}

// Objects come, change and go, and so do slots and terms, while handlers of random speed get the events. A handler gets
// only calls that are possible after the ones before, none for an object that is not owned, and at the end it knows
// the objects of the cache.
func TestOwnership_HandlerKnowsItsObjectsAfterRandomEvents(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { randomOwnership(t, seed) })
	}
}

func randomOwnership(t *testing.T, seed uint64) {
	t.Helper()
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 7))
	random := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
	shard := &modelShard{view: [modelSlots]bool{true, true, false, true}, term: true, mayMove: [modelSlots]bool{2: true}}
	given, i := &feed{}, newFed()
	s := NewSet(i, given, nil)
	s.Owner, s.Moved = shard, movedOf
	h := &modelHandler{shard: shard, random: random, slow: random(4) * 5, knows: map[string]string{}, running: map[types.UID]bool{}}
	group := NewGroup("", Options{Coalescing: random(2) == 0, Recovery: random(2) == 0, States: random(3)})
	period := time.Duration(random(2)) * 2 * time.Second
	if _, err := s.Add(h, cache.HandlerOptions{}, group, period); err != nil {
		t.Fatal(err)
	}
	_, stop := s.Start(t.Context())
	defer stop()

	// The queue of client-go's goroutine.
	events, played := make(chan func(cache.ResourceEventHandler), 10_000), make(chan struct{})
	go func() {
		defer close(played)
		for call := range events {
			call(i.handlers[0])
		}
	}()
	emit := func(call func(cache.ResourceEventHandler)) {
		given.add()
		events <- call
	}
	c := &modelCluster{objects: map[string]*metav1.PartialObjectMetadata{}, cached: map[string]*metav1.PartialObjectMetadata{}, follows: shard.view}
	set := func(name string, obj *metav1.PartialObjectMetadata) { // in the cache; nil deletes
		old := c.cached[name]
		switch {
		case old == nil && obj == nil:
		case old == nil:
			c.cached[name] = obj
			emit(func(h cache.ResourceEventHandler) { h.OnAdd(obj, false) })
		case obj == nil:
			delete(c.cached, name)
			deleted := any(thing(name, string(old.UID), c.version))
			if random(2) == 0 {
				deleted = cache.DeletedFinalStateUnknown{Key: "ns/" + name, Obj: old}
			}
			emit(func(h cache.ResourceEventHandler) { h.OnDelete(deleted) })
		default:
			c.cached[name] = obj
			emit(func(h cache.ResourceEventHandler) { h.OnUpdate(old, obj) })
		}
	}
	put := func(name string, uid types.UID) { // on the server; without a UID: deletes
		c.version++
		if uid == "" {
			delete(c.objects, name)
			set(name, nil)
			return
		}
		obj := thing(name, string(uid), c.version)
		c.objects[name] = obj
		if !c.follows[slotOf(uid)] {
			set(name, nil) // another object of that name
			return
		}
		set(name, obj)
	}
	follow := func() { // the source follows the view
		shard.mu.Lock()
		view := shard.view
		shard.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(c.objects)) {
			obj := c.objects[name]
			switch slot := slotOf(obj.UID); {
			case c.follows[slot] && !view[slot]:
				delete(c.cached, name)
				emit(func(h cache.ResourceEventHandler) { h.OnDelete(movedThing{obj}) })
			case !c.follows[slot] && view[slot]:
				set(name, obj)
			}
		}
		c.follows = view
	}
	quiesce := func(limit time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		shard.mu.Lock()
		var lost [modelSlots]bool
		for slot := range modelSlots {
			lost[slot] = !shard.ownsLocked(slot)
		}
		shard.mu.Unlock()
		if s.Quiesce(ctx) != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for uid := range h.running {
			if lost[slotOf(uid)] {
				h.problems = append(h.problems, fmt.Sprintf("a call for %s is in progress after Quiesce", uid))
			}
		}
		shard.mu.Lock()
		shard.quiet = lost
		shard.mu.Unlock()
	}
	for step := range 400 {
		name := fmt.Sprint(random(6))
		switch action := random(20); {
		case action < 3:
			put(name, "")
		case action < 11 && c.objects[name] != nil:
			put(name, c.objects[name].UID)
		case action < 12:
			put(name, types.UID(fmt.Sprintf("%c%d", 'a'+step%26, random(modelSlots))))
		case action < 14:
			shard.change(func() { slot := random(modelSlots); shard.view[slot] = !shard.view[slot] })
			s.OwnershipChanged()
			quiesce(time.Duration(random(30)) * time.Millisecond)
		case action < 16:
			shard.change(func() { shard.term = !shard.term })
			if random(2) == 0 {
				s.OwnershipChanged()
			}
			quiesce(time.Duration(random(30)) * time.Millisecond)
		case action < 18:
			follow()
		default:
			time.Sleep(time.Duration(random(40)) * time.Millisecond)
		}
	}
	end := random(3) // nothing is owned before the end, or the last view is, or all is
	shard.change(func() {
		shard.term = true
		if end < 2 {
			shard.view = [modelSlots]bool{end == 1, end == 1, end == 1, end == 1}
		}
	})
	s.OwnershipChanged()
	follow()
	time.Sleep(time.Minute)
	want := map[string]string{}
	for name, obj := range c.cached {
		want[name] = stateOf(obj)
	}
	stats := s.Stats(time.Now())[0]
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(want, h.knows); diff != "" {
		h.problems = append(h.problems, "objects (-cache +handler):\n"+diff)
	}
	if stats.Delivered-h.resyncs+stats.Merged != given.Events() || stats.Backlog != 0 || stats.Delivered != uint64(len(h.history)) {
		h.problems = append(h.problems, fmt.Sprintf("%d events, %d resyncs: %+v", given.Events(), h.resyncs, stats))
	}
	for _, problem := range h.problems {
		t.Errorf("seed %d: %s", seed, problem)
	}
	if len(h.problems) > 0 {
		t.Log(strings.Join(h.history, ", "))
	}
	close(events)
	<-played
	close(i.stop)
	s.Wait()
}

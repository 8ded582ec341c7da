package discovery

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// eventOf parses an event from "type kind detail". The detail is the UID of
// the added or removed type, or the change.
func eventOf(text string) Event {
	fields := strings.Fields(text)
	res := Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: fields[0]}}
	switch EventType(fields[1]) {
	case Changed:
		return Event{Type: Changed, Resource: res, Changes: []Change{Change(fields[2])}}
	case Removed:
		res.CRDUID = types.UID(fields[2])
		return Event{Type: Removed, Resource: res, Evidence: Evidence{Kind: CRDDeleted, CRDUID: types.UID(fields[2])}}
	}
	res.CRDUID = types.UID(fields[2])
	return Event{Type: Added, Resource: res}
}

func eventText(event Event) string {
	detail := string(event.Resource.CRDUID)
	if event.Type == Changed {
		detail = fmt.Sprint(event.Changes)
	}
	return fmt.Sprintf("%s %s %s", event.Resource.GVR.Resource, event.Type, detail)
}

// Events that wait for a busy subscriber are merged.
func TestEventQueue_MergesWaitingEvents(t *testing.T) {
	for _, tc := range []struct {
		name      string
		put, want []string
	}{
		{"in order of types", []string{"b Added 1", "a Added 1"}, []string{"b Added 1", "a Added 1"}},
		{"come and gone unseen", []string{"a Added 1", "a Removed 1"}, nil},
		{"come, gone and come", []string{"a Added 1", "a Removed 1", "a Added 2"}, []string{"a Added 2"}},
		{"gone and come", []string{"a Removed 1", "a Added 2"}, []string{"a Removed 1", "a Added 2"}},
		{"gone, come and gone", []string{"a Removed 1", "a Added 2", "a Removed 2"}, []string{"a Removed 1"}},
		{"gone and come twice", []string{"a Removed 1", "a Added 2", "a Removed 2", "a Added 3"}, []string{"a Removed 1", "a Added 3"}},
		{"changed twice", []string{"a Changed Scope", "a Changed Names"}, []string{"a Changed [Scope Names]"}},
		{"changed twice in one respect", []string{"a Changed Scope", "a Changed Scope"}, []string{"a Changed [Scope]"}},
		{"changed and gone", []string{"a Changed Scope", "a Removed 1"}, []string{"a Removed 1"}},
		{"changed, gone and come", []string{"a Changed Scope", "a Removed 1", "a Added 2"}, []string{"a Removed 1", "a Added 2"}},
		{"gone, come and changed", []string{"a Removed 1", "a Added 2", "a Changed Scope"}, []string{"a Removed 1", "a Added "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queue := &eventQueue{news: make(chan struct{}, 1)}
			for _, text := range tc.put {
				queue.put([]Event{eventOf(text)})
			}
			var got []string
			for event := range queue.take {
				got = append(got, eventText(event))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// Subscribers keep or drop their objects by the evidence.
func TestEventQueue_KeepsTheStrongestEvidence(t *testing.T) {
	removed := func(kind EvidenceKind, uid types.UID) Event {
		event := eventOf("a Removed 1")
		event.Evidence = Evidence{Kind: kind, CRDUID: uid}
		return event
	}
	for _, tc := range []struct {
		name        string
		first, last Event
		want        Evidence
	}{
		{"not served, then deleted", removed(NoVersionServed, "1"), removed(CRDDeleted, "1"), Evidence{Kind: CRDDeleted, CRDUID: "1"}},
		{"then another not served", removed(NoVersionServed, "1"), removed(NoVersionServed, "2"), Evidence{Kind: CRDDeleted, CRDUID: "1"}},
		{"not served, then not listed", removed(NoVersionServed, "1"), removed(NotListed, ""), Evidence{Kind: NotListed}},
		{"deleted, then not served with the same UID", removed(CRDDeleted, "1"), removed(NoVersionServed, "1"), Evidence{Kind: CRDDeleted, CRDUID: "1"}},
		{"deleted, UID not known, then another not served", removed(CRDDeleted, ""), removed(NoVersionServed, "2"), Evidence{Kind: CRDDeleted}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queue := &eventQueue{news: make(chan struct{}, 1)}
			for _, events := range [][]Event{{tc.first, eventOf("a Added 2"), tc.last}, {tc.first, tc.last}} {
				queue.put(events)
				event, _ := queue.next()
				if event.Evidence != tc.want || event.Resource.CRDUID != "1" {
					t.Errorf("told %+v of %s, want %+v", event.Evidence, event.Resource.CRDUID, tc.want)
				}
				if more, some := queue.next(); some {
					t.Errorf("also told %v", more)
				}
			}
		})
	}
}

// Another server may have served a type between two CRDs. A subscriber that was busy meanwhile gets the end of the first one.
func TestEventQueue_AnotherCRDIsAnotherType(t *testing.T) {
	moved := func(from, to types.UID) Event {
		event := eventOf("a Changed Backing")
		event.Old, event.Resource.CRDUID = event.Resource, to
		event.Old.CRDUID = from
		return event
	}
	for _, tc := range []struct {
		name string
		to   types.UID
		want []string
	}{
		{"another CRD", "2", []string{"a Removed 1", "a Added 2"}},
		{"the same CRD", "1", []string{"a Changed [Backing]"}},
		{"a CRD that is not known", "", []string{"a Changed [Backing]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queue := &eventQueue{news: make(chan struct{}, 1)}
			queue.put([]Event{moved("1", ""), moved("", tc.to)})
			var got []string
			for event := range queue.take {
				got = append(got, eventText(event))
				if event.Type == Removed && (event.Evidence.Kind != CRDDeleted || event.Evidence.CRDUID != "1" || event.Evidence.At.IsZero()) {
					t.Errorf("evidence = %+v", event.Evidence)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// A subscriber may have kept the objects of a type that is not served.
func TestEventQueue_TheDeletionOfACRDThatIsNotServedIsNews(t *testing.T) {
	queue := &eventQueue{news: make(chan struct{}, 1)}
	notServed := eventOf("a Removed 1")
	notServed.Evidence.Kind = NoVersionServed
	for range 2 {
		queue.put([]Event{notServed})
		if event, _ := queue.next(); event.Evidence.Kind != NoVersionServed {
			t.Errorf("told %+v first", event)
		}
		queue.put([]Event{eventOf("a Added 1"), notServed})
		if event, some := queue.next(); some {
			t.Errorf("told %v, which is known", event)
		}
		queue.put([]Event{eventOf("a Added 1"), eventOf("a Removed 1")})
		if event, _ := queue.next(); event.Evidence.Kind != CRDDeleted {
			t.Errorf("told %+v of the deletion", event)
		}
		queue.put([]Event{eventOf("a Added 2"), eventOf("a Removed 2")})
		if event, some := queue.next(); some {
			t.Errorf("told %v of a type that it never had", event)
		}
	}
}

// Whatever happens and whenever a subscriber looks: it never hears of the end of what
// it does not know, nor twice of a beginning, and it ends up with what there is.
func TestEventQueue_EventsLeadToThePresentState(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
		queue := &eventQueue{news: make(chan struct{}, 1)}
		truth, known := map[string]string{}, map[string]string{}
		look := func() {
			for event := range queue.take {
				name := event.Resource.GVR.Resource
				_, knows := known[name]
				switch {
				case (event.Type == Added) == knows:
					t.Fatalf("seed %d: %s, and it is known: %v", seed, eventText(event), knows)
				case event.Type == Removed:
					delete(known, name)
				case event.Type == Added:
					known[name] = string(event.Resource.CRDUID)
				}
				if random.IntN(4) == 0 {
					return // in the middle
				}
			}
		}
		for uid := range 60 {
			name := string(rune('a' + random.IntN(4)))
			switch old, there := truth[name]; {
			case !there:
				truth[name] = fmt.Sprint(uid)
				queue.put([]Event{eventOf(fmt.Sprintf("%s Added %d", name, uid))})
			case random.IntN(2) == 0:
				event := eventOf(name + " Changed Scope")
				event.Resource.CRDUID = types.UID(old)
				queue.put([]Event{event})
			default:
				delete(truth, name)
				queue.put([]Event{eventOf(name + " Removed " + old)})
			}
			if len(queue.order) > 4 {
				t.Fatalf("seed %d: %d types wait", seed, len(queue.order))
			}
			if random.IntN(5) == 0 {
				look()
			}
		}
		for len(queue.order) > 0 {
			look()
		}
		if diff := cmp.Diff(truth, known); diff != "" {
			t.Fatalf("seed %d (-there +known):\n%s", seed, diff)
		}
	}
}

// Other changes of the same event are for all subscribers.
func TestEventQueue_LabelChangesNeedTheOption(t *testing.T) {
	event := eventOf("a Changed Labels")
	both := eventOf("b Changed Scope")
	both.Changes = append(both.Changes, LabelsChanged)
	for labels, want := range map[bool][]string{
		false: {"b Changed [Scope]"},
		true:  {"a Changed [Labels]", "b Changed [Scope Labels]"},
	} {
		queue := &eventQueue{news: make(chan struct{}, 1), labels: labels}
		queue.put([]Event{event})
		if woken := len(queue.news) == 1; woken != labels {
			t.Errorf("labels wanted %v: woken %v", labels, woken)
		}
		queue.put([]Event{both})
		var got []string
		for event := range queue.take {
			got = append(got, eventText(event))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("labels wanted %v (-want +got):\n%s", labels, diff)
		}
	}
	if len(both.Changes) != 2 {
		t.Errorf("the event itself has changed: %v", both.Changes)
	}
}

// What serves a type is news for informers, though the type has not changed: they recognize another type by it.
func TestEventQueue_InformersGetWhatServesTheirTypes(t *testing.T) {
	crd, server := eventOf("a Changed Labels"), eventOf("b Changed Labels")
	crd.Resource.CRDUID = "1"
	server.Resource.Backing = BackingAggregated
	events := []Event{crd, server, eventOf("c Changed Labels")}
	for informers, want := range map[bool]int{false: 0, true: 2} {
		queue := &eventQueue{news: make(chan struct{}, 1), informers: informers}
		queue.put(events)
		if got := len(queue.order); got != want {
			t.Errorf("for informers %v: %d events, want %d", informers, got, want)
		}
	}
}

package typestate

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
	"github.com/gvrkit/gvrkit/status"
)

// A status is of one moment: while lists fail and succeed in turn, its counters, its reason and its
// attempts never contradict each other.
func TestSnapshot_StatusIsOfOneMoment(t *testing.T) {
	s := newShips(t)
	yes(served("a"))(s)
	var turns sync.WaitGroup
	turns.Go(func() {
		for range 2000 {
			s.Failed(source.VerbList, apierrors.NewServiceUnavailable("down"))
			s.Succeeded(source.VerbList)
		}
	})
	look := func() (done bool) {
		now := s.Snapshot()
		i := now.Status("")
		failing := i.Traffic.Failures[status.ReasonUnavailable] - i.Traffic.Lists
		wrong := i.Err == nil || i.Reason != status.ReasonUnavailable || i.Verb != source.VerbList || i.Attempts != 1 || i.Since.IsZero()
		if failing > 1 || (failing == 1) == wrong {
			t.Errorf("after %d failures and %d lists: %+v", i.Traffic.Failures[status.ReasonUnavailable], i.Traffic.Lists, i)
			return true
		}
		return i.Traffic.Lists == 2000
	}
	for !look() {
	}
	turns.Wait()
}

// A list may wait again after its first page. The status has the time since when it waits.
func TestSnapshot_QueuedSince(t *testing.T) {
	s := newShips(t)
	yes(served("a"))(s)
	queued := time.Now().Add(time.Minute)
	s.SetSource(givenBy(func() source.State { return source.State{Queued: queued} }), func() bool { return false })
	now := s.Snapshot()
	e, i := now.NotSynced(""), now.Status("")
	if e.Reason != status.ReasonQueued || !e.Since.Equal(queued) || i.Reason != status.ReasonQueued || i.State != status.StateStarting || !i.Since.Equal(queued) {
		t.Errorf("%v since %v; status %s since %v", e.Reason, e.Since, i.Summary(queued), i.Since)
	}
}

// existing is a source all of whose objects exist.
type existing struct{ nothing }

func (existing) Has(string) bool { return true }

// The errors of at most maxNamed objects are stored. If only others are left, there is an error nevertheless.
func TestState_FailuresOfIndexesBeyondTheLimitHaveAnError(t *testing.T) {
	s := newShips(t)
	s.SetSource(existing{}, func() bool { return true })
	for i := range maxNamed + 2 {
		s.Unindexed(fmt.Sprint("ns/", i), "", "by-owner", errors.New("bad"))
	}
	for i := range maxNamed {
		s.Unindexed(fmt.Sprint("ns/", i), "", "by-owner", nil)
	}
	s.Unindexed(fmt.Sprint("ns/", maxNamed+1), "", "by-owner", nil) // the one that failed last
	if got := s.Snapshot().LeftOut; got.Count != 1 || got.Key != fmt.Sprint("ns/", maxNamed) || got.Err == nil {
		t.Errorf("%+v, want one object with an error", got)
	}
}

func TestStatus_HasWhatTheGroupOfAShardSays(t *testing.T) {
	slots := func(numbers ...int) (all sharding.Slots) {
		for _, n := range numbers {
			one, err := sharding.Static(n, sharding.SlotCount)
			if err != nil {
				t.Fatal(err)
			}
			all = all.Union(one.View().Slots)
		}
		return all
	}
	got := shardOf(&source.ShardState{View: slots(0, 1), Slots: slots(0, 9), Group: func() sharding.Status {
		return sharding.Status{
			Identity: "a", Pending: slots(2, 3), LettingGo: slots(9), WaitsFor: []string{"queue"}, Reason: sharding.ReasonNotRenewed, Err: errors.New("no"),
			Members: []sharding.MemberStatus{{Identity: "b", Claims: slots(3, 4, 5)}, {Identity: "c", Claims: slots(4)}, {Identity: "d", Claims: slots(2), Expired: true}},
		}
	}})
	want := &status.Shard{
		Held: "0", Slots: 1, Loading: "1", Waiting: 1, Member: "a", Pending: "2-3", Awaited: 2, Owners: []string{"b"},
		LettingGo: "9", WaitsFor: []string{"queue"}, Reason: "NotRenewed", Err: "no",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

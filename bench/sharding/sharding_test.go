package sharding

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/objects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small returns a load that a test can measure.
func small(selects bool) load {
	return load{kind: objects.All()[0], objects: 128, events: 64, selects: selects}
}

// measure measures all contestants of c on connection.
func measure(t *testing.T, c harness.Case, connection any) harness.Round {
	t.Helper()
	text, err := json.Marshal(connection)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // longer than the test takes
	defer cancel()
	round := harness.Round{}
	for _, contestant := range c.Contestants {
		if round[contestant.Name], err = contestant.Measure(ctx, harness.Job{Connection: text, Round: 1}); err != nil {
			t.Fatalf("%s, %s: %v", c.Name, contestant.Name, err)
		}
		for _, m := range c.Metrics {
			mayBeZero := m.Name != number && m.Name != loaded && (contestant.Name == "all to half" || contestant.Name == "1 of 8") // it may have few objects
			mayBeZero = mayBeZero || m.Name == retainedHeap || m.Name == eventCPU || m.Name == cpu
			if v, ok := round[contestant.Name][m.Name]; !ok || v <= 0 && !mayBeZero {
				t.Errorf("%s, %s, %s: %v, %v", c.Name, contestant.Name, m.Name, v, ok)
			}
		}
	}
	return round
}

func TestMeasure_OnServersThatSelectAndThatDoNot(t *testing.T) {
	for _, selects := range []bool{true, false} {
		l := small(selects)
		server, stop, err := l.start(t.Context(), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		members, moves := measure(t, l.members(1), server), measure(t, l.moves(1), server)
		l.objects-- // fewer than the server has
		_, err = l.member(t.Context(), server.(connection), firstOf(1).View().Slots, informers.ClientGo)
		if err == nil || !strings.Contains(err.Error(), "has 128 objects, want 127") {
			t.Errorf("an object more than expected: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if whole := members["client-go"][number]; whole != 128 || members["1 of 1"][number] != 128 || members["1 of 8"][number] >= 64 || moves["half to all"][number] != 128 ||
			moves["all to half"][number] != moves["list of half"][number] {
			t.Errorf("objects: %v, %v", members, moves)
		}
		if ratio := members["1 of 8"][received] / members["1 of 1"][received]; ratio < .8 != selects {
			t.Errorf("selects: %t, ratio of received bytes: %v", selects, ratio)
		}
		if one, all := members["1 of 8"][eventBytes], members["1 of 1"][eventBytes]; selects && one > .8*all {
			t.Errorf("received per event: %v KB, and %v KB of all objects", one, all)
		}
		if moves["half to all"][requests] > 2 || moves["all to half"][requests] > 1 {
			t.Errorf("selects: %t, requests of changes: %v", selects, moves)
		}
		if bytes := moves["all to half"][received]; bytes > .5*moves["list of half"][received] {
			t.Errorf("selects: %t, a member that loses objects has received %v MB", selects, bytes)
		}
	}
}

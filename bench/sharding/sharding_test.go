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
	return load{kind: objects.All()[0], objects: 64, events: 32, selects: selects}
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
			mayBeZero := m.Name == retainedHeap || m.Name == eventCPU || m.Name == cpu || contestant.Name == "all to half"
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
		_, err = l.member(t.Context(), server.(connection), slotsOf(1), informers.ClientGo)
		if err == nil || !strings.Contains(err.Error(), "has 64 objects, want 63") {
			t.Errorf("an object more than expected: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if whole := members["client-go"][number]; whole != 64 || members["1 of 1"][number] != 64 || members["1 of 8"][number] >= 32 || moves["half to all"][number] != 64 ||
			moves["all to half"][number] != moves["list of half"][number] {
			t.Errorf("objects: %v, %v", members, moves)
		}
		for _, metric := range []string{received, eventBytes} {
			if ratio := members["1 of 8"][metric] / members["1 of 1"][metric]; ratio < .8 != selects {
				t.Errorf("selects: %t, %s: ratio %v", selects, metric, ratio)
			}
		}
		if bytes := moves["all to half"][received]; bytes > .5*moves["list of half"][received] {
			t.Errorf("selects: %t, a member that loses objects has received %v MB", selects, bytes)
		}
	}
}

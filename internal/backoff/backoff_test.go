package backoff

import (
	"slices"
	"testing"
	"time"
)

func TestNew_PausesDoubleToTheLongest(t *testing.T) {
	b := New(time.Second, 30*time.Second, 0)
	var pauses []time.Duration
	for range 15 {
		pauses = append(pauses, b.Step()/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30}; !slices.Equal(pauses, want) {
		t.Errorf("pauses = %d s, want %d s", pauses, want)
	}
}

func TestNew_PausesHaveJitter(t *testing.T) {
	different := map[time.Duration]bool{}
	for range 100 {
		b := New(time.Second, time.Minute, 0.2)
		pause := b.Step()
		if pause < time.Second || pause > 1200*time.Millisecond {
			t.Fatalf("pause = %s", pause)
		}
		different[pause] = true
	}
	if len(different) < 50 {
		t.Errorf("%d different pauses of 100", len(different))
	}
}

func TestSpread_KeepsItsBounds(t *testing.T) {
	for _, part := range []float64{0.1, 0.5} {
		low, high := time.Duration(float64(time.Minute)*(1-part)), time.Duration(float64(time.Minute)*(1+part))
		least, most := high, low
		for range 1000 {
			d := Spread(time.Minute, part)
			least, most = min(least, d), max(most, d)
		}
		if tenth := (high - low) / 10; least < low || least > low+tenth || most > high || most < high-tenth {
			t.Errorf("Spread by %v: from %v to %v, want from %v to %v", part, least, most, low, high)
		}
	}
}

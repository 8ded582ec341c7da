package source

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// An expired version causes no pause, unless the last failure was one, too.
func TestPace_PausesOfExpiredVersions(t *testing.T) {
	gone, down := error(apierrors.NewResourceExpired("too old")), error(apierrors.NewServiceUnavailable("down"))
	type step struct {
		after  time.Duration // since the end of the last pause
		err    error         // nil: a watch has worked
		pauses bool
	}
	for name, steps := range map[string][]step{
		"the first failure":             {{0, gone, false}},
		"twice":                         {{0, gone, false}, {0, gone, true}, {0, gone, true}},
		"after an outage":               {{0, down, true}, {0, down, true}, {0, gone, false}, {0, gone, true}},
		"an outage between":             {{0, gone, false}, {0, down, true}, {0, gone, false}},
		"long after an expired version": {{0, gone, false}, {time.Minute, gone, false}, {time.Minute, gone, false}},
		"after a watch that has worked": {{0, gone, false}, {0, nil, false}, {0, gone, false}, {0, gone, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var p pace
			now := time.Now()
			for i, s := range steps {
				if now = now.Add(s.after); s.err == nil {
					p.reset()
					continue
				}
				ordinary := p.failed(now, s.err)
				if pauses := p.until.After(now); pauses != s.pauses || ordinary == pauses {
					t.Errorf("step %d: a pause of %v, ordinary: %v", i, p.until.Sub(now), ordinary)
				}
				now = p.until
			}
		})
	}
}

package leases

import (
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// lastRest is a time at which an informer was as the model, and how often the server had gone back by then, as its status said.
type lastRest struct {
	at      time.Time // zero: there was none
	rewinds uint64
}

// rewound compares how often the server has gone back, as the status says, with the restores of etcd since the informer was last at rest. The comparison
// began at begun.
func (s *subject) rewound(c *comparison, begun time.Time) {
	last := s.rested[c.at.ID]
	must, possible := c.world.Rewound(c.view.Type, last.at)
	// The status does not count the failures in the namespaces of a set.
	must = must && !last.at.IsZero() && c.view.Sets == nil && c.at.State == status.StateSynced
	if text := last.differs(c.at, must, possible); text != "" {
		c.report("%s", text)
	}
	if len(c.found) == 0 && c.at.State == status.StateSynced { // otherwise it may not have what is restored
		s.rested[c.at.ID] = lastRest{begun, c.at.Traffic.Failures[status.ReasonRewound]}
	}
}

// differs says what is wrong with the count in a status. Must says that the server has gone back since the informer was last at rest, and possible that it
// may have done so at any time.
func (r lastRest) differs(now status.Informer, must, possible bool) string {
	switch rewinds := now.Traffic.Failures[status.ReasonRewound]; {
	case !possible && rewinds > 0:
		return fmt.Sprintf("etcd was not restored, and the status counts %d failures with the reason %s", rewinds, status.ReasonRewound)
	case must && rewinds <= r.rewinds:
		return fmt.Sprintf("etcd was restored, and the status counts %d failures with the reason %s, as before", rewinds, status.ReasonRewound)
	}
	return ""
}

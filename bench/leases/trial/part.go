package trial

import "github.com/gvrkit/gvrkit/bench/leases/informers"

// Part is one thing that is measured.
type Part string

// What is measured.
const (
	// PartCost is a lease on what others have already.
	PartCost Part = "cost"
	// PartArmed is informers on types that are not there.
	PartArmed Part = "armed"
	// PartParked is informers whose types have gone.
	PartParked Part = "parked"
	// PartBack is an informer whose type goes and comes back.
	PartBack Part = "back"
)

// Parts returns all of them.
func Parts() []Part { return []Part{PartCost, PartArmed, PartParked, PartBack} }

// Real reports whether it takes a real API server. The others take a
// [github.com/gvrkit/gvrkit/bench/discovery/cluster.Cluster].
func (p Part) Real() bool { return p == PartParked || p == PartBack }

// Systems returns the names of the systems that are measured.
func (p Part) Systems() []string {
	switch p {
	case PartArmed:
		return []string{informers.ClientGo, informers.GVRKit}
	case PartParked:
		return []string{informers.Alone, informers.GVRKit}
	case PartBack:
		return []string{informers.ByHand, informers.GVRKit}
	}
	return []string{informers.GVRKit}
}

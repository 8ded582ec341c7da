package trial

import (
	"time"

	"k8s.io/client-go/rest"
)

// Job says what is to be measured.
type Job struct {
	System string `json:"system"`
	// Host is where the cluster is, and CRDs how many it has.
	Host string `json:"host"`
	CRDs int    `json:"crds"`
	// Brief says that the start is all.
	Brief bool `json:"brief"`
	// Rest is how long a system must not have asked anything to be at rest.
	Rest time.Duration `json:"restNanos"`
	// Poll is how often who is not told of a type that comes asks for it.
	Poll time.Duration `json:"pollNanos"`
	// Phase is when between two polls the type comes, from 0 to 1.
	Phase float64 `json:"phase"`
	// Asks is how many warm resolves are measured at a time, and how often it is asked
	// for what is not there.
	Asks int `json:"asks"`
}

// config has no limit on the client's side: what is measured should not wait.
func (j Job) config() *rest.Config { return &rest.Config{Host: j.Host, QPS: -1} }

// Figures are what was measured. What was not is nil.
type Figures struct {
	Start Start `json:"start"`

	// Mapping is RESTMapping. Kind is ResolveGVK, and Name is Resolve of plural.group;
	// of who has none of these they are RESTMapping and ResourceFor.
	Mapping *Warm `json:"mapping,omitempty"`
	Kind    *Warm `json:"kind,omitempty"`
	Name    *Warm `json:"name,omitempty"`

	// Unknown is asking for a type that is not there, and Noticed asking in such a way
	// that it would be found once it comes, if that is another one.
	Unknown *Unknown `json:"unknown,omitempty"`
	Noticed *Unknown `json:"noticed,omitempty"`

	// Polled is a type that comes and is asked for again and again; Awaited is one that
	// is awaited.
	Polled  *Arrival `json:"polled,omitempty"`
	Awaited *Arrival `json:"awaited,omitempty"`
}

// Start is what happens until the system knows its server and is at rest.
type Start struct {
	// First is the time from its construction to the first answer, and All to the last
	// one of one for each type, if all were asked for.
	First time.Duration `json:"firstNanos"`
	All   time.Duration `json:"allNanos,omitempty"`
	// FirstRequests are those until the first answer, AllRequests until the last, and
	// Requests and Bytes until rest.
	FirstRequests int64 `json:"firstRequests"`
	AllRequests   int64 `json:"allRequests,omitempty"`
	Requests      int64 `json:"requests"`
	Bytes         int64 `json:"bytes"`
	// CPU is that of the process until rest.
	CPU time.Duration `json:"cpuNanos"`
	// PeakRSS is the most memory that the process has had by then.
	PeakRSS int64 `json:"peakRSSBytes"`
	// Heap is by how much the live heap has grown, once each type has been asked for by
	// RESTMapping and in the system's own ways. For FullHeap, types have been asked for
	// by ResourceFor, too, and one has that is not there.
	Heap     int64 `json:"retainedHeapBytes,omitempty"`
	FullHeap int64 `json:"fullRetainedHeapBytes,omitempty"`
}

// Warm is asking for what is known.
type Warm struct {
	// Requests are those of as many asks as the job says; the others are of one.
	Requests float64 `json:"requests"`
	Nanos    float64 `json:"nanos"`
	Allocs   float64 `json:"allocs"`
}

// Unknown is asking for what is not there.
type Unknown struct {
	Asks     int   `json:"asks"`
	Requests int64 `json:"requests"`
	// Nanos is the time of one.
	Nanos float64 `json:"nanos"`
}

// Arrival is a type that comes while it is asked for.
type Arrival struct {
	// Latency is the time from when its CRD was established to the first answer.
	Latency time.Duration `json:"latencyNanos"`
	// Requests are those from half a second before it came until rest.
	Requests int64 `json:"requests"`
}

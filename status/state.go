package status

// State is the state of one informer, in one word. The strings are stable.
type State string

// The states.
const (
	// StateUnknown: the informer has not been started, or discovery could not determine whether
	// its type is served.
	StateUnknown State = "Unknown"
	// StateNotServed: the type is not served, or no longer served. The informer waits for it.
	StateNotServed State = "NotServed"
	// StateStarting: the type is served and its first list is not in the cache yet.
	StateStarting State = "Starting"
	// StateSynced: the cache follows the server.
	StateSynced State = "Synced"
	// StateDegraded: a request fails and is retried, the type does not support list or watch, some objects are left out of
	// the cache or of an index, or discovery does not list a type that has been listed, without evidence that it is gone. The cache is kept.
	StateDegraded State = "Degraded"
	// StateStopped: the informer has ended.
	StateStopped State = "Stopped"
)

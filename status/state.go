package status

// State is what one informer is doing, in one word. The strings are stable.
type State string

// The states.
const (
	// StateUnknown: the informer has not been started, or discovery cannot tell whether its
	// type is served.
	StateUnknown State = "Unknown"
	// StateNotServed: the type is not served, or not any more. The informer waits for it.
	StateNotServed State = "NotServed"
	// StateStarting: the type is served and its first list is not in the cache yet.
	StateStarting State = "Starting"
	// StateSynced: the cache follows the server.
	StateSynced State = "Synced"
	// StateDegraded: something fails and is tried again. The cache keeps what it has.
	StateDegraded State = "Degraded"
	// StateStopped: the informer has ended.
	StateStopped State = "Stopped"
)

package status

// Budget is the state of a factory's memory budget at one moment. It is zero if there is none.
type Budget struct {
	// Limit is the budget in bytes.
	Limit int64 `json:"limit"`
	// Caches is the memory of the caches, the sum of the CacheBytes of the informers, and Lists the estimate of what first lists in progress
	// add to it. A cache that grows after its first list is kept: Caches may be larger than Limit.
	Caches int64 `json:"caches"`
	Lists  int64 `json:"lists"`
	// Waiting is the number of lists that don't fit and wait for memory. Each namespace of a set has a list of its own.
	Waiting int `json:"waiting"`
}

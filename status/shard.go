package status

// Shard is the part of a type's objects that an informer with dynamicinformer.WithShard has. sharding.Member.Status has the group.
type Shard struct {
	// Held are the slots of which the cache has all objects, as numbers and ranges such as "0-63,70", and Slots their number.
	Held  string `json:"held,omitempty"`
	Slots int    `json:"slots"`
	// Loading are the slots of the shard whose objects are not all in the cache yet.
	Loading string `json:"loading,omitempty"`
	// Waiting is the number of slots in Loading.
	Waiting int `json:"waiting,omitempty"`
	// ByClient says that the server sends objects that were not requested, since it does not have the feature
	// ShardedListAndWatch: the informer leaves them out, and a shard saves memory, but no requests and bytes.
	ByClient bool `json:"byClient,omitempty"`
}

// Text describes the shard in words.
func (s *Shard) Text() string {
	text := "no slots"
	if s.Slots > 0 {
		text = "slots " + s.Held
	}
	if s.Waiting > 0 {
		text += "; is loading " + s.Loading
	}
	if s.ByClient {
		text += "; the server sends all objects, and the informer selects (ShardedByClient)"
	}
	return text
}

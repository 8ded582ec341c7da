package status

import (
	"fmt"
	"slices"
	"strings"
)

// Shard is the part of a type's objects that an informer with dynamicinformer.WithShard has. sharding.Member.Status has more about the group.
type Shard struct {
	// Held are the slots of which the cache has all objects, as numbers and ranges such as "0-63,70", and Slots their number.
	Held  string `json:"held,omitempty"`
	Slots int    `json:"slots"`
	// Loading are the slots of the shard whose objects are not all in the cache yet.
	Loading string `json:"loading,omitempty"`
	// Waiting is the number of slots in Loading.
	Waiting int `json:"waiting,omitempty"`
	// Moved is the number of objects that have left the cache so far because the shard has lost their slots.
	Moved uint64 `json:"moved,omitempty"`
	// ByClient reports whether the server lacks the feature ShardedListAndWatch, and sends objects of all
	// slots. The informer leaves out the others: a shard then saves memory, but no requests and bytes.
	ByClient bool `json:"byClient,omitempty"`

	// The fields below are those of a sharding.Member, and empty for other shards. Member is its identity.
	Member string `json:"member,omitempty"`
	// Pending are the slots that the member should have and does not have yet, and Awaited their number.
	Pending string `json:"pending,omitempty"`
	Awaited int    `json:"awaited,omitempty"`
	// Owners are the identities of the members that have not let slots of Pending go.
	Owners []string `json:"owners,omitempty"`
	// LettingGo are the slots that the member has lost, but that other members can't get until the followers in WaitsFor have
	// let them go.
	LettingGo string   `json:"lettingGo,omitempty"`
	WaitsFor  []string `json:"waitsFor,omitempty"`
	// MoreOwners and MoreWaitsFor are the numbers of those that are left out, as in [Informer].
	MoreOwners   int `json:"moreOwners,omitempty"`
	MoreWaitsFor int `json:"moreWaitsFor,omitempty"`
	// Reason is why the member acts on no slots, or waits: a sharding.Reason.
	Reason string `json:"reason,omitempty"`
	// Err is the error of the member's requests for Leases, which says what to do. It is empty if they succeed.
	Err string `json:"err,omitempty"`
}

// Text describes the shard in words.
func (s *Shard) Text() string {
	text := "no slots"
	if s.Slots > 0 {
		text = "slots " + s.Held
	}
	if s.Member != "" {
		text = s.Member + ": " + text
	}
	if s.Waiting > 0 {
		text += "; is loading " + s.Loading
	}
	if s.Awaited > 0 {
		text += "; waits for " + s.Pending
		if len(s.Owners) > 0 {
			text += ", of " + shardNames(s.Owners, s.MoreOwners)
		}
	}
	if s.LettingGo != "" {
		text += "; is letting go " + s.LettingGo
		if len(s.WaitsFor) > 0 {
			text += ", when these have: " + shardNames(s.WaitsFor, s.MoreWaitsFor)
		}
	}
	if s.Reason != "" {
		text += "; " + s.Reason
	}
	if s.Err != "" {
		text += "; " + s.Err
	}
	if s.Moved > 0 {
		text += fmt.Sprintf("; %d objects have moved to other processes", s.Moved)
	}
	if s.ByClient {
		text += "; the server sends all objects, and the informer selects (ShardedByClient)"
	}
	return text
}

// shardNames returns names in one line, and the number of further ones.
func shardNames(some []string, more int) string {
	if more > 0 {
		some = append(slices.Clip(some), fmt.Sprintf("%d more", more))
	}
	return strings.Join(some, ", ")
}

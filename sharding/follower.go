package sharding

import "slices"

// Follower is a user of a shard that caches objects or calls handlers, such as an informer. It reports which
// views of the shard it has followed. A nil Follower is valid and has no effect: the shard does not change.
// A Follower is safe for concurrent use, and its methods do not block.
//
// A follower calls LetGo for each view that it follows, the first one included, and Stop at its end:
//
//	follower := shard.Follow("widgets")
//	defer follower.Stop()
//	for {
//		changed := shard.Changed()
//		view := shard.View()
//		// Stop acting on the objects of slots that view no longer has, and wait for calls in progress.
//		follower.LetGo(view.Generation)
//		// List the objects of slots that view has in addition.
//		follower.Loaded(view.Generation)
//		select {
//		case <-changed:
//		case <-ctx.Done():
//			return
//		}
//	}
type Follower struct {
	member        *Member
	name          string
	letGo, loaded uint64 // guarded by member.mu
}

// LetGo reports that the follower acts only on objects in the slots of the view with this generation, until a later
// view has other slots. When all followers have reported that, other members may act on the other objects.
func (f *Follower) LetGo(generation uint64) {
	if f == nil {
		return
	}
	f.member.mu.Lock()
	defer f.member.mu.Unlock()
	f.letGo = max(f.letGo, generation)
	f.member.settleLocked()
}

// Loaded reports that the follower has all objects in the slots of the view with this generation. It only
// changes the status.
func (f *Follower) Loaded(generation uint64) {
	if f == nil {
		return
	}
	f.member.mu.Lock()
	defer f.member.mu.Unlock()
	f.loaded = max(f.loaded, generation)
}

// Stop reports that the follower no longer acts on any object. The shard does not wait for it any more. Further
// calls of its methods have no effect.
func (f *Follower) Stop() {
	if f == nil {
		return
	}
	f.member.mu.Lock()
	defer f.member.mu.Unlock()
	f.member.followers = slices.DeleteFunc(f.member.followers, func(other *Follower) bool { return other == f })
	f.member.settleLocked()
}

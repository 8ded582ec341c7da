// Package sharding shares the objects of all types among several processes, so that each of them lists, watches
// and handles a part. The parts are ranges of the hash of an object's UID, which an API server with the feature
// ShardedListAndWatch selects itself. It has:
//
//   - [Slots]: a set of the 256 slots, which are equal ranges of the hash. [SlotOf] is the slot of an object.
//   - [Shard]: the slots of this process, which may change. An informer lists and watches by its selector, and
//     a handler asks Owns.
//   - [Static]: a shard that does not change, such as one for each pod of a StatefulSet.
//   - [Member]: a shard that changes with the members of a group. [Join] makes one, with a Lease in the
//     cluster.
//   - [Follower]: a user of a shard, for which the shard waits before it lets slots go to another process.
//   - [Status]: what a member has, what it waits for and why, and the other members.
//
// # Groups
//
// Each member has a Lease, which it renews, and lists the Leases of the group. When it joins, it gets a seat, the lowest number that
// no other member has. It keeps the seat, and its Lease has the number. Each slot has an order of the seats, and belongs to the member whose seat
// is first in that order. So the N-th member takes about 1/N of the slots when it joins. A member that leaves gives its slots to the others in
// about equal parts. No other slot moves. Each member claims its slots in an annotation of its Lease, and acts on a slot when a list shows no
// other claim. The group needs no leader.
//
// Two members never own a slot at the same time: a member that must give a slot to another member first stops owning it,
// waits for its followers, and then withdraws its claim. A member that can't renew its Lease for RenewDeadline
// owns nothing. Others take its slots after LeaseDuration and ClockSkew. They measure this on their own clocks, from the
// time when they first saw the present version of the Lease, and compare no times of different machines. One of them then
// releases the Lease, so that a process that joins later does not wait.
//
// # Owns and actions
//
// Owns compares the clock each time, so that a process that was stopped or a machine that was suspended owns nothing when
// it continues after its term. An action that begins when Owns returns true must end within LeaseDuration -
// RenewDeadline, which is 5 seconds by default, since the member may not be able to renew its Lease. A process that is
// stopped between the call of Owns and its action may be too late in any case. Where that matters, write with the
// resourceVersion that was read, so that the API server refuses a late write.
//
// # Limits
//
// Do not delete or change the Lease of a member that runs: the member lets all slots go, but another member may have taken
// them before the first one notices the change. A restore of etcd is such a change. If the wall clock of a machine is set
// back while the machine is suspended, its member may act too long. A follower that never lets go keeps its slots from all
// members while the Lease is renewed.
//
// The package does not know informers, caches and handlers.
package sharding

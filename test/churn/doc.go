// Package churn tests a program that watches Kubernetes objects with random operations against
// real API servers, and compares what the program has shown with a model.
//
//	cfg := churn.Config{Servers: []*rest.Config{server}, Subject: mirror.New, Patience: 2 * time.Minute}
//	result, err := churn.Run(ctx, cfg, churn.Generate(seed, mirror.Profile()))
//	…
//	if result.Failed() {
//		t.Errorf("seed %d:\n%v\n%v", seed, result, result.Script)
//		shortest := churn.Shortest(ctx, cfg, result) // until ctx ends
//		t.Errorf("a shorter script:\n%v\n%v", shortest, shortest.Script)
//	}
//
// A [Script] is a list of operations ([Op], [Verbs], [Parameters], [FaultKinds]) that can be printed, and read again by [Parse]:
// types are created, deleted, created again with another scope, and served in other versions; objects
// are created, changed, deleted and replaced; watches are cut, faults are injected
// (package faultproxy) and healed, permissions are revoked (the proxy responds with 403); etcd is backed up and restored; one of two API servers learns of changes late; an aggregated
// server takes the types over, fails, and gives them back; Namespace objects come, go and change their labels;
// objects have finalizers, for which CRDs wait; conversion webhooks fail; leases, handlers and calls of Follow come
// and go, and handlers panic. [Generate] makes the script of a seed: random operations, and scenarios in which bugs of
// one kind show, such as objects that are replaced while lists hang and watches expire.
//
// [Run] executes a script. It writes to the server directly, not through the proxy, and records the results in the
// [World]: each state that each object has had. The program under test, a [Subject], is a client
// of the proxy. Package leases is the subject for informers of this module, and
// package mirror is an example: a small controller.
//
// The types are t1 and t2, in versions v1 and v1beta1 of a group that each run has for itself: a program must take its resources as
// parameters ([World.Resource]). It starts before they exist. Their objects are those of [Thing]. A program may only read them: what it writes to the
// objects and CRDs of a run is not in the world. A controller that writes must write objects of another group, with names that no other run uses, and
// delete them; or it writes to memory, as package mirror does. The histories of client-go's own informers break [Unique] and [Generations], since an
// object that is replaced while no watch is open is an update to them: for these, a subject compares only what it has at rest.
//
// What a program must have follows from the [World]:
//
//   - The [Event] values of a handler, at any time ([CheckHistory]): each object is added,
//     updated and deleted in this order, with states that it had, in their order; nothing is deleted
//     without a cause; all objects of a type are deleted before the first one of another type with its name is added; a removed handler
//     is not called. If, between two times at rest, the subject does not list a type and the type does not move, a handler gets each
//     state, also that an object is no longer selected, and each update has another state. Nothing is checked except the values of
//     [Invariant].
//   - When a cache reports that it is synced, it has the objects that existed some time before the subject requested the cache, and have not
//     changed since: a subject calls [World.Expect] and [World.Missing]. When it says that it has a version, it has what was written with
//     that version ([World.Written]). The first additions of objects that a cache had when a handler was added are initial ([Recorder.AddedTo]).
//   - At rest, caches, states and waits must match the server. The subject must be at rest within [Config.Patience] after all
//     faults have ended. Permissions that are revoked stay revoked. Requests may still alternate between servers then, unless a permission is revoked.
//   - Each watch, as the client gets it, begins at a version that the client has got in its namespaces, and
//     none is left after a release. Two more checks are of the servers and the proxy, without watches that a fault garbles: a bookmark
//     is at or after all events before it, and before all events after it; and a watch that begins at a version sends everything that was
//     written until its last event, each state once.
//   - No goroutine of the subject is left after its end. The goroutines of a subject have
//     the label of its run.
//
// An operation that the servers do not support is skipped. In package test/envtest/churn, no servers support all of them, so no script has a restore
// and two servers:
//
//	backup, advance, restore            the embedded server, with one address
//	alternate, lag                      two kube-apiservers
//	newnamespace, label, endnamespace   kube-apiserver, without the namespace controller, as in envtest
//	move, return, down, up              kube-apiserver, with Config.Aggregated
//
// [Config.Aggregated] is another API server, to which the APIServices of the group point. It has its own objects, with other UIDs, also if their names are
// equal. A handler must get the deletions of the old objects before the first addition of a new one. There is one exception: if a set of namespaces is listed
// during a move, each namespace may come from another server. While the aggregated server is down, caches keep what they have, and no state is synced.
//
// With a second server and [Config.Lag], the operation lag makes that server learn of changes late, by two seconds at most: it sends old lists and late events, and
// it does not know a new type yet. [ServerLag] describes its effect on several scripts on the same servers. At rest, a subject has what the first server has,
// also if another script has made the second one lag.
//
// A script that fails can be shortened ([Shortest]): parts of a script are scripts, since an operation
// that has nothing to do is skipped. A run is not deterministic: the order of the subject's requests and
// the times of the servers vary.
//
// Before etcd is restored, the subject is at rest with versions that the server does not have after that ([Advance]): a client with earlier versions
// can't notice a restore. Between [Advance] and the restore, faults may begin, handlers and waits may be late, and leases and types may change. Lists
// must be allowed.
//
// The package does not import the informers that it tests. The operations on leases, handlers and Follow are for those of package
// dynamicinformer: other subjects ignore them.
package churn

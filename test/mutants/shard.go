package main

// ofShard has mutants of informers that have a part of the objects.
var ofShard = []table{
	{"internal/source", "internal/source", []mutant{
		{"shard: lists request all objects", "gate.list", drop("from = from.selecting(g.view())")},
		{"shard: watches request all objects", "gate.held", always("g.cfg.Shard == nil")},
		{"shard: watch-lists request what an empty cache has", "gate.openStream", drop("slots = g.view()")},
		{"shard: a namespace requests what all namespaces have", "child.watch", replace("c.held(c.namespace)", "c.held(\"\")")},
		{"shard: a namespace that is listed later has the slots of before", "child.list", replace("c.view()", "c.held(c.namespace)")},
		{"shard: lists keep what was not requested", "requests.own", always("r.has(obj.GetUID())")},
		{"shard: events of other slots are passed on", "stream.own", replace("s.requests.has(obj.GetUID())", "true")},
		{"shard: initial events of other slots are passed on", "stream.run", never("initial && mine.Type != event.Type")},
		{"shard: nobody notices that the server does not select", "requests.stray", never("r.strays != nil && !r.strays.Swap(true)")},
		{"shard: a server that selects again is not noticed", "gate.list", drop("g.strays.Store(false)")},
		{"shard: a list of another shard is taken", "requests.own", never("!ok || slots != *r.slots")},
		{"shard: lost objects stay", "splice.follow", never("!lost.Empty()")},
		{"shard: lost objects stay while no watch is open", "resumableWatch.shed", always("s.set(of) != nil || lost.Empty()")},
		{"shard: gained slots are not listed", "splice.follow", drop("s.begin(ctx, wanted)")},
		{"shard: gained slots that are lost meanwhile are spliced in", "splice.take", never("!gain.slots.Minus(view).Empty()")},
		{"shard: the list of gained slots is dropped", "splice.take", always("gain.response == nil")},
		{"shard: events before the list of gained slots are repeated", "known.isRepeated", never("f.slots.Has(slot) && (version == f.version || before(version, f.version))")},
		{"shard: the floor of gained slots holds for all slots", "known.isRepeated", always("f.slots.Has(slot)")},
		{"shard: the watch goes on without the gained slots", "stream.isWhole", always("*s.requests.slots == k.slotsIn(s.splice.namespace)")},
		{"shard: a list does not end that of gained slots", "resumableWatch.relist", drop("s.splice.stop()")},
		{"shard: lost objects count as deleted", "resumableWatch.passSlots", drop("left[key] = true")},
		{"shard: the reflector does not have the slots of a whole list", "gate.placed", drop("g.known.hold(r)")},
		{"shard: the reflector does not have the slots of a list after a gap", "resumableWatch.relist", drop("s.known.hold(content.response)")},
		{"shard: nobody is told that all slots are loaded", "known.holdsAll", drop("k.viewed = view.Generation")},
		{"shard: what was left out in lost slots counts", "known.lost", never("(k.positions == nil || namespaceOf(own) == namespace) && slots.Has(sharding.SlotOf(rejected.uid))")},
	}},
	{"internal/informer", "dynamicinformer", []mutant{
		{"shard: handlers are called for any object", "ownership.guard", never("o != nil")},
		{"shard: slots go while a handler acts", "ownership.follow", replace("o.handlers.Quiesce(unchanged)", "error(nil)")},
		{"shard: the informer never lets slots go", "ownership.follow", drop("follower.LetGo(view.Generation)")},
		{"shard: an informer that has ended keeps slots", "ownership.run", drop("follower.Stop()")},
		{"shard: the member does not know what is loaded", "newOwnership", replace("o.follower.Load().Loaded(generation)", "_ = generation")},
	}},
	{"dynamicinformer", "dynamicinformer", []mutant{
		{"shard: leases with different shards share an informer", "conflict", replace("have.shard == want.shard", "true")},
		{"shard: a nil member is a shard", "settings.checkShard", never("v.Kind() == reflect.Pointer && v.IsNil()")},
		{"shard: shards that can't be compared panic", "WithShard", never("shard != nil && !reflect.ValueOf(shard).Comparable()")},
	}},
	{"internal/typestate", "dynamicinformer", []mutant{
		{"shard: the status has no shard", "Snapshot.Status", never("shard != nil")},
	}},
	{"metrics", "metrics", []mutant{
		{"shard: metrics have no slots", "shardSlots.add", drop("n.held += shard.Slots")},
		{"shard: metrics don't say that the server sends all", "shardSlots.add", drop("n.byClient = n.byClient || shard.ByClient")},
	}},
}

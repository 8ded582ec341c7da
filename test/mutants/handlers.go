package main

// ofHandlers has mutants of handlers, Follow and metrics of informers.
var ofHandlers = []table{
	{"internal/handlers", "dynamicinformer", []mutant{
		{"handlers outlive their lease", "Group.Close", drop("g.calls.Close()")},
		{"handlers of a released informer that never ran are not removed", "Group.Has", replace(
			"own.handler.group == g", "own.handler.group == g && !g.calls.Closed()")},
		{"a handler that was idle never has a backlog", "handler.stats", always("now.Sub(lastEvent) > idleAfter")},
		{"a resync counts as an event", "update", replace("0", "1")},
		{"WithCoalescing has no effect", "Set.Add", never("group.options.Coalescing")},
		{"a registration with coalescing does not wait for merged events", "namedChecker.Done", replace("c.synced", "cache.ResourceEventHandlerRegistration(c.own).HasSyncedChecker().Done()")},
		{"a registration with coalescing ends before its last call", "registration.ShutdownChan", replace("c.ended", "stopOf(c.own)")},
		{"the informer does not wait for handlers with coalescing", "Set.Wait", drop("<-s.running.Done()")},
		{"the goroutine of a handler that is added later does not start", "Set.Add", never("s.started")},
		{"the registration of a handler that never ran does not end", "Set.Remove", never("c.begin()")},
		{"a panic of a handler with coalescing is not that of client-go", "coalescer.call", drop("defer utilruntime.HandleCrashWithLogger(c.logger)")},
		{"WithHandlerRecovery has no effect", "handler.deliver", never("h.group.options.Recovery")},
		{"the panic of each handler of a lease is recovered", "handler.deliver", always("h.group.options.Recovery")},
		{"a call that returns does not end the failure of its object", "panics.returned", drop("delete(p.failed, keyOf(e.obj))")},
		{"a deleted object stays failed", "panics.add", drop("delete(p.failed, key)")},
		{"any number of failed objects is stored", "panics.add", always("len(p.failed) < maxFailed")},
		{"an object that no longer fails is the last failed one", "panics.describe", never("!failing")},
		{"a recovered panic is not logged", "handler.recovered", never("h.set.logPanic != nil")},
		{"the status does not have the time since which a handler is blocked", "handler.stats", drop("s.BehindSince = h.running")},
		{"a registration has the wrapper's name", "namedChecker.Name", replace(
			"strings.Replace(c.DoneChecker.Name(), nameOf(c.handler), c.handler.name, 1)", "strings.Clone(c.DoneChecker.Name())")},
		{"the backlog of a handler includes events from before it was added", "Set.Add", drop("h.before = s.feed.Events() - uint64(s.feed.Objects())")},
		{"a handler that is removed stays in the status", "Set.Remove", drop(
			"s.all = slices.DeleteFunc(s.all, func(other *handler) bool { return other == r.handler })")},
	}},
	{"internal/handlers", "internal/handlers", []mutant{
		{"a removed handler is called", "Set.Remove", drop("r.handler.remove()")},
		{"an addition and a deletion are a deletion", "object.merge", never("o.event.kind == added")},
		{"an addition of a new object replaces the deletion of the old one", "object.merge", before("o.event = e", "o.deletion = event{}")},
		{"an update begins with the last old object", "object.merge", before("o.event.obj = e.obj", "o.event.old = e.old")},
		{"a resync that becomes an update does not count as an event", "object.merge", drop("o.event.counts = max(o.event.counts, e.counts)")},
		{"a merged addition is no longer part of the initial list", "object.merge", replace("o.event.initial || e.initial", "e.initial")},
		{"merged events stay in the order", "pending.add", never("o.deletion.kind == none")},
		{"the memory of a long list is not released", "pending.remove", never("p.most > shrinkAbove")},
		{"a release from the handler that is being added is an error", "Set.Add", replace("_ = s.Remove(r)", "return nil, s.Remove(r)")},
		{"a handler that is idle keeps its backlog", "handler.stats", drop("h.before = given - h.taken")},
	}},
	{"internal/follow", "dynamicinformer", []mutant{
		{"callbacks of Follow wait for callbacks of other types", "follower.proceedLocked", replace(
			"f.goroutines.Go(func() { f.work(ctx, t) })", "f.mu.Unlock(); f.work(ctx, t); f.mu.Lock()")},
		{"leases outlive Follow", "follower.end", drop("for _, l := range leases { l.Release() }")},
		{"any number of types are started at a time", "follower.startQueuedLocked", always("f.slots > 0")},
		{"a type that hangs keeps its place in the queue", "follower.awaitFirstList", replace("startPatience", "1e6*startPatience")},
		{"a forbidden type keeps its place in the queue for a while", "follower.awaitFirstList", never("l.Waits()")},
		{"a type is started each time that it is created and deleted", "follower.startQueuedLocked", never("wait > 0")},
		{"a lease is released before its deletions are delivered", "follower.awaitDeletion", replace(
			"now.Phase == DeletionDone", "now.Phase >= DeletionUnknown")},
		{"a stuck handler prevents the end of Follow", "follower.awaitDeletion", never("time.Since(progress) >= stopPatience")},
		{"a selection that can't be decided ends a type", "follower.updateLocked", drop("case err != nil: t.undecided(res); f.recheckLocked(t, recheckEvery)")},
		{"a selection that can't be decided is never decided", "follower.recheckDue", never("t.unsure != nil")},
		{"a type that is deleted is started again without a pause", "follower.proceedLocked", never("time.Since(t.began) < calm")},
		{"Follow does not end with the factory", "follower.runTimer", never("<-f.Closed")},
		{"Follow returns before its callbacks", "Run", drop("f.goroutines.Wait()")},
		{"Stopped has no evidence", "follower.stop", drop("evidence = *t.end")},
		{"a deletion that makes progress has a time limit", "follower.awaitDeletion", drop("last, progress, look = now, time.Now(), firstLook")},
	}},
	{"internal/follow", "internal/follow", []mutant{
		{"Follow takes a CRD that was created again as the same type", "followed.other", never(
			`uid != "" && t.res.CRDUID != "" && uid != t.res.CRDUID`)},
		{"a type that is still served is stopped", "followed.selected", drop("t.end = nil")},
		{"types that can't be watched are followed", "follower.selects", never(`!res.Supports("list") || !res.Supports("watch")`)},
		{"Started is called after the end of Follow", "follower.start", drop(
			"if f.ending { t.held, t.busy = false, false; f.mu.Unlock(); l.Release(); return }")},
		{"a type that can't be acquired is not tried again", "follower.start", drop("f.recheckLocked(t, recheckEvery)")},
		{"a type that can't be acquired keeps its place in the queue", "follower.start", drop("f.freeSlotLocked(ctx)")},
		{"a type that is gone while it is in the queue is started", "follower.startQueuedLocked", drop("case t.want == nil: f.proceedLocked(ctx, t)")},
		{"a type that is back while Follow waits is stopped", "follower.awaitDeletion", drop("case end == nil: return false")},
		{"Follow forgets a UID that an event does not have", "followed.selected", drop("res.CRDUID = t.res.CRDUID")},
		{"the end of a type that was created again is not that of the first", "followed.gone", never("t.other(evidence.CRDUID)")},
		{"starts of a type have no pause", "followed.begins", replace("t.backoff.Step()", "0")},
		{"pauses between starts stay after a calm time", "followed.begins", always("now.Sub(t.began) < calm")},
		{"the deletion of a CRD does not end its type", "followed.ends", always("t.end == nil || t.end.Kind != discovery.CRDDeleted")},
	}},
	{"internal/informermetrics", "dynamicinformer", []mutant{
		{"each informer asks client-go for an identity", "Identities.Relay", always("own == nil")},
		{"the informer that began last takes the identity", "identity.update", replace("i.running[0]", "i.running[len(i.running)-1]")},
		{"an identity does not pass to the next informer", "identity.update", replace(
			"len(i.running) > 0", "next = i.published; next == nil && len(i.running) > 0")},
		{"an identity gets no latencies", "identity.switchTo", drop("next.latency.connect(i.latency)")},
		{"two goroutines call a provider of metrics at the same time", "identity.update", within("next == last", never("i.switching"))},
		{"a provider of metrics does not get the end of informers", "identity.switchTo", drop("provider.ForgetInformer(i.id)")},
		{"metrics that can't be deleted keep their values", "identity.switchTo", drop("i.version.Set(0)")},
		{"an informer has no identity", "Relay.Identify", drop("o.Identifier = r.identity.id")},
		{"the last values are lost when the identity passes", "relayedGauge.connect", drop("to.Set(math.Float64frombits(last))")},
		{"values that are set before the identity passes are lost", "relayedGauge.Set", drop("g.last.Store(math.Float64bits(value))")},
		{"client-go's own provider of metrics is not used", "Relay.Identify", always("r.identity.provider != nil")},
	}},
}

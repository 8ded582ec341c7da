package main

// ofTypestate has mutants of the state of a type.
var ofTypestate = []table{
	{"internal/typestate", "dynamicinformer", []mutant{
		{"an ambiguous name is no failure", "State.answered", drop("next.Discovery = s.now.Discovery.failed(err, reason, next.At)")},
		{"a list ends the ambiguity of a name", "State.Succeeded", replace("next.Serving == source.Served && !next.disputed", "next.Serving == source.Served")},
		{"the status has the parts of a name that has a meaning", "State.answered", never("s.cfg.Named")},
		{"the cache of an ambiguous name is reported as out of date", "Snapshot.Status", always("!s.disputed")},
		{"an ambiguous name is not served", "Snapshot.inconclusive", never("errors.Is(failing.Err, discovery.ErrAmbiguous)")},
		{"a CRD without a successor keeps its objects", "State.hasSuccessor", always("err == nil")},
		{"a successor that is never served keeps old objects", "State.hasSuccessor", replace("successorFor", "time.Hour")},
		{"the wait for a successor has no end", "State.pause", never("now.Evidence.Kind == discovery.CRDDeleted && now.Serving == source.Held")},
		{"a resolver does not get the expectation of a type", "inquiry.once", drop("q.expects(true)")},
		{"a NotFound does not make a resolver poll", "inquiry.once", replace("q.expects(doubted)", "q.expects(doubted && false)")},
		{"a refused watch does not make a resolver poll", "State.Failed", never("apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)")},
		{"a resolver polls more often after each refused watch", "State.Failed", always("next.Watch.Err == nil")},
		{"every retry is logged", "stateLog.retried", always("l.isNew(reason)")},
		{"each object that is left out is logged", "stateLog.objectsLeftOut", always("!before")},
		{"a log does not report that no object is left out any more", "stateLog.objectsLeftOut", never("!leaves && before")},
		{"a recovery is not logged", "stateLog.healed", never(`reason != ""`)},
		{"the log has a line for each change of a type that changes often", "stateLog.admit", never("l.lines == linesEachMinute")},
		{"the deletion of a type is logged as a wait", "stateLog.vanished", all(
			drop("l.isNew(reason)"), replace("!known", "!known && l.isNew(reason)"))},
		{"an object whose index function failed stays in the status after its deletion", "unindexed.compare", never("!has(at.key)")},
		{"a quarantine names any number of objects without an index", "unindexed.add", always("len(u.named) < maxNamed")},
		{"an object is in no index since its last failure", "unindexed.add", drop("made.since = known.since")},
		{"a good object stays among the names of objects without an index", "unindexed.remove", drop("delete(u.named, at)")},
		{"a quarantine is in no order", "Quarantined.Status", drop("slices.SortFunc(objects, func(a, b status.QuarantinedObject) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Index, b.Index)) })")},
		{"objects that can't be decoded count for the transform", "State.leftOutLocked", never("errors.Is(rejected.Err, source.ErrDecode)")},
		{"a condition has the time of its last failure", "Condition.failed", replace(
			"if c.Err == nil { c = Condition{Since: now} }", "c = Condition{Since: now, Attempts: c.Attempts}")},
		{"a type is absent if the server rejects the user", "Snapshot.state", replace("s.inconclusive()", "reason == status.ReasonDiscoveryFailed")},
		{"an error of an index function is stored at any length", "State.Unindexed", replace("errtext.Clean(err)", "err")},
		{"an informer whose list waits is syncing", "Snapshot.starting", always("s.Source.Queued.IsZero()")},
		{"WaitForSync does not wait for the store", "Snapshot.Synced", always("s.stored >= s.Source.FirstLists")},
		{"the status of a stale cache has no StaleSince", "Snapshot.Status", drop("i.StaleSince = failing.Since")},
		{"a watch-list with a response counts as complete", "Snapshot.hasList", always("s.Source.Complete")},
		{"the status does not have the time of the next attempt", "Snapshot.Status", drop("i.NextRetry = s.Source.Due")},
		{"validation is skipped", "New", replace("source.Held", "source.Served")},
		{"a NotServed answer is kept after a Served answer", "Snapshot.serve", replace(
			"s.Evidence, s.denied, s.Discovery = discovery.Evidence{}, time.Time{}, Condition{}",
			"s.Evidence, s.denied = discovery.Evidence{}, time.Time{}")},
		{"a NotServed answer is not a condition", "Snapshot.refuse", drop("s.Discovery = s.Discovery.failed(err, reason, s.At)")},
		{"SyncedSince is from before a failure", "State.changeLocked", within("next.LeftOut.Count > 0", never("failing"))},
		{"SyncedSince is from before the type was served again", "State.changeLocked", never("!next.hasList()")},
		{"a failure of a watch stays when lists replace watches", "State.Succeeded", never("next.Source.Polling > 0")},
		{"a list counts as a watch, too", "State.Succeeded", after("next.Traffic.Lists++", "next.Traffic.Watches++")},
	}},
	{"internal/typestate", "internal/typestate", []mutant{
		{"another type with the name is the same type", "Snapshot.replacedBy", never("old.GVR.GroupResource() != res.GVR.GroupResource()")},
		{"the end of another type with the name is evidence", "State.HandleEvent", replace("of := event.Resource.GVR.GroupResource() == s.now.GVR.GroupResource()", "of := true")},
		{"a quarantine and the state of a status are of different moments", "State.Report", replace("s.readLocked(from.State)", "s.readLocked(s.source.State())")},
		{"a list that waits has the time of the informer's start", "Snapshot.startingSince", never("!s.Source.Queued.IsZero()")},
		{"the deletion of a CRD ends what another server serves", "State.HandleEvent", never("s.now.servedElsewhere()")},
		{"an inconclusive answer stops an informer", "State.answered", never(
			"err != nil && errors.Is(err, discovery.ErrInconclusive) && s.now.everServed() && s.now.Evidence.Kind != discovery.CRDDeleted")},
		{"evidence has no effect while discovery cannot tell", "State.answered", always("s.now.Evidence.Kind != discovery.CRDDeleted")},
		{"events of discovery are ignored", "State.Look", drop("case s.news <- struct{}{}:")},
		{"the rate of questions to discovery has no limit", "State.ask", replace("q.limiter.Wait(ctx) == nil", "ctx.Err() == nil")},
		{"another served version has no reason of its own", "Classify", never(
			"errors.As(err, &notServed) && len(notServed.Versions) > 0")},
		{"another service is the same type", "Snapshot.movedTo", never(`old.Service != "" && res.Service != "" && old.Service != res.Service`)},
		{"a service is forgotten while it is not known", "Snapshot.completed", drop("res.Service = old.Service")},
		{"a return from gone is the same type", "Snapshot.replacedBy", drop("s.Serving == source.Gone")},
		{"a restored CRD is the same type", "Snapshot.replacedBy", drop("s.Evidence.Kind == discovery.CRDDeleted")},
		{"another backing is the same type", "Snapshot.movedTo", never("old.Backing != res.Backing")},
		{"a UID is kept after the end of its CRD", "Snapshot.completed", never(
			"res.Backing != discovery.BackingUnknown && res.Backing != discovery.BackingCRD")},
		{"another server is trusted at once", "Snapshot.serve", drop("s.moved = s.At")},
		{"a type is never settled", "State.nextQuestion", drop("at = settled")},
		{"a refused watch is lasting", "Snapshot.Lasting", never("verb == source.VerbWatch")},
		{"evidence does not end synced", "Snapshot.hasList", always("s.Evidence.Kind != discovery.CRDDeleted")},
		{"a CRD of another UID is the same type", "Snapshot.replacedBy", never(
			`old.CRDUID != "" && res.CRDUID != "" && old.CRDUID != res.CRDUID`)},
		{"another scope is the same type", "Snapshot.replacedBy", never("old.Namespaced != res.Namespaced")},
		{"a type that is gone counts as synced", "Snapshot.hasList", always("s.Serving != source.Gone")},
		{"a condition does not end when its request succeeds", "State.Succeeded", drop("next.List = Condition{}")},
		{"an inconclusive confirmation counts as a denial", "State.Confirm", within(
			"!errors.Is(err, discovery.ErrNotServed)", replace("true", "false"))},
		{"a CRD that a confirmation does not find is no evidence", "State.Confirm", never("s.now.uid() == known")},
		{"a probe of another type counts", "State.Probed", never("s.now.sourceType() != t")},
		{"an outdated answer counts", "State.answered", never("seen != s.events")},
		{"the next type keeps the conditions of a type", "Snapshot.serve", drop(
			"s.List, s.Watch = Condition{}, Condition{}")},
		{"a NotServed answer counts as the end of a type", "Snapshot.refuse", before(
			"case s.Evidence.Kind == discovery.CRDDeleted && !replaced: s.Serving = source.Gone", "case denied: s.Serving = source.Gone")},
		{"a replaced CRD ends its objects at once", "Snapshot.refuse", always("!replaced")},
		{"two NotServed answers at once are enough evidence", "Snapshot.refuse", replace("absentFor", "0")},
		{"another served version counts as the end of a type", "Snapshot.refuse", never("elsewhere(err)")},
		{"old evidence counts against a new type", "State.HandleEvent", replace(
			`uid == "" || known == "" && !s.now.servedElsewhere() || uid == known`, "uid == uid && known == known")},
		{"a watch that expires is a failure", "State.Failed", replace("if ordinary { return }", "if !ordinary { return }")},
		{"watches that expire all the time are no failure", "State.Failed", always("next.At.Sub(next.expiry) > expiryEvery")},
	}},
	{"discovery", "internal/typestate", []mutant{
		{"a request for a CRD that hangs stops its informers", "facts.CRDUID", replace("context.WithTimeout(ctx, r.options.requestTimeout)", "context.WithCancel(ctx)")},
	}},
}

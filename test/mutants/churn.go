package main

// ofChurn has mutants that the churn model must find. Many are defects that reviews have found, in
// this module or in others. test/README.md has the same texts, and the invariant that finds each.
var ofChurn = []table{
	{"internal/source", ofModel, []mutant{
		{"churn: the objects of a type that is gone stay", "resumableWatch.flush", drop("if !s.delete(ctx, s.known.keys(), nil) { return false }")},
		{"churn: the version of an informer is not updated", "resumableWatch.pass", drop("s.known.reached(namespace, id.version)")},
		{"churn: an object that was deleted while no watch was open stays", "resumableWatch.relist", replace("!s.delete(ctx, s.missingIn(content, t, s.known.keys()), s.leftBy(content, t))", "false")},
		{"churn: an object that was created again while no watch was open is updated", "resumableWatch.missingIn", never("!id.same(item.identity)")},
		{"churn: a namespace that could not be listed counts as listed", "merge", replace("position{}", `position{version: "1", listed: true}`)},
		{"churn: the failure of a namespace does not end", "Namespaces.succeeded", drop("delete(n.failing, name)")},
		{"churn: the objects of a namespace that can't be listed are deleted", "known.keysNotListed", drop("found[key] = true")},
		{"churn: a set of namespaces resumes at the versions of its lists", "child.pass", drop("c.version = cmp.Or(version, c.version)")},
		{"churn: the objects of a namespace that has left the set stay", "merged.drop", replace("m.give(ctx, p) == nil", "p != nil")},
		{"churn: the objects of a namespace that has left the set are deleted, not moved", "resumableWatch.passNamespace", replace("leftIn(keys, missing, p.gone)", "map[string]bool{}")},
		{"churn: watches of a set of namespaces are of all namespaces", "client.WatchWithContext", replace("c.namespace", `""`)},
		{"churn: objects stay in the old version of their type", "resumableWatch.relist", never("of.GVR != t.GVR")},
		{"churn: each watch of a set of namespaces begins at its smallest version", "child.watch", replace("optionsFrom(c.opts, c.version)", "optionsFrom(c.opts, c.known.upTo())")},
		{"churn: KeepCache does not keep the objects of a type that is gone", "resumableWatch.settle", drop("s.cfg.KeepCache")},
		{"churn: the watch of a namespace that has left the set stays", "merged.remove", drop("c.cancel() \n <-c.ended")},
		{"churn: after the end of a watch, no other one is opened, and the state stays", "resumableWatch.closed", before("s.endVersionless()",
			"if p.wanted && p.broken == nil && !p.receded { _, changed := s.available.Current(); _ = s.awaitChange(ctx, changed, nil) }")},
		{"churn: a deletion writes to the cached object", "lastState", replace("&unstructured.Unstructured{Object: copyOf(last.Object).(map[string]any)}", "last")},
		{"churn: a set of namespaces has several versions of a type without namespaces", "Source.ListsEach", replace("s.gate.set(t) != nil", "t.GVR.Resource != \"\" && s.HasSet()")},
		{"churn: after a restore of etcd, objects with equal versions are not compared", "resumableWatch.give", replace("(!content.needsContent() || s.isStored(key, item))", "true")},
		{"churn: a restore of etcd is not reported", "resumableWatch.rewind", drop("s.cfg.Observer.Failed(VerbList, err)")},
	}},
	{"internal/handlers", ofModel, []mutant{
		{"churn: an addition and a deletion that are merged are a deletion", "object.merge", never("o.event.kind == added")},
		{"churn: an update that was merged begins with the last old object", "object.merge", before("o.event.obj = e.obj", "o.event.old = e.old")},
		{"churn: an addition has the place of the deletion before it", "pending.add", never("o.isDeleted() && e.kind == added")},
		{"churn: events are merged without being asked", "Set.wrap", replace("group != nil && group.options.Coalescing", "group != nil")},
		{"churn: a handler that was removed is called", "Set.Remove", returns("nil")},
		{"churn: the calls of a released lease do not end", "Group.Close", drop("g.calls.Close()")},
		{"churn: a registration always reports that it has synced", "registration.HasSynced", replace("cache.IsDone(r.HasSyncedChecker())", "true")},
		{"churn: no addition is initial", "handler.invoke", replace("e.initial", "false")},
		{"churn: each update comes twice", "handler.invoke", after("h.next.OnUpdate(e.old, e.obj)", "h.next.OnUpdate(e.obj, e.obj)")},
		{"churn: deletions have no final state", "handler.invoke", replace("h.next.OnDelete(e.obj)", "h.next.OnDelete(cache.DeletedFinalStateUnknown{Obj: e.obj})")},
		{"churn: an object for which a call has panicked stays failed", "panics.returned", never("len(p.failed) > 0")},
	}},
	{"internal/typestate", ofModel, []mutant{
		{"churn: a type that another server serves is treated as the same type", "record.movedTo", returns("false")},
		{"churn: a conversion webhook that fails has the reason of other failures", "Classify", never("isConversion(err)")},
		{"churn: a watch that fails is no failure", "State.Failed", drop("next.Watch = next.Watch.failed(err, reason, next.At)")},
	}},
	{"internal/namespaces", ofModel, []mutant{
		{"churn: the objects of a namespace that loses its label are deleted, not moved", "selected.remove", replace("s.ask(name, uid)", "gone")},
	}},
	{"internal/follow", ofModel, []mutant{
		{"churn: a type that is gone is followed", "Follower.remove", never("t != nil")},
	}},
	{"dynamicinformer", ofModel, []mutant{
		{"churn: the last release does not end the informer", "entry.retireLocked", drop("e.cancel()")},
		{"churn: an informer with a label selector gets all objects", "settings.tweakAll", replace("o.LabelSelector, o.FieldSelector = labels, fields", "o.LabelSelector, o.FieldSelector = labels[len(labels):], fields")},
		{"churn: a wait returns before the first list", "Factory.waitFor", before("errs := make([]error, len(entries))", "if !o.failFast { return nil }")},
		{"churn: a wait does not wait", "Factory.waitFor", replace("f.wait(waiting, e, o)", "func() *status.NotSyncedError { _ = waiting; err, _ := f.notSynced(e); return err }()")},
	}},
	{"internal/informer", ofModel, []mutant{
		{"churn: AtLeast waits in a set of namespaces", "versionWait.look", replace("w.source.ListsEach()", "false")},
		{"churn: AtLeast returns when the cache is synced", "versionWait.look", replace("listed && reaches(have, w.version) && w.isLoaded(have)", "listed")},
	}},
	{"internal/packed", ofModel, []mutant{
		{"churn: unequal parts of packed objects are treated as equal", "decoder.valueLike", replace("d.data[d.pos:end] == other.data[other.pos:other.after()]", "end-d.pos == other.after()-other.pos")},
	}},
	{"discovery", ofModel, []mutant{
		{"churn: a CRD that was read before a restore of etcd counts after it", "knowledge.putCRD", never("item.Generation < old.Generation")},
		{"churn: a CRD that waits for its objects is not terminating", "knowledge.decorated", replace("state.meta.DeletionTimestamp != nil", "false")},
		{"churn: versions that are not served are reported as served", "crd.resources", always("v.Served")},
	}},
}

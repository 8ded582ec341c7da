package main

// ofControllerRuntime has mutants of the module controllerruntime.
var ofControllerRuntime = []table{
	{"controllerruntime", "controllerruntime", []mutant{
		{"a cache starts twice", "Cache.begin", drop("c.begun = true")},
		{"reads do not wait for Start", "Cache.read", never("!started")},
		{"a read has no reason", "informer.wait", replace("timeout(i.example, reason)", "timeout(i.example, ctx.Err())")},
		{"fail-fast waits", "informer.wait", never("i.cache.options.failFast")},
		{"a broken kind stops all others", "informer.settle", replace("failed.Reason != status.ReasonStopped", "failed == nil")},
		{"WaitForCacheSync does not wait", "informer.settle", replace("i.settled(ctx)", "error(nil)")},
		{"a NotFound of a type that is served counts as absent", "isAbsent", never("now.State == status.StateStarting")},
		{"an absent kind keeps WaitForCacheSync waiting", "informer.settled", never("absent.Load() || i.hasSynced()")},
		{"an absent kind is an error with WithAllowAbsent", "Cache.acquire", never("c.options.allowAbsent && meta.IsNoMatchError(err)")},
		{"an absent kind is never synced", "informer.hasSynced", replace("i.cache.options.allowAbsent && isAbsent(i.lease.Status())", "false")},
		{"the handler of an absent kind is never synced", "absentRegistration.HasSynced", replace("isAbsent(r.informer.lease.Status())", "false")},
		{"the handler of an absent kind can't be removed", "view.RemoveEventHandler", drop("registration = wrapped.ResourceEventHandlerRegistration")},
		{"a removed informer runs", "Cache.RemoveInformer", drop("i.lease.Release()")},
		{"a removed informer is read", "Cache.RemoveInformer", drop("delete(c.informers, k)")},
		{"concurrent reads create several informers", "Cache.get", replace("c.adding[k] = done", "_ = done")},
		{"ReaderFailOnMissingInformer has no effect", "Cache.get", drop("return nil, &cache.ErrResourceNotCached{GVK: gvk}")},
		{"the limit of a list has no effect", "informer.list", never("o.Limit > 0 && int64(len(objects)) >= o.Limit")},
		{"items of a list have no kind", "informer.list", drop("object.GetObjectKind().SetGroupVersionKind(i.gvk)")},
		{"further fields of a list have no effect", "store.byFields", never("!slices.Contains(values, indexValue(namespace, term.Value))")},
		{"the forms of a packed cache have the same indexes", "newStore", drop(`indexes: string(as) + "/"`)},
		{"objects of a packed cache are shared", "own", replace("object.DeepCopyObject()", "object")},
		{"a handler gets the update of an object that it does not know", "decoder.OnUpdate", always("was != nil && is != nil")},
		{"handlers of a controller that has ended are called", "leaseSource.Start", drop("context.AfterFunc(ctx, func() { _ = s.lease.RemoveEventHandler(s.registrar.registration) })")},
		{"a controller waits for an absent type", "leaseSource.WaitForSync", never("isAbsent(now)")},
		{"the error of a source has no reason", "leaseSource.WaitForSync", replace("errors.Join(ctx.Err(), s.lease.WaitForSync(ctx))", "ctx.Err()")},
		{"a removed informer of NewInformer runs", "madeLease.Release", drop("close(l.released)")},
		{"an informer of NewInformer ignores the namespace", "maker.listerWatcher", always(`mapping.Scope.Name() != meta.RESTScopeNameNamespace`)},
	}},
	{"controllerruntime/internal/settings", "controllerruntime", []mutant{
		{"redirects take the credentials of a cache along", "Default", drop("opts.HTTPClient = redirect.Refuse(opts.HTTPClient)")},
	}},
	{"controllerruntime/internal/settings", "controllerruntime/internal/settings", []mutant{
		{"the settings of a kind come before those of its namespace", "defaultKind", replace("config = Merge(config, own)", "config = Merge(own, config)")},
		{"settings of a namespace for all kinds have no effect", "defaultKind", drop("config = Merge(config, opts.DefaultNamespaces[namespace])")},
		{"all other namespaces include those with settings", "others", never("named != cache.AllNamespaces")},
		{"an absent kind with settings is an error with WithAllowAbsent", "Default", never("err != nil && absent && meta.IsNoMatchError(err)")},
		{"a setting has no default", "Merge", drop("config.SyncPeriod = cmp.Or(config.SyncPeriod, from.SyncPeriod)")},
	}},
}

// Package controllerruntime runs controllers of sigs.k8s.io/controller-runtime on gvrkit's informers. [NewCache] replaces the cache of a
// manager:
//
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{NewCache: controllerruntime.NewCache})
//
// or, with options of this package:
//
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{NewCache: controllerruntime.WithOptions(controllerruntime.WithAllowAbsent())})
//
// [Cache] is a cache.Cache on one [dynamicinformer.Factory]. It has all options of cache.Options and passes controller-runtime's own tests
// of its cache, except those that test/envtest/controllerruntime lists with their reasons.
//
// Forms. controller-runtime reads a kind as structured, unstructured or metadata objects. Each form that a program uses has its own informer
// and watch, as there:
//
//   - Structured objects are decoded from the server's JSON straight to the Go type of the scheme. controller-runtime requests protobuf for
//     built-in types.
//   - Unstructured objects are decoded in one pass, and share equal parts.
//   - Metadata is requested alone, without the rest of the objects.
//
// With [WithPackedCaches], one packed cache, with one watch, serves all forms, except in a cache with namespaces.
//
// Differences from controller-runtime's cache:
//
//   - A kind whose CustomResourceDefinition is deleted becomes empty: handlers get the deletion of each object. When the definition is there
//     again, also with another UID, scope or stored version, the informer continues. With [WithAllowAbsent], this includes kinds that have
//     never been served.
//   - If a read or GetInformer has waited until its context ended, the error has the reason, such as a missing permission. With
//     [WithFailFast], they return at once if the reason lasts.
//   - WaitForCacheSync does not wait for an informer that fails for a reason that lasts. In controller-runtime, such an informer keeps all
//     controllers of the manager from starting.
//   - No call of a handler begins after RemoveInformer has returned.
//   - With EnableWatchBookmarks false, informers use lists instead of watch-lists, which need bookmarks.
//   - All informers share the rate limit of the rest.Config, QPS and Burst. In controller-runtime, each informer has one of its own.
//   - An object that can't be decoded, or whose transform fails, is left out, and the status names it. In controller-runtime, it keeps the
//     informer from syncing. With [WithPackedCaches], Get and List return an error instead.
//
// [Cache.Factory] is the factory, with its status page, health checks and leases. With cache.Options.NewInformer, informers do not belong to
// the factory, and have none of its properties. If [WithAllowAbsent] is also given, the informers of kinds that are not served at their
// first use still belong to the factory.
//
// The package does not write to the server.
package controllerruntime

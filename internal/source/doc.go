// Package source has the stages between an informer's reflector and the dynamic client. Together
// they are the cache.ListerWatcher of one resource.
//
//	reflector → gate → requests → client → dynamic.Interface
//
// The gate sends no request before the type is served. It presents all later changes of the type as
// one ordinary list, which it may request as a watch-list, and one watch that never ends; resumableWatch is that watch. Both call the
// informer's transform for each object. The requests stage reports the result of each request, and ends requests
// that hang. The client stage is the dynamic client with namespace and options applied. With a set of
// [Namespaces], each namespace has its own requests. client-go's informer and reflector are unchanged.
// A [ListQueue] limits the first lists of all sources that share it. Lists replace the watch of a type
// that can't be watched, if [Config.Polling] is set. With a [Shard], a source has only the objects of some slots, which may change.
//
// The package knows nothing of factories, discovery or caches.
package source

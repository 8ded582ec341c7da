// Package source is everything between an informer's reflector and the dynamic
// client: the cache.ListerWatcher of one resource, made of small stages.
//
//	reflector → gate → requests → client → dynamic.Interface
//
// The gate lets nothing out before the type is served, and makes whatever becomes of
// the type afterwards look like an ordinary list and one watch that never ends; splice
// is that watch. The requests stage reports how requests go and sees to it that none
// hangs. The client stage is the dynamic client, with namespace and options applied.
// client-go's informer and reflector are used as they are.
//
// The package knows nothing of factories, discovery or caches.
package source

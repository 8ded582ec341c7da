// Package faultproxy is a reverse proxy between a client and an API server, for tests.
// It knows the verb and the resource of each request, counts requests, and injects
// faults. Each fault is one line of a test.
//
//	proxy, err := faultproxy.Start(cfg.Host, transport)
//	…
//	client := dynamic.NewForConfigOrDie(&rest.Config{Host: proxy.URL()})
//	…
//	blocks := faultproxy.Resource("crd.projectcalico.org", "ipamblocks")
//	proxy.Inject(blocks, faultproxy.For(5*time.Second, faultproxy.Fail(404)))
//	proxy.Inject(faultproxy.All(blocks, faultproxy.Namespace("team-a")), faultproxy.Fail(403))
//	…
//	proxy.OpenWatches(blocks)
//
// A [Match] selects requests: by [Resource], [Group], [GVR], [Verb], [Namespace], [Name],
// [Path], [Query], [Discovery] or [AnyDiscovery], combined with [All], [Any] and
// [Not], or by any function of a [Request]. A [Fault] changes:
//
//   - the response: [Fail], [RetryAfter], [GoneStatus], [ExpireContinue], [HTML], [Hang],
//     [Respond];
//   - its bytes: [CutAt], [HangAt], [Truncate], [Garble], [Bandwidth];
//   - a watch: [DropBookmarks], [DelayBookmarks], [NeverInitialEventsEnd], [GarbleFrame],
//     [DuplicateFrame], [GoneEvent], and at once [Proxy.CutWatches];
//   - discovery: [BreakGroup], [DeadGroup], [StaleGroup], [StaleDiscovery];
//   - the server: [Server];
//   - any of these for some requests only: [For], [Times], [Alternate],
//     [AlternateConnections], [Share].
//
// [OnEffect] counts the responses that a fault has changed.
//
// Except for [For] and [AlternateConnections], the same requests in the same order get the same faults.
//
// For a fault that changes the bytes of a response, the proxy requests an uncompressed
// response without conditional headers, in JSON if the client accepts JSON.
// [Proxy.Past] returns requests as the client sent them.
//
// The proxy serves plain HTTP on a loopback port and adds the credentials of the
// transport: every process that can connect to the port has this access. The package
// imports only the standard library, so that it adds no dependencies to a module. It
// does not interpret the objects in responses.
package faultproxy

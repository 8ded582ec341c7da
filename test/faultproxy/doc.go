// Package faultproxy is a reverse proxy to put between a client and an API server
// in tests: it knows what each request means in Kubernetes' terms, counts, and
// lets go wrong what a test wants, in one line for each fault.
//
//	proxy, err := faultproxy.Start(cfg.Host, transport)
//	…
//	client := dynamic.NewForConfigOrDie(&rest.Config{Host: proxy.URL()})
//	…
//	blocks := faultproxy.Resource("crd.projectcalico.org", "ipamblocks")
//	proxy.Inject(blocks, faultproxy.For(5*time.Second, faultproxy.Fail(404)))
//	…
//	proxy.OpenWatches(blocks)
//
// A [Match] says which requests: by [Resource], [GVR], [Verb], [Namespace], [Name],
// [Path], [Query], [Discovery] or [AnyDiscovery], put together by [All], [Any] and
// [Not], or by any function of a [Request]. A [Fault] says what goes wrong:
//
//   - the answer: [Fail], [RetryAfter], [GoneStatus], [HTML], [Hang], [Respond];
//   - its bytes: [CutAt], [Truncate], [Garble];
//   - a watch: [DropBookmarks], [DelayBookmarks], [NeverInitialEventsEnd],
//     [GoneEvent], and at once [Proxy.CutWatches];
//   - discovery: [BreakGroup], [StaleGroup];
//   - any of these for some requests only: [For], [Times], [Alternate], [Share].
//
// Nothing in it is left to chance: the same requests in the same order meet the
// same faults.
//
// A fault that works on the bytes of an answer has the server send them
// uncompressed, in JSON if the client takes that, and without asking whether they
// are modified. What [Proxy.Past] tells is the request as the client made it.
//
// The proxy speaks plain HTTP on a loopback port and brings the credentials that the
// transport has: whoever reaches it is let in. It is made of the standard library
// alone, so that it costs the modules that import it nothing. It knows nothing of
// the objects that it passes.
package faultproxy

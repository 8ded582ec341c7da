// Package faultproxy is a reverse proxy to put between a client and an API server
// in tests: it knows what each request means in Kubernetes' terms, counts, and
// lets a test answer in the server's place.
//
//	proxy, err := faultproxy.Start(cfg.Host, transport)
//	…
//	client := dynamic.NewForConfigOrDie(&rest.Config{Host: proxy.URL()})
//	…
//	proxy.OpenWatches(faultproxy.Resource("crd.projectcalico.org", "ipamblocks"))
//
// It speaks plain HTTP on a loopback port and brings the credentials that the
// transport has: whoever reaches it is let in. It is made of the standard library
// alone, so that it costs the modules that import it nothing.
package faultproxy

package dynamicinformer

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

// Handler returns a page that shows what [Factory.Status] and [Factory.Explain] return: a
// table of all informers, and each resource in detail. It writes text, HTML for browsers,
// which stays up to date by itself, or JSON, by the Accept header or the parameter format.
//
// Mount it at a path that ends with a slash, such as /informers/: then /informers/pods.v1 is
// one resource, and other paths are not found. It works at any path of an http.ServeMux, and
// behind http.StripPrefix; a router that does neither should mount it with a slash, too.
//
// It is read-only, shows no objects, sends no request, and starts no goroutine; it works
// before Start and after Shutdown, too. Requests within half a second share one call of
// Status, and a slow reader delays neither other readers nor the factory.
//
// It has no access control. It shows names of types, namespaces, leases and Go types, counts,
// times, and errors of servers.
func (f *Factory) Handler() http.Handler { return statuspage.NewHandler(pageSource{f}) }

// pageSource tells the page what f knows.
type pageSource struct{ *Factory }

// Informers implements statuspage.Source.
func (s pageSource) Informers() []statuspage.Informer { return pageInformers(s.Status()) }

// Detail implements statuspage.Source. The name may leave out the version, as that of a
// CustomResourceDefinition does.
func (s pageSource) Detail(name string) (statuspage.Detail, bool) {
	gvr, found := s.named(name)
	if !found {
		ref, err := discovery.ParseRef(name)
		if err != nil || ref.Version == "" {
			return s.unnamed(name), false
		}
		gvr = schema.GroupVersionResource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource}
	}
	e := s.Explain(gvr)
	d := statuspage.Detail{
		Name: discovery.RefOf(gvr).String(), At: e.At, Informers: pageInformers(e.Informers), Discovery: pageDiscovery(e.Discovery),
		Chain: make([]statuspage.Step, len(e.Chain)),
	}
	for _, other := range e.Elsewhere {
		d.Elsewhere = append(d.Elsewhere, discovery.RefOf(other).String())
	}
	for i, step := range e.Chain {
		d.Chain[i] = statuspage.Step{About: string(step.About), Text: step.Text}
	}
	return d, found
}

// unnamed returns the detail of a name that no informer has, and that is not a GVR.
func (s pageSource) unnamed(name string) statuspage.Detail {
	d := statuspage.Detail{
		Name: name, At: time.Now(), Informers: []statuspage.Informer{},
		Chain: []statuspage.Step{{About: string(status.StepWanted), Text: "There is no informer on a resource of that name."}},
	}
	if now, configured := s.Discovery(); configured {
		d.Discovery = pageDiscovery(&now)
	}
	return d
}

// named returns the resource of that name that has an informer: the one that it names in
// full or, without a version, the first one.
func (s pageSource) named(name string) (gvr schema.GroupVersionResource, found bool) {
	for _, e := range s.all() {
		if discovery.RefOf(e.gvr).String() == name {
			return e.gvr, true
		}
		if !found && e.gvr.GroupResource().String() == name {
			gvr, found = e.gvr, true
		}
	}
	return gvr, found
}

func pageInformers(all []status.Informer) []statuspage.Informer {
	informers := make([]statuspage.Informer, len(all))
	for i := range all {
		informers[i] = pageInformer(&all[i])
	}
	return informers
}

// pageInformer says of s all that there is.
func pageInformer(s *status.Informer) statuspage.Informer {
	i := statuspage.Informer{
		Name: discovery.RefOf(s.GVR).String(), Group: s.GVR.Group, Version: s.GVR.Version, Resource: s.GVR.Resource,
		Served: pageServed(s.Resource), State: string(s.State), Reason: string(s.Reason), Message: s.Message(), Advice: s.Advice(),
		Namespace: s.Namespace, Verb: s.Verb, Since: s.Since, Attempts: s.Attempts, NextRetry: s.NextRetry, StaleSince: s.StaleSince,
		FailedObjects: s.FailedObjects, LastFailed: s.LastFailed,
		Generation: s.Generation, Flushing: s.Flushing, Objects: s.Objects, ResourceVersion: s.ResourceVersion,
		Traffic: pageTraffic(s.Traffic), Pinned: s.Pinned, Leases: s.Leases,
	}
	if s.VersionPolicy != discovery.Exact() {
		i.VersionPolicy = s.VersionPolicy.String()
	}
	if s.Err != nil {
		i.Error = s.Err.Error()
	}
	if s.Evidence.Kind != "" {
		i.Evidence = &statuspage.Evidence{Kind: string(s.Evidence.Kind), CRDUID: string(s.Evidence.CRDUID), At: s.Evidence.At}
	}
	for _, h := range s.Owners {
		i.Holders = append(i.Holders, statuspage.Holder{Name: h.Name, Leases: h.Leases, Since: h.Since})
	}
	for _, h := range s.Handlers {
		i.Handlers = append(i.Handlers, statuspage.Handling{
			Handler: h.Handler, Lease: h.Lease, Delivered: h.Delivered, Backlog: h.Backlog,
			RunningSince: h.RunningSince, BehindSince: h.BehindSince,
		})
	}
	return i
}

func pageServed(res discovery.Resource) *statuspage.Served {
	if res.GVK.Kind == "" {
		return nil
	}
	return &statuspage.Served{
		Name: discovery.RefOf(res.GVR).String(), Kind: res.GVK.Kind, Namespaced: res.Namespaced,
		Backing: string(res.Backing), CRDUID: string(res.CRDUID), Terminating: res.Terminating,
	}
}

func pageTraffic(t status.Traffic) statuspage.Traffic {
	shown := statuspage.Traffic{Lists: t.Lists, Watches: t.Watches, Bytes: t.Bytes, Events: t.Events, LastEvent: t.LastEvent}
	for reason, n := range t.Failures {
		if shown.Failures == nil {
			shown.Failures = map[string]uint64{}
		}
		shown.Failures[string(reason)] = n
	}
	return shown
}

func pageDiscovery(s *discovery.Status) *statuspage.Discovery {
	if s == nil {
		return nil
	}
	d := &statuspage.Discovery{
		Running: s.Running, Types: s.Types, Requests: s.Requests, Answers: statuspage.Answers(s.Answers),
	}
	if !s.Running {
		return d
	}
	for _, source := range []struct {
		name string
		discovery.SourceStatus
	}{{"CustomResourceDefinitions", s.CRDs}, {"APIServices", s.APIServices}, {"Discovery documents", s.Documents}} {
		shown := statuspage.DiscoverySource{Name: source.name, State: string(source.State), Since: source.Since, Verb: source.Verb}
		if source.Err != nil {
			shown.Error = source.Err.Error()
		}
		d.Sources = append(d.Sources, shown)
	}
	return d
}

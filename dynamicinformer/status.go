package dynamicinformer

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/internal/typestate"
	"github.com/gvrkit/gvrkit/status"
)

// Status returns the status of each informer, sorted by group, version and resource. It sends no request, and does not wait for an informer that is busy.
func (f *Factory) Status() []status.Informer {
	entries := f.all()
	all := make([]status.Informer, len(entries))
	for n, e := range entries {
		all[n] = f.status(e)
	}
	return all
}

// status returns the status of e: one snapshot of the state of its type, its owners, and its handlers.
func (f *Factory) status(e *entry) status.Informer {
	f.mu.Lock()
	leases, pinned := len(e.leases), e.pinned
	var owners []status.Owner
	for _, owner := range e.owners {
		owners = append(owners, *owner)
	}
	notRunning := e.notRunningLocked()
	known, quarantine, namespaces := e.state.Report() // at the same moment
	f.mu.Unlock()
	if known.Synced() && notRunning == status.ReasonNotStarted { // a user runs it without the factory
		notRunning = ""
	}
	i := known.Status(notRunning)
	i.Quarantine = quarantine.Status()
	i.Namespaces = typestate.Namespaces(namespaces)
	i.ID, i.Ref, i.VersionPolicy, i.Form = e.number, e.ref, e.versions, e.form.String()
	i.Leases, i.Pinned, i.Owners = leases, pinned, owners
	slices.SortFunc(i.Owners, func(a, b status.Owner) int { return strings.Compare(a.Name, b.Name) })
	i.Handlers = e.informer.Handlers().Stats(known.At)
	i.Packed = e.informer.IsPacked()
	return i
}

// MemoryBudget returns the state of the budget of [WithMemoryBudget]; zero if there is none.
func (f *Factory) MemoryBudget() status.Budget { return f.memory.Status() }

// notRunning returns the reason why e does not run, or "".
func (f *Factory) notRunning(e *entry) status.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	return e.notRunningLocked()
}

// Explain describes the state of the informers on gvr in sentences. It sends no request, and does not
// wait for an informer that is busy. [discovery.Resolver.Resolve] asks the server.
func (f *Factory) Explain(gvr schema.GroupVersionResource) status.Explanation {
	var informers []status.Informer
	var elsewhere []schema.GroupVersionResource
	for _, e := range f.versionsOf(gvr.GroupResource()) {
		if i := f.status(e); i.GVR == gvr {
			informers = append(informers, i)
		} else if !slices.Contains(elsewhere, i.GVR) {
			elsewhere = append(elsewhere, i.GVR)
		}
	}
	return f.explain(gvr, informers, elsewhere)
}

// explain returns the explanation of gvr.
func (f *Factory) explain(gvr schema.GroupVersionResource, informers []status.Informer, elsewhere []schema.GroupVersionResource) status.Explanation {
	var known *discovery.Status
	if resolver := f.Resolver(); resolver != nil {
		now := resolver.Status()
		known = &now
	}
	return status.NewExplanation(gvr, time.Now(), informers, elsewhere, known)
}

// Status returns the status of the lease's informer. It sends no request.
func (l *Lease) Status() status.Informer { return l.factory.status(l.entry) }

// Watch returns an iterator over the statuses of the lease's informer: the present status, and then the new status after each change, also of its
// leases, but not of its handlers or counts. A slow loop gets only the latest status. The iteration ends when ctx ends, when the loop
// is left or, after the last status, when the informer has ended. The iterator may be used several times, and by several goroutines at the same time.
func (l *Lease) Watch(ctx context.Context) iter.Seq[status.Informer] {
	return func(yield func(status.Informer) bool) {
		l.entry.await(ctx, func() (left bool) { return !yield(l.Status()) })
	}
}

// Handler returns an HTTP handler for the status page, with the results of [Factory.Status] and [Factory.Explain]: a table of all informers, and
// each resource in detail. The Accept header or the parameter format selects text, JSON, or HTML that updates itself in a browser. The JSON is
// that of [status.Informer] and [status.Explanation].
//
// Mount it at a path that ends with a slash, such as /informers/: then /informers/pods.v1 is one resource, and other paths are not found. It
// works at any path of an http.ServeMux, and behind http.StripPrefix. Other routers should also mount it at a path that ends with a slash. Since such
// a router may be at the root of an http.ServeMux, a page at that root also serves the table at paths of several segments.
//
// The page is read-only, shows no objects and sends no request. No goroutine outlives the requests that wait for its response. It also works before Start and
// after Shutdown. Requests within half a second share one call of Status. A slow client does not delay other clients or the factory.
//
// The page has no access control. It shows names of types, namespaces, leases and Go types, counts, times, and errors of servers.
func (f *Factory) Handler() http.Handler { return statuspage.NewHandler(page{f}) }

// page shows the factory to package statuspage.
type page struct{ *Factory }

// Explain implements statuspage.Source. The name may have no version, as the name of a CustomResourceDefinition.
func (s page) Explain(name string) (status.Explanation, bool) {
	gvr, found := s.named(name)
	if found {
		return s.Factory.Explain(gvr), true
	}
	ref, err := discovery.ParseRef(name)
	if err != nil || ref.Version == "" {
		return s.explain(schema.GroupVersionResource{Resource: name}, nil, nil), false
	}
	return s.Factory.Explain(schema.GroupVersionResource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource}), false
}

// named returns a resource with an informer by its full name or, if name has no version, the first resource with that name.
func (s page) named(name string) (gvr schema.GroupVersionResource, found bool) {
	for _, e := range s.all() {
		of := e.resource()
		if discovery.RefOf(of).String() == name {
			return of, true
		}
		if !found && of.GroupResource().String() == name {
			gvr, found = of, true
		}
	}
	return gvr, found
}

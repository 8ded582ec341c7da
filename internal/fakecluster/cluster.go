package fakecluster

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Type is a resource that the cluster serves. Nil Verbs mean all verbs of the package.
type Type struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
}

// Request is a request to the cluster. Options are those of a list or watch.
type Request struct {
	Verb      string
	GVR       schema.GroupVersionResource
	Namespace string
	Name      string
	Options   metav1.ListOptions
}

// Interceptor is called with each request before it is served. If it returns an error, that
// is the response. It may block until ctx ends.
type Interceptor func(ctx context.Context, req Request) error

// Cluster is an API server in memory. It is safe for concurrent use.
type Cluster struct {
	mu          sync.Mutex // never held while an interceptor runs
	types       map[schema.GroupVersionResource]*store
	version     int64
	requests    []Request
	open        map[schema.GroupVersionResource]int
	intercept   Interceptor
	muteInitial bool
	sharded     bool
	restores    int
	moment      time.Time       // of the last request
	burst       map[Request]int // lists and watches at that moment, without their options
}

var _ dynamic.Interface = (*Cluster)(nil)

// New returns a cluster that serves types, without objects.
func New(types ...Type) *Cluster {
	c := &Cluster{
		types:   map[schema.GroupVersionResource]*store{},
		open:    map[schema.GroupVersionResource]int{},
		version: 1,
	}
	c.Serve(types...)
	return c
}

// Serve adds types, which begin without objects. A type that exists is replaced: its
// objects are removed, and earlier resource versions are expired.
func (c *Cluster) Serve(types ...Type) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range types {
		if t.Verbs == nil {
			t.Verbs = []string{"create", "delete", "get", "list", "update", "watch"}
		}
		c.withdrawLocked(t.GVR)
		c.types[t.GVR] = newStore(t, c.version)
	}
}

// Withdraw stops serving gvr and ends its watches, without events for its objects.
func (c *Cluster) Withdraw(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withdrawLocked(gvr)
}

func (c *Cluster) withdrawLocked(gvr schema.GroupVersionResource) {
	if s := c.types[gvr]; s != nil {
		s.closeWatches()
		delete(c.types, gvr)
		c.nextVersionLocked()
	}
}

// Intercept sets the interceptor of later requests, and replaces an earlier one. Nil
// removes it.
func (c *Cluster) Intercept(f Interceptor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intercept = f
}

// MuteInitialEventsEnd makes watch-list streams omit the bookmark that ends their initial
// events, as some proxies and aggregated servers do.
func (c *Cluster) MuteInitialEventsEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muteInitial = true
}

// Shard makes the cluster select the objects of a ShardSelector, which it ignores before, or ends that.
func (c *Cluster) Shard(sharded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sharded = sharded
}

func (c *Cluster) isSharded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sharded
}

// Requests returns the requests for gvr with verb so far, in order. Discovery requests have
// the verb VerbDiscover, and the GVR described there.
func (c *Cluster) Requests(verb string, gvr schema.GroupVersionResource) []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Request
	for _, req := range c.requests {
		if req.Verb == verb && req.GVR == gvr {
			found = append(found, req)
		}
	}
	return found
}

// OpenWatches returns the number of open watches of gvr.
func (c *Cluster) OpenWatches(gvr schema.GroupVersionResource) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[gvr]
}

// Expire makes watches from each earlier resourceVersion respond with 410 Gone.
func (c *Cluster) Expire(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.types[gvr]; s != nil {
		s.expire(c.version)
	}
}

// SetVersion sets the resource version of the last change, as if another server responded
// from now on.
func (c *Cluster) SetVersion(version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// CloseWatches ends the open watches of gvr, as a server does when it stops.
func (c *Cluster) CloseWatches(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.types[gvr]; s != nil {
		s.closeWatches()
	}
}

// Resource returns the client of gvr, also if gvr is not served.
func (c *Cluster) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &namespaceable{resource{cluster: c, gvr: gvr}}
}

// arrive records a request, calls the interceptor, and returns the store of the request's
// resource.
func (c *Cluster) arrive(ctx context.Context, req Request) (*store, error) {
	if err := c.admit(ctx, req); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, served := c.types[req.GVR]
	switch {
	case !served, !s.Namespaced && req.Namespace != "":
		return nil, notServed(req.Verb)
	case !s.supports(req.Verb):
		return nil, apierrors.NewMethodNotSupported(req.GVR.GroupResource(), req.Verb)
	}
	return s, nil
}

func (c *Cluster) admit(ctx context.Context, req Request) error {
	c.mu.Lock()
	c.requests = append(c.requests, req)
	c.limitLocked(req)
	intercept := c.intercept
	c.mu.Unlock()
	if intercept != nil {
		if err := intercept(ctx, req); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// burstLimit is the maximum number of lists or watches of one resource at one moment.
const burstLimit = 10_000

// limitLocked panics if a client repeats a request without a pause. In a bubble, it would repeat the
// request for ever, because time stands still while a goroutine runs.
func (c *Cluster) limitLocked(req Request) {
	if now := time.Now(); !now.Equal(c.moment) {
		c.moment, c.burst = now, map[Request]int{}
	}
	req.Options = metav1.ListOptions{}
	if req.Verb != "list" && req.Verb != "watch" {
		return
	}
	if c.burst[req]++; c.burst[req] > burstLimit {
		panic(fmt.Sprintf("fakecluster: %d requests at one moment: %s %s", burstLimit, req.Verb, req.GVR))
	}
}

// notServed returns the response of an API server to a path that it does not serve.
func notServed(verb string) error {
	return apierrors.NewGenericServerResponse(404, verb, schema.GroupResource{}, "", "404 page not found", 0, true)
}

func (c *Cluster) nextVersionLocked() int64 {
	c.version++
	return c.version
}

func formatVersion(v int64) string { return strconv.FormatInt(v, 10) }

package fakecluster

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// LeaseServer is an API server of Leases in memory, with optimistic concurrency. It is safe for concurrent use.
type LeaseServer struct {
	mu       sync.Mutex
	revision int
	leases   map[string]*coordinationv1.Lease
	requests []string
}

// LeaseClient is the client of one process of a server of Leases. It has no other types.
type LeaseClient struct {
	kubernetes.Interface
	coordinationclient.CoordinationV1Interface
	coordinationclient.LeaseInterface
	server *LeaseServer

	mu    sync.Mutex
	fault func(verb string) (before, after error) // before: the request is not executed
	hang  bool                                    // requests wait until their context ends
}

// NewLeaseServer returns a server without Leases.
func NewLeaseServer() *LeaseServer { return &LeaseServer{leases: map[string]*coordinationv1.Lease{}} }

// Client returns the client of another process.
func (s *LeaseServer) Client() *LeaseClient { return &LeaseClient{server: s} }

// CoordinationV1 implements kubernetes.Interface.
func (c *LeaseClient) CoordinationV1() coordinationclient.CoordinationV1Interface { return c }

// Leases implements coordinationclient.CoordinationV1Interface. There is one namespace.
func (c *LeaseClient) Leases(string) coordinationclient.LeaseInterface { return c }

// SetFault sets a function that makes requests fail: with the error before, a request is not executed; with after, it is, and the response is
// lost. Nil ends the faults.
func (c *LeaseClient) SetFault(fault func(verb string) (before, after error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// SetHang makes requests wait until their contexts end, or ends that.
func (c *LeaseClient) SetHang(hang bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hang = hang
}

var leasesResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// do executes a request, with the faults of the client.
func (c *LeaseClient) do(ctx context.Context, verb, name string, execute func(*LeaseServer) error) error {
	c.mu.Lock()
	fault, hang := c.fault, c.hang
	c.mu.Unlock()
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
	if hang {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var before, after error
	if fault != nil {
		before, after = fault(verb)
	}
	if before != nil {
		return before
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.requests = append(c.server.requests, strings.TrimSpace(verb+" "+name))
	if err := execute(c.server); err != nil {
		return err
	}
	return after
}

func (s *LeaseServer) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.revision++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.Itoa(s.revision)
	if l.UID == "" {
		l.UID = types.UID("uid-" + l.ResourceVersion)
	}
	s.leases[l.Name] = l
	return l.DeepCopy()
}

// Lease returns a copy of a Lease, or nil.
func (s *LeaseServer) Lease(name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[name].DeepCopy()
}

// Edit is a write of another program.
func (s *LeaseServer) Edit(name string, change func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.leases[name].DeepCopy()
	change(changed)
	s.put(changed)
}

// Count returns the number of Leases.
func (s *LeaseServer) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}

// Create implements coordinationclient.LeaseInterface.
func (c *LeaseClient) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "create", l.Name, func(s *LeaseServer) error {
		if s.leases[l.Name] != nil {
			return apierrors.NewAlreadyExists(leasesResource, l.Name)
		}
		stored = s.put(l)
		return nil
	})
}

// Update implements coordinationclient.LeaseInterface.
func (c *LeaseClient) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "update", l.Name, func(s *LeaseServer) error {
		switch before := s.leases[l.Name]; {
		case before == nil:
			return apierrors.NewNotFound(leasesResource, l.Name)
		case before.ResourceVersion != l.ResourceVersion:
			return apierrors.NewConflict(leasesResource, l.Name, nil)
		}
		stored = s.put(l)
		return nil
	})
}

// Delete implements coordinationclient.LeaseInterface.
func (c *LeaseClient) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.do(ctx, "delete", name, func(s *LeaseServer) error {
		switch before := s.leases[name]; {
		case before == nil:
			return apierrors.NewNotFound(leasesResource, name)
		case options.Preconditions == nil || options.Preconditions.ResourceVersion == nil || *options.Preconditions.ResourceVersion != before.ResourceVersion,
			options.Preconditions.UID == nil || *options.Preconditions.UID != before.UID:
			return apierrors.NewConflict(leasesResource, name, nil)
		}
		delete(s.leases, name)
		return nil
	})
}

// List implements coordinationclient.LeaseInterface.
func (c *LeaseClient) List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	named, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, err
	}
	if options.ResourceVersion != "" {
		return nil, apierrors.NewBadRequest("this list may be old")
	}
	result := &coordinationv1.LeaseList{}
	return result, c.do(ctx, "list", "", func(s *LeaseServer) error {
		for _, name := range slices.Sorted(maps.Keys(s.leases)) {
			if l := s.leases[name]; selector.Matches(labels.Set(l.Labels)) && named.Matches(fields.Set{metav1.ObjectNameField: name}) {
				result.Items = append(result.Items, *l.DeepCopy())
			}
		}
		slices.Reverse(result.Items) // in no useful order
		return nil
	})
}

package sharding

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// server is an API server of Leases in memory, with optimistic concurrency.
type server struct {
	mu       sync.Mutex
	revision int
	leases   map[string]*coordinationv1.Lease
	requests []string
}

// client is the client of one process of a server.
type client struct {
	kubernetes.Interface
	coordinationclient.CoordinationV1Interface
	coordinationclient.LeaseInterface
	server *server

	mu    sync.Mutex
	fault func(verb string) (before, after error) // before: the request is not executed
	hang  bool                                    // requests wait until their context ends
}

func newServer() *server { return &server{leases: map[string]*coordinationv1.Lease{}} }

func (s *server) client() *client { return &client{server: s} }

func (c *client) CoordinationV1() coordinationclient.CoordinationV1Interface { return c }

func (c *client) Leases(string) coordinationclient.LeaseInterface { return c }

func (c *client) setFault(fault func(verb string) (before, after error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

func (c *client) setHang(hang bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hang = hang
}

var leasesResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// do executes a request, with the faults of the client.
func (c *client) do(ctx context.Context, verb, name string, execute func(*server) error) error {
	c.mu.Lock()
	fault, hang := c.fault, c.hang
	c.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // in a bubble
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

func (s *server) put(l *coordinationv1.Lease) *coordinationv1.Lease {
	s.revision++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.Itoa(s.revision)
	if l.UID == "" {
		l.UID = types.UID("uid-" + l.ResourceVersion)
	}
	s.leases[l.Name] = l
	return l.DeepCopy()
}

// lease returns a copy of a Lease, or nil.
func (s *server) lease(name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[name].DeepCopy()
}

// edit is a write of another program.
func (s *server) edit(name string, change func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.leases[name].DeepCopy()
	change(changed)
	s.put(changed)
}

// count returns the number of Leases.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.leases)
}

func (c *client) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "create", l.Name, func(s *server) error {
		if s.leases[l.Name] != nil {
			return apierrors.NewAlreadyExists(leasesResource, l.Name)
		}
		stored = s.put(l)
		return nil
	})
}

func (c *client) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (stored *coordinationv1.Lease, err error) {
	return stored, c.do(ctx, "update", l.Name, func(s *server) error {
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

func (c *client) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.do(ctx, "delete", name, func(s *server) error {
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

func (c *client) List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	if options.ResourceVersion != "" {
		return nil, apierrors.NewBadRequest("this list may be old")
	}
	result := &coordinationv1.LeaseList{}
	return result, c.do(ctx, "list", "", func(s *server) error {
		for _, name := range slices.Sorted(maps.Keys(s.leases)) {
			if l := s.leases[name]; selector.Matches(labels.Set(l.Labels)) {
				result.Items = append(result.Items, *l.DeepCopy())
			}
		}
		slices.Reverse(result.Items) // in no useful order
		return nil
	})
}

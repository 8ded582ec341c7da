package embedded

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The path and parameter of the child's reset request, as in package inprocess.
const (
	resetPath        = "/embedded/reset"
	resetObjectsOnly = "objects"
)

// Reset deletes all CRDs and all of their objects. It returns when none of them is served
// or listed in discovery. Between the specs of a suite, it replaces the start of another
// server, and takes tens of milliseconds.
//
// Reset does not run finalizers and does not wait for them: it deletes objects and CRDs
// with any finalizers. A watch gets an event for each deleted object, and ends about a
// second later. Resource versions do not start again, and clients keep their discovery
// caches.
//
// Stop the controllers of a spec before Reset. If an object is written while its CRD is
// deleted, it may exist again when a CRD with the same name is installed.
func (s *Server) Reset(ctx context.Context) error {
	if err := s.reset(ctx); err != nil {
		return fmt.Errorf("embedded: reset: %w", err)
	}
	return nil
}

func (s *Server) reset(ctx context.Context) error {
	i, err := newInstaller(s.config)
	if err != nil {
		return err
	}
	crds, err := i.crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := i.raw.Post().AbsPath(resetPath).Do(ctx).Error(); err != nil {
		return err
	}
	for _, crd := range crds.Items {
		if err := i.waitGone(ctx, &crd); err != nil {
			return err
		}
	}
	if err := i.waitUndiscovered(ctx); err != nil {
		return err
	}
	// Deletes objects that requests in progress have written to types that were still served.
	return i.raw.Post().AbsPath(resetPath).Do(ctx).Error()
}

// waitGone waits until no version of crd is served.
func (i *installer) waitGone(ctx context.Context, crd *unstructured.Unstructured) error {
	for _, path := range listPaths(crd) {
		err := poll(ctx, func() (bool, error) {
			err := i.raw.Get().AbsPath(path).Param("resourceVersion", "0").Param("limit", "1").MaxRetries(0).Do(ctx).Error()
			return apierrors.IsNotFound(err), ctx.Err()
		})
		if err != nil {
			return fmt.Errorf("%s is still served: %w", path, err)
		}
	}
	return nil
}

// waitUndiscovered waits until discovery has only the server's own group.
func (i *installer) waitUndiscovered(ctx context.Context) error {
	groups := &metav1.APIGroupList{}
	err := poll(ctx, func() (bool, error) {
		err := i.raw.Get().AbsPath("/apis").Do(ctx).Into(groups)
		return len(groups.Groups) == 1, err
	})
	if err != nil {
		return fmt.Errorf("discovery still has %d groups: %w", len(groups.Groups), err)
	}
	return nil
}

// ResetObjects deletes all objects of all CRDs, and keeps the CRDs. It returns when all
// lists are empty, which takes some milliseconds. For finalizers, resource versions and
// concurrent writes, it is like [Server.Reset]. Watches continue, with an event for each
// deleted object.
func (s *Server) ResetObjects(ctx context.Context) error {
	if err := s.resetObjects(ctx); err != nil {
		return fmt.Errorf("embedded: reset objects: %w", err)
	}
	return nil
}

func (s *Server) resetObjects(ctx context.Context) error {
	i, err := newInstaller(s.config)
	if err != nil {
		return err
	}
	if err := i.raw.Post().AbsPath(resetPath).Param(resetObjectsOnly, "").Do(ctx).Error(); err != nil {
		return err
	}
	return i.waitCurrent(ctx)
}

// waitCurrent waits until lists of all types have the objects in etcd.
func (i *installer) waitCurrent(ctx context.Context) error {
	crds, err := i.crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, crd := range crds.Items {
		for _, path := range listPaths(&crd) {
			// For a list without a resource version, the server updates its watch cache first.
			err := i.raw.Get().AbsPath(path).Param("limit", "1").Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) { // not found: not Established
				return fmt.Errorf("list %s: %w", path, err)
			}
		}
	}
	return nil
}

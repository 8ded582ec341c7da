package leases

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
)

// partly is for a type whose lists and watches are forbidden in some namespaces of the lease. The others must be as if they were all.
func (c *comparison) partly(ctx context.Context, i churn.Incarnation, forbidden []string) {
	if c.at.State != status.StateSynced {
		c.report("lists are forbidden only in %v, and the state is %s (%s)", forbidden, c.at.State, c.at.Reason)
	}
	var unlisted []string
	for _, ns := range c.at.Namespaces {
		if !ns.Listed {
			unlisted = append(unlisted, ns.Name)
		}
	}
	if slices.ContainsFunc(unlisted, func(name string) bool { return !slices.Contains(forbidden, name) }) {
		c.report("%v are not listed; %v are forbidden", unlisted, forbidden)
	}
	if names := lacking(c.incomplete); !slices.Equal(names, unlisted) {
		c.report("the lister returns %v, and %v are not listed", c.incomplete, unlisted)
	}
	if c.at.Objects != len(c.has) {
		c.report("the status has %d objects, and the lister %d", c.at.Objects, len(c.has))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := c.wait(ctx); err != nil {
		c.report("lists are forbidden only in %v, and WaitForSync returns %v", forbidden, err)
	}
	c.versions(i, forbidden)
	c.refused()
}

// refused is for a set of namespaces some of which are forbidden: AtLeast returns an error at once, and waits for none of them.
func (c *comparison) refused() {
	if c.view.Sets != nil && c.awaits.Load() {
		c.report("AtLeast has not returned, and each namespace has its own version")
	}
}

// versions compares the versions of objects with that of the lease, except those of some namespaces.
func (c *comparison) versions(i churn.Incarnation, except []string) {
	version := c.version
	if version == "" {
		version = i.Served[0] // of v1 and v1beta1, v1 is preferred
	}
	for key, seen := range c.has {
		if seen.Version != version && c.view.Form != churn.Metadata && !slices.Contains(except, seen.Namespace) {
			c.report("%s has the version %s, want %s", key, seen.Version, version)
		}
	}
}

// reads gets each wanted object from the lister by its name and, in each scope, one that does not exist.
func (c *comparison) reads(want map[string]churn.Observation, scopes []string) {
	if c.get == nil {
		return
	}
	for key, o := range want {
		obj, err := c.get(o.Namespace, o.Name)
		if err != nil {
			c.report("a read of %s returns %v", key, err)
		} else if seen := churn.Observe(obj, c.view.Form); seen != c.has[key] {
			c.report("a read of %s returns %v, and a list has %v", key, seen, c.has[key])
		}
	}
	unlisted := lacking(c.incomplete)
	for _, scope := range scopes {
		obj, err := c.get(scope, "none")
		switch incomplete := slices.Contains(unlisted, scope); {
		case incomplete && !errors.Is(err, status.ErrIncomplete), !incomplete && !apierrors.IsNotFound(err):
			c.report("a read of an object that does not exist in namespace %q, which is listed: %v, returns %v, %v", scope, !incomplete, obj, err)
		}
	}
}

// get returns the object with a name from the lister.
func (l *lease) get(namespace, name string) (runtime.Object, error) {
	if namespace == "" {
		return l.Lister().Get(name)
	}
	return l.Lister().ByNamespace(namespace).Get(name)
}

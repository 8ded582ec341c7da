package leases

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
)

var errOfTest = errors.New("of the test")

// A state at rest, and one violation in each of its parts.
func TestComparison_ReportsEachWrongState(t *testing.T) {
	served := churn.Incarnation{UID: "one", Namespaced: true, Served: []string{"v1"}}
	inV1 := churn.Observation{Namespace: "a", Name: "x", Version: "v1beta1"}
	synced := status.Informer{State: status.StateSynced}
	absent := status.Informer{State: status.StateNotServed, Reason: status.ReasonNotFound}
	otherVersion := status.Informer{State: status.StateDegraded, Reason: status.ReasonVersionNotServed, StaleSince: time.Unix(1, 0)}
	unserved := func(c *comparison) {
		c.version, c.at, c.wait = "v1beta1", otherVersion, waits(&status.NotSyncedError{Reason: status.ReasonVersionNotServed})
	}
	for _, tc := range []struct {
		name   string
		exists bool
		change func(c *comparison)
		want   string // a part of the only violation; empty: there is none
	}{
		{"a served type is synced", true, func(*comparison) {}, ""},
		{"a served type is not synced", true, func(c *comparison) { c.at.State = status.StateDegraded }, "the state is Degraded"},
		{"a synced type has an error", true, func(c *comparison) { c.at.Err = errOfTest }, "of the test"},
		{"a synced type is out of date", true, func(c *comparison) { c.at.StaleSince = time.Unix(1, 0) }, "out of date since 1970"},
		{"the resource has another version", true, func(c *comparison) { c.resource.GVR.Version = "v1beta1" }, "want the version v1"},
		{"a synced type has a reason", true, func(c *comparison) { c.at.Reason = status.ReasonForbidden }, "(Forbidden)"},
		{"the number of objects is wrong", true, func(c *comparison) { c.at.Objects = 1 }, "the status has 1 objects"},
		{"a lister is incomplete", true, func(c *comparison) { c.incomplete = errOfTest }, "the lister returns of the test"},
		{"a wait fails", true, func(c *comparison) { c.wait = waits(errOfTest) }, "WaitForSync: of the test"},
		{"a wait for a version does not return", true, func(c *comparison) { c.awaits.Store(true) }, "AtLeast has not returned"},
		{"a namespace that is allowed is forbidden", true, func(c *comparison) {
			c.at.Namespaces = []status.Namespace{{Name: "a", Reason: status.ReasonForbidden}}
		}, "namespace a has the reason"},
		{"an object has another version", true, func(c *comparison) {
			c.view.Form, c.at.Objects, c.has = churn.Whole, 1, map[string]churn.Observation{"a/x": inV1}
		}, "has the version v1beta1"},
		{"a type is reported as terminating", true, func(c *comparison) { c.resource.Terminating = true }, "reported as terminating: true; want false"},
		{"an absent type is not served", false, func(c *comparison) { c.at, c.wait = absent, waits(status.ErrNotSynced) }, ""},
		{"an absent type whose lists are allowed is degraded", false, func(c *comparison) {
			c.at, c.wait = absent, waits(status.ErrNotSynced)
			c.at.State = status.StateDegraded
		}, "does not exist, and the state is Degraded"},
		{"an absent type is synced", false, func(c *comparison) { c.wait = waits(status.ErrNotSynced) }, "does not exist, and the state is Synced"},
		{"an absent type has another reason", false, func(c *comparison) {
			c.at, c.wait = absent, waits(status.ErrNotSynced)
			c.at.Reason = status.ReasonDiscoveryFailed
		}, "(DiscoveryFailed)"},
		{"an absent type has objects", false, func(c *comparison) {
			c.at, c.wait, c.has = absent, waits(status.ErrNotSynced), map[string]churn.Observation{"a/x": inV1}
		}, "the lister has 1 objects"},
		{"a wait for an absent type succeeds", false, func(c *comparison) { c.at = absent }, "WaitForSync returns <nil>"},
		{"a version that is not served has its reason", true, unserved, ""},
		{"a version that is not served and was listed has no wait", true, func(c *comparison) {
			unserved(c)
			c.wait = waits(nil)
		}, ""},
		{"a wait for a version that is not served fails otherwise", true, func(c *comparison) {
			unserved(c)
			c.wait = waits(errOfTest)
		}, "WaitForSync returns of the test"},
		{"a wait for a version that is not served has another reason", true, func(c *comparison) {
			unserved(c)
			c.wait = waits(&status.NotSyncedError{Reason: status.ReasonNotFound})
		}, "the state is Degraded (VersionNotServed), and WaitForSync returns"},
		{"a wait for a version that is not served does not return at once", true, func(c *comparison) {
			unserved(c)
			c.wait = func(ctx context.Context, _ ...dynamicinformer.WaitOption) error {
				<-ctx.Done()
				return &status.NotSyncedError{Reason: status.ReasonVersionNotServed}
			}
		}, "does not return at once"},
		{"a version that is not served and was never listed has no wait", true, func(c *comparison) {
			unserved(c)
			c.at.State, c.wait = status.StateStarting, waits(nil)
		}, "the state is Starting (VersionNotServed), and WaitForSync returns <nil>"},
		{"a version that is not served is synced", true, func(c *comparison) { c.version = "v1beta1" }, "version v1beta1 is not served, and the state is Synced"},
		{"a version that is not served has objects that never existed", true, func(c *comparison) {
			unserved(c)
			c.has = map[string]churn.Observation{"a/x": inV1}
		}, "never existed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &comparison{
				lease: &lease{name: "l", version: "v1", view: churn.View{Name: "l", Type: "t1"}},
				world: &churn.World{Group: "example.com"}, at: synced, wait: waits(nil),
			}
			c.resource.GVR.Version = "v1"
			tc.change(c)
			c.state(t.Context(), served, tc.exists)
			var found []string
			for _, v := range c.found {
				if v.Invariant != churn.Equal { // the world of the test has no objects
					found = append(found, v.String())
				}
			}
			if tc.want == "" && len(found) == 0 || tc.want != "" && len(found) == 1 && strings.Contains(found[0], tc.want) {
				return
			}
			t.Errorf("violations %q, want one with %q", found, tc.want)
		})
	}
}

func TestComparison_ACacheThatIsNotUpToDateIsReported(t *testing.T) {
	for want, at := range map[string]status.Informer{
		"":                          {State: status.StateDegraded, Reason: status.ReasonUnavailable, StaleSince: time.Unix(1, 0)},
		"is reported as up to date": {State: status.StateDegraded, Reason: status.ReasonUnavailable},
	} {
		c := &comparison{lease: &lease{name: "l"}, at: at, has: map[string]churn.Observation{"a/x": {}}, wait: waits(nil)}
		c.unsynced(t.Context())
		if want == "" && len(c.found) > 0 || want != "" && (len(c.found) != 1 || !strings.Contains(c.found[0].Text, want)) {
			t.Errorf("violations %v, want one with %q", c.found, want)
		}
	}
}

func TestIsForbidden_OnlyAWatchMayGoOnWithoutLists(t *testing.T) {
	forbidden, polled := status.Informer{Reason: status.ReasonForbidden}, status.Informer{PollPeriod: time.Second}
	inB := status.Informer{Namespaces: []status.Namespace{{Name: "a"}, {Name: "b", Reason: status.ReasonForbidden}}}
	for _, tc := range []struct {
		at             status.Informer
		scope          string
		lists, watches bool
		want           bool
	}{
		{status.Informer{}, "", false, false, false},
		{status.Informer{}, "", true, true, true},
		{status.Informer{}, "", false, true, true},
		{status.Informer{}, "", true, false, false},
		{forbidden, "", true, false, true},
		{forbidden, "", false, false, false},
		{inB, "a", true, false, false},
		{inB, "b", true, false, true},
		{inB, "b", false, false, false},
		{inB, "a", false, true, true},
		{polled, "", false, true, false},
		{polled, "", true, true, false},
	} {
		if got := isForbidden(tc.at, tc.scope, tc.lists, tc.watches); got != tc.want {
			t.Errorf("%+v in %q, lists forbidden: %v, watches: %v: %v, want %v", tc.at, tc.scope, tc.lists, tc.watches, got, tc.want)
		}
	}
}

// Of two namespaces, lists are forbidden in b, which is not listed. Each row breaks one part of what the lease must show.
func TestComparison_ReportsWhatIsWrongInAPartlyForbiddenSet(t *testing.T) {
	inB := &status.IncompleteError{Namespaces: []status.Namespace{{Name: "b"}}}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "none")
	for _, tc := range []struct {
		name   string
		change func(c *comparison)
		want   string // a part of the only violation; empty: there is none
	}{
		{"all is right", func(*comparison) {}, ""},
		{"b is listed", func(c *comparison) { c.at.Namespaces[1].Listed, c.incomplete = true, nil }, ""},
		{"a is not listed", func(c *comparison) {
			c.at.Namespaces[0].Listed = false
			c.incomplete = &status.IncompleteError{Namespaces: c.at.Namespaces}
		}, "[a b] are not listed; [b] are forbidden"},
		{"the lister is complete", func(c *comparison) { c.incomplete = nil }, "the lister returns <nil>"},
		{"the state is degraded", func(c *comparison) { c.at.State = status.StateDegraded }, "the state is Degraded"},
		{"the number of objects is wrong", func(c *comparison) { c.at.Objects = 2 }, "the status has 2 objects"},
		{"a wait fails", func(c *comparison) { c.wait = waits(errOfTest) }, "WaitForSync returns of the test"},
		{"an object has another version", func(c *comparison) { c.version = "v1beta1" }, "has the version v1, want v1beta1"},
		{"a wait for a version does not return", func(c *comparison) { c.view.Sets = &churn.NamespaceSets{}; c.awaits.Store(true) }, "AtLeast has not returned"},
		{"a read fails", func(c *comparison) {
			c.get = func(_, name string) (runtime.Object, error) {
				return nil, map[string]error{"x": errOfTest, "none": notFound}[name]
			}
		}, "a read of a/x returns of the test"},
		{"a read of nothing returns an object", func(c *comparison) {
			get := c.get
			c.get = func(namespace, name string) (runtime.Object, error) {
				if namespace == "a" && name == "none" {
					return newObject("none"), nil
				}
				return get(namespace, name)
			}
		}, "that does not exist in namespace \"a\""},
		{"a read in b is conclusive", func(c *comparison) {
			get := c.get
			c.get = func(namespace, name string) (runtime.Object, error) {
				if namespace == "b" {
					return nil, notFound
				}
				return get(namespace, name)
			}
		}, "that does not exist in namespace \"b\""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := newObject("x")
			x.SetAPIVersion("example.com/v1")
			seen := churn.Observe(x, churn.Whole)
			c := &comparison{
				lease: &lease{name: "l", version: "v1", view: churn.View{Name: "l", Type: "t1"}}, wait: waits(nil), incomplete: inB,
				at:  status.Informer{State: status.StateSynced, Objects: 1, Namespaces: []status.Namespace{{Name: "a", Listed: true}, {Name: "b"}}},
				has: map[string]churn.Observation{"a/x": seen},
				get: func(namespace, name string) (runtime.Object, error) {
					switch {
					case name == "x":
						return x, nil
					case namespace == "b":
						return nil, inB
					}
					return nil, notFound
				},
			}
			tc.change(c)
			c.partly(t.Context(), churn.Incarnation{Served: []string{"v1"}}, []string{"b"})
			if len(c.found) == 0 {
				c.reads(c.has, []string{"a"})
			}
			if len(c.found) == 0 && c.incomplete != nil {
				c.reads(nil, []string{"b"})
			}
			if tc.want == "" && len(c.found) == 0 || tc.want != "" && len(c.found) == 1 && strings.Contains(c.found[0].Text, tc.want) {
				return
			}
			t.Errorf("violations %v, want one with %q", c.found, tc.want)
		})
	}
}

func TestComparison_ReportsPanics(t *testing.T) {
	x, y := newObject("x"), newObject("y")
	for _, tc := range []struct {
		name string
		at   status.Handler
		want string // a part of the only violation; empty: there is none
	}{
		{"two panics, and one for an object that exists", status.Handler{Panics: 2, FailedObjects: 1}, ""},
		{"a panic too few", status.Handler{Panics: 1, FailedObjects: 1}, "1 panics of handlers and 1 failed objects; want 2 and 1"},
		{"a deleted object", status.Handler{Panics: 2, FailedObjects: 2}, "2 panics of handlers and 2 failed objects; want 2 and 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := &handler{Recorder: &churn.Recorder{}, panics: []int{1, 3}}
			h.OnAdd(x, true)
			h.OnDelete(x)
			h.OnAdd(y, true)
			tc.at.Lease, tc.at.LastPanic, tc.at.Reason = "l", panicText, status.ReasonHandlerPanicked
			c := &comparison{
				lease: &lease{name: "l", owner: "l"}, handlers: map[string]*handler{"h": h},
				at: status.Informer{Handlers: []status.Handler{tc.at, {Lease: "other", Panics: 7}}},
			}
			c.panicked()
			if tc.want == "" && len(c.found) == 0 || tc.want != "" && len(c.found) == 1 && strings.Contains(c.found[0].Text, tc.want) {
				return
			}
			t.Errorf("violations %v, want one with %q", c.found, tc.want)
		})
	}
}

// Another handler may have the name when a call of a handler removes it.
func TestSubject_AHandlerRemovesOnlyItself(t *testing.T) {
	one, other := &handler{registered: make(chan struct{})}, &handler{}
	close(one.registered)
	s, l := &subject{}, &lease{handlers: map[string]*handler{"h1": other}}
	s.within(l, "h1", one, "remove")
	if l.handlers["h1"] != other {
		t.Error("the other handler is removed")
	}
}

// An informer that says it is synced, and is not, must be found.
func TestIsWaiting_NotIfSynced(t *testing.T) {
	for want, informers := range map[bool][]status.Informer{
		false: {{State: status.StateSynced}, {State: status.StateSynced, Namespaces: []status.Namespace{{Name: "a"}}}},
		true: {
			{State: status.StateSynced, Namespaces: []status.Namespace{{Name: "a"}, {Name: "b", Reason: status.ReasonForbidden}}},
			{State: status.StateDegraded, Reason: status.ReasonUnavailable},
			{State: status.StateStarting},
			{State: status.StateSynced, Reason: status.ReasonDecodeFailed},
		},
	} {
		for _, at := range informers {
			if got := IsWaiting(at); got != want {
				t.Errorf("%s with the reason %q: %v, want %v", at.State, at.Reason, got, want)
			}
		}
	}
}

// newObject returns an object in namespace a.
func newObject(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetNamespace("a")
	obj.SetName(name)
	return obj
}

// waits returns a WaitForSync with this result.
func waits(err error) func(context.Context, ...dynamicinformer.WaitOption) error {
	return func(context.Context, ...dynamicinformer.WaitOption) error { return err }
}

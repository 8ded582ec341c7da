package dynamicinformer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/status"
)

// inSet runs a test with a factory on a cluster with an object x in each of the namespaces a, b and c. Lists and
// watches in namespaces that begin with an f are forbidden.
func inSet(t *testing.T, test func(in bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for _, namespace := range []string{"a", "b", "c"} {
			create(t, cluster, widgets, namespace, "x")
		}
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if strings.HasPrefix(req.Namespace, "f") {
				return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New(`User "bob" cannot list resource "widgets"`))
			}
			return nil
		})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		defer shutdown(t, f)
		test(bubble{t, cluster, f})
	})
}

// keysOf returns the keys of the cache.
func keysOf(l *dynamicinformer.Lease) []string {
	synctest.Wait()
	return slices.Sorted(slices.Values(l.Informer().GetIndexer().ListKeys()))
}

func TestNamespaces_OneInformerForASetThatChanges(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("b", "a"))
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a/x", "b/x"}, keysOf(l)); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		events.take()
		if err := l.SetNamespaces("b", "c"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"move a/x", "add c/x"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := len(cluster.Requests("list", widgets)); got != 3 {
			t.Errorf("lists = %d, want 3", got)
		}
		create(t, cluster, widgets, "c", "y")
		synctest.Wait()
		if diff := cmp.Diff([]string{"add c/y"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		second := acquire(t, f, widgets, dynamicinformer.WithNamespaces("c", "b"))
		if second.Status().ID != l.Status().ID {
			t.Error("leases with equal sets have different informers")
		}
		_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithNamespaces("a", "b"))
		if conflict, is := errors.AsType[*dynamicinformer.ConflictError](err); !is || conflict.Option != "WithNamespaces" || conflict.Have != `["b" "c"]` || conflict.Want != `["a" "b"]` {
			t.Errorf("error = %v", err)
		}
		if n := l.Status().Namespaces; len(n) != 2 || n[0].Name != "b" || !n[0].Listed || n[0].Reason != "" || n[0].ResourceVersion == "" {
			t.Errorf("namespaces = %+v", n)
		}
	})
}

func TestNamespaces_ForbiddenOneIsNamedAndAffectsNoOther(t *testing.T) {
	inSet(t, func(in bubble) {
		t, f := in.T, in.factory
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a", "b", "f1"))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		i := l.Status()
		if i.State != status.StateSynced || i.Reason != "" || i.Objects != 2 || len(i.Namespaces) != 3 {
			t.Errorf("status: %s, %d objects", i, i.Objects)
		}
		if n := i.Namespaces[2]; n.Name != "f1" || n.Listed || n.Reason != status.ReasonForbidden || n.Verb != "list" || n.Attempts < 3 || !apierrors.IsForbidden(n.Err) {
			t.Errorf("f1 = %+v", n)
		}
		const rule = `Role of namespace "f1": - {apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"]}`
		for name, want := range map[string][]string{
			i.String():                  {"(3 namespaces, 1 fails): Synced"},
			f.Explain(widgets).String(): {`Requests in 3 namespaces: `, `Namespace "f1" (Forbidden for 60s, `, `User "bob" cannot list`, rule},
			look(t, f.Handler(), "resource=widgets.v1.example.com").Body.String(): {"3 namespaces, 1 fails", rule},
		} {
			for _, part := range want {
				if !strings.Contains(name, part) {
					t.Errorf("%q is not in:\n%s", part, name)
				}
			}
		}
		encoded, err := i.MarshalJSON()
		if text := string(encoded); err != nil || !strings.Contains(text, `{"name":"f1","listed":false,"reason":"Forbidden","verb":"list",`) || !strings.Contains(text, `"error":"`) {
			t.Errorf("JSON: %s, %v", text, err)
		}
		if err := l.SetNamespaces("a", "b"); err != nil {
			t.Fatal(err)
		}
		if text := l.Status().String(); !strings.Contains(text, "(2 namespaces): Synced") {
			t.Errorf("status: %s", text)
		}
	})
}

// A server behind an APIService may respond with NotFound in one namespace. Discovery says that the type is served.
func TestNamespaces_OneIsNotFound(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Namespace == "a" {
				return apierrors.NewNotFound(widgets.GroupResource(), "")
			}
			return nil
		})
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a", "b"))
		if err := l.WaitForSync(t.Context(), dynamicinformer.WithFailFast()); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(time.Minute)
			if i := l.Status(); i.State != status.StateSynced || i.Reason != "" || i.Namespaces[0].Reason != status.ReasonNotFound || i.Namespaces[1].Reason != "" {
				t.Fatalf("status: %s, %+v", i, i.Namespaces)
			}
		}
		cluster.Intercept(nil)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"a/x", "b/x"}, keysOf(l)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Requests in both namespaces fail, for different reasons. The reason of the informer is that of the last failure, and the namespace is, too.
func TestNamespaces_ReasonAndNamespaceAreThoseOfOneRequest(t *testing.T) {
	inSet(t, func(in bubble) {
		t, f := in.T, in.factory
		in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			switch req.Namespace {
			case "a":
				return apierrors.NewServiceUnavailable("down")
			case "b":
				time.Sleep(10 * time.Millisecond)
				return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
			}
			return nil
		})
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a", "b"))
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		notSynced, is := errors.AsType[*status.NotSyncedError](l.WaitForSync(ctx))
		if !is || notSynced.Namespace != "b" || notSynced.Reason != status.ReasonForbidden {
			t.Fatalf("error = %v", notSynced)
		}
		i := l.Status()
		encoded, err := i.MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		if i.Advice() != notSynced.Advice() || i.Message() != notSynced.Problem() {
			t.Errorf("status: %s\nwant %s; %s", i, notSynced.Problem(), notSynced.Advice())
		}
		for _, text := range []string{i.String(), string(encoded), f.Explain(widgets).String()} {
			if !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), `Role of namespace "b"`) || strings.Contains(text, `cannot list in namespace "a": no`) {
				t.Errorf("another namespace is in:\n%s", text)
			}
		}
	})
}

func TestNamespaces_AllAreForbidden(t *testing.T) {
	inSet(t, func(in bubble) {
		t, f := in.T, in.factory
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("f1", "f2"))
		err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast())
		notSynced, is := errors.AsType[*status.NotSyncedError](err)
		if !is || notSynced.Reason != status.ReasonForbidden || !strings.HasPrefix(notSynced.Namespace, "f") || !apierrors.IsForbidden(err) {
			t.Fatalf("error = %v", err)
		}
		if want := `in a Role of namespace "f`; !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
		if i := l.Status(); i.State != status.StateDegraded || i.Reason != status.ReasonForbidden || !strings.Contains(i.Advice(), "in a Role of namespace") {
			t.Errorf("status: %s", i)
		}
		synctest.Wait()
		if err := l.SetNamespaces("a", "f1"); err != nil { // does not wait for the end of a pause
			t.Fatal(err)
		}
		begun := time.Now()
		if err := l.WaitForSync(t.Context()); err != nil || time.Since(begun) != 0 {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// A list of all namespaces that lacks one is an error, unless the caller asks otherwise.
func TestNamespaces_ListersReportAnIncompleteCache(t *testing.T) {
	inSet(t, func(in bubble) {
		t, f := in.T, in.factory
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a", "b", "f1"))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		incomplete := func(when string, err error) {
			t.Helper()
			e, is := errors.AsType[*status.IncompleteError](err)
			if !is || !errors.Is(err, status.ErrIncomplete) || !apierrors.IsForbidden(err) || e.GVR != widgets || len(e.Namespaces) != 1 || e.Namespaces[0].Name != "f1" || !strings.Contains(err.Error(), `"f1": User "bob"`) {
				t.Errorf("%s: error = %v", when, err)
			}
		}
		complete := func(when string, objects int, want int, err error) {
			t.Helper()
			if err != nil || objects != want {
				t.Errorf("%s: %d objects, want %d; error = %v", when, objects, want, err)
			}
		}
		all, err := l.Lister().List(labels.Everything())
		incomplete("all", err)
		complete("all", len(all), 2, nil)
		one, err := l.Lister().ByNamespace("a").List(labels.Everything())
		complete("a", len(one), 1, err)
		_, err = l.Lister().ByNamespace("f1").List(labels.Everything())
		incomplete("f1", err)
		_, err = l.Lister().ByNamespace("f1").Get("x")
		incomplete("f1/x", err)
		_, err = l.Lister().Get("f1/x")
		incomplete("key f1/x", err)
		if _, err = l.Lister().ByNamespace("a").Get("missing"); !apierrors.IsNotFound(err) {
			t.Errorf("a/missing: %v", err)
		}

		found, err := l.Unstructured().List(nil)
		incomplete("reader", err)
		complete("reader", len(found), 2, nil)
		result, err := l.Unstructured().Query(lister.Query{})
		incomplete("query", err)
		complete("query", result.Total, 2, nil)
		result, err = l.Unstructured().Query(lister.Query{Namespace: "b"})
		complete("query of b", result.Total, 1, err)
		_, err = l.Unstructured().Namespace("f1").Get("x")
		incomplete("reader, f1/x", err)
		var last error
		seen := 0
		for object, err := range l.Unstructured().All("", nil) {
			if object != nil {
				seen++
			}
			last = err
		}
		incomplete("iterator", last)
		complete("iterator", seen, 2, nil)
		found, err = l.Unstructured(lister.WithCompleteness(nil)).List(nil)
		complete("reader that is asked otherwise", len(found), 2, err)
	})
}

func TestNamespaces_Mistakes(t *testing.T) {
	inSet(t, func(in bubble) {
		t, f := in.T, in.factory
		set := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a"))
		for name, err := range map[string]error{
			"an invalid name": set.SetNamespaces("b", "NO"),
			"no set":          acquire(t, f, widgets, dynamicinformer.WithSeparateInformer()).SetNamespaces("a"),
		} {
			if option, is := errors.AsType[*dynamicinformer.OptionError](err); !is || option.Option != "SetNamespaces" {
				t.Errorf("%s: error = %v", name, err)
			}
		}
		if err := set.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := set.AtLeast(t.Context(), "1"); !errors.Is(err, status.ErrSeveralVersions) {
			t.Errorf("AtLeast: %v", err)
		}
		set.Release()
		if err := set.SetNamespaces("b"); !errors.Is(err, dynamicinformer.ErrReleased) {
			t.Errorf("after Release: %v", err)
		}
	})
}

// The last of both options counts, also if the other one is that of the factory.
func TestNamespaces_ReplaceOneNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for _, namespace := range []string{"a", "b", "c"} {
			create(t, cluster, widgets, namespace, "x")
		}
		f := newFactory(t, cluster, dynamicinformer.WithNamespaces("a", "b"))
		f.Start(t.Context())
		for _, test := range []struct {
			opts []dynamicinformer.LeaseOption
			want []string
		}{
			{nil, []string{"a/x", "b/x"}},
			{[]dynamicinformer.LeaseOption{dynamicinformer.WithNamespace("c")}, []string{"c/x"}},
			{[]dynamicinformer.LeaseOption{dynamicinformer.WithNamespace("")}, []string{"a/x", "b/x", "c/x"}},
			{[]dynamicinformer.LeaseOption{dynamicinformer.WithNamespace("c"), dynamicinformer.WithNamespaces("b", "c")}, []string{"b/x", "c/x"}},
			{[]dynamicinformer.LeaseOption{dynamicinformer.WithNamespaces()}, nil},
		} {
			l := acquire(t, f, widgets, append(test.opts, dynamicinformer.WithSeparateInformer())...)
			if err := l.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, keysOf(l)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if i := l.Status(); i.Namespaces != nil && i.Namespace != "" {
				t.Errorf("the status has namespace %s and %d namespaces", i.Namespace, len(i.Namespaces))
			}
		}
		shutdown(t, f)
	})
}

// namespaceType is the type of Namespace objects.
var namespaceType = fakecluster.Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}

// labelNamespace creates a Namespace with the label team, or changes its label.
func labelNamespace(t *testing.T, cluster *fakecluster.Cluster, name, team string) {
	t.Helper()
	client := cluster.Resource(namespaceType.GVR)
	if _, err := client.Create(t.Context(), newObject(name, map[string]string{"team": team}), metav1.CreateOptions{}); err == nil {
		return
	}
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	obj.SetLabels(map[string]string{"team": team})
	if _, err := client.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// removeNamespace deletes a namespace after its widget x, as an API server does. An open watch shows the first deletion before the second one.
func removeNamespace(t *testing.T, cluster *fakecluster.Cluster, name string) {
	t.Helper()
	if err := cluster.Resource(widgets).Namespace(name).Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if err := cluster.Resource(namespaceType.GVR).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestNamespaceSelector_NamespacesComeAndGo(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		labelNamespace(t, cluster, "a", "red")
		labelNamespace(t, cluster, "b", "blue")
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		check := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, events.take()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		check("at first", "add a/x")
		labelNamespace(t, cluster, "b", "red")
		check("labelled", "add b/x")
		labelNamespace(t, cluster, "c", "red")
		check("created", "add c/x")
		labelNamespace(t, cluster, "a", "blue")
		check("with another label", "move a/x")
		removeNamespace(t, cluster, "b")
		check("deleted", "delete b/x")
		if got := len(cluster.Requests("list", widgets)); got != 3 {
			t.Errorf("lists = %d, want one for each namespace", got)
		}
		if n := l.Status().Namespaces; len(n) != 1 || n[0].Name != "c" || !n[0].Listed {
			t.Errorf("namespaces = %+v", n)
		}
		ending := newObject("d", map[string]string{"team": "red"})
		now := metav1.Now()
		ending.SetDeletionTimestamp(&now)
		if _, err := cluster.Resource(namespaceType.GVR).Create(t.Context(), ending, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if text := l.Status().String(); !strings.Contains(text, "(2 namespaces, 1 terminating): Synced") {
			t.Errorf("status: %s", text)
		}
		for _, req := range cluster.Requests("watch", namespaceType.GVR) {
			if req.Options.LabelSelector != "team=red" {
				t.Errorf("watch of namespaces with selector %q", req.Options.LabelSelector)
			}
		}
		if err := l.SetNamespaces("a"); err == nil {
			t.Error("SetNamespaces changes the names of a selector")
		}
		_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithNamespaceSelector("team=blue"))
		if conflict, is := errors.AsType[*dynamicinformer.ConflictError](err); !is || conflict.Option != "WithNamespaceSelector" {
			t.Errorf("error = %v", err)
		}
		acquire(t, f, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
	})
}

// Without permission for Namespace objects, the informer says so, and sends no request for its own resource.
func TestNamespaceSelector_NamespacesAreForbidden(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		labelNamespace(t, cluster, "a", "red")
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == namespaceType.GVR {
				return apierrors.NewForbidden(namespaceType.GVR.GroupResource(), "", errors.New(`User "bob" cannot list resource "namespaces"`))
			}
			return nil
		})
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaceSelector(""))
		err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast())
		const want = `User "bob" cannot list resource "namespaces" (Forbidden`
		const rule = `ClusterRole: - {apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"]}`
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), rule) {
			t.Errorf("error = %v", err)
		}
		if got := len(cluster.Requests("list", widgets)); got != 0 {
			t.Errorf("lists = %d, want 0", got)
		}
		cluster.Intercept(nil)
		if err := l.WaitForSync(briefly(t)); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a/x"}, keysOf(l)); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if i := l.Status(); i.State != status.StateSynced {
			t.Errorf("status: %s", i)
		}
	})
}

// forbid makes requests for widgets in these namespaces fail; empty: in all namespaces at once.
func forbid(cluster *fakecluster.Cluster, namespaces ...string) {
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.GVR == widgets && slices.Contains(namespaces, req.Namespace) {
			return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New(`User "bob" cannot list resource "widgets"`))
		}
		return nil
	})
}

func TestAllowedNamespaces_AllAreAllowed(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a/x", "b/x", "c/x"}, keysOf(l)); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		if i := l.Status(); i.Namespaces != nil || i.State != status.StateSynced {
			t.Errorf("status: %s", i)
		}
		if err := l.AtLeast(t.Context(), "1"); err != nil {
			t.Errorf("AtLeast: %v", err)
		}
		if all, err := l.Lister().List(labels.Everything()); err != nil || len(all) != 3 {
			t.Errorf("%d objects, %v", len(all), err)
		}
	})
}

func TestAllowedNamespaces_FallsBackToThoseThatAreAllowed(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		for _, name := range []string{"a", "b", "c"} {
			labelNamespace(t, cluster, name, "red")
		}
		forbid(cluster, "", "b")
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		kept := l.Lister()
		if err := l.WaitForSync(briefly(t)); err != nil {
			t.Fatal(err)
		}
		check := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, keysOf(l)); diff != "" {
				t.Errorf("%s: keys (-want +got):\n%s", when, diff)
			}
		}
		check("at first", "a/x", "c/x")
		if i := l.Status(); len(i.Namespaces) != 2 || !strings.Contains(i.String(), "(2 namespaces): Synced") {
			t.Errorf("status: %s", i)
		}
		incomplete := func(err error) bool {
			e, is := errors.AsType[*status.IncompleteError](err)
			return is && apierrors.IsForbidden(err) && len(e.Namespaces) == 1 && e.Namespaces[0].Name == "b"
		}
		if all, err := kept.List(labels.Everything()); !incomplete(err) || len(all) != 2 {
			t.Errorf("%d objects, %v", len(all), err)
		}
		if all, err := kept.ByNamespace("a").List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("a: %d objects, %v", len(all), err)
		}
		if _, err := kept.Get("b/x"); !incomplete(err) {
			t.Errorf("b/x: %v", err)
		}
		if all, err := l.Unstructured(lister.WithCompleteness(nil)).List(labels.Everything()); err != nil || len(all) != 2 {
			t.Errorf("%d objects, %v", len(all), err)
		}
		time.Sleep(time.Hour)
		tries := 0
		for _, req := range cluster.Requests("list", widgets) {
			if req.Namespace == "b" {
				tries++
			}
		}
		if tries < 8 || tries > 16 {
			t.Errorf("lists of b in an hour = %d", tries)
		}
		forbid(cluster, "")
		l.Retry()
		check("b is allowed", "a/x", "b/x", "c/x")
		if all, err := kept.List(labels.Everything()); err != nil || len(all) != 3 {
			t.Errorf("%d objects, %v", len(all), err)
		}

		forbid(cluster, "", "a")
		cluster.CloseWatches(widgets)
		time.Sleep(time.Hour)
		check("a is forbidden later", "a/x", "b/x", "c/x")
		if n := l.Status().Namespaces; len(n) != 3 || n[0].Reason != status.ReasonForbidden || !n[0].Listed {
			t.Errorf("namespaces = %+v", n)
		}
	})
}

// Nothing follows a watch of all namespaces that is refused while lists of them are not.
func TestAllowedNamespaces_WatchesAreForbidden(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == widgets && req.Verb == "watch" {
				return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New(`User "bob" cannot watch`))
			}
			return nil
		})
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if i := l.Status(); i.State != status.StateDegraded || i.Reason != status.ReasonForbidden || i.Verb != "watch" {
			t.Errorf("status: %s", i)
		}
	})
}

// The user loses the right to list all namespaces while the informer runs.
func TestAllowedNamespaces_FallsBackLater(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		labelNamespace(t, cluster, "a", "red")
		labelNamespace(t, cluster, "b", "red")
		labelNamespace(t, cluster, "c", "red")
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events.take()
		forbid(cluster, "")
		cluster.Expire(widgets)
		cluster.CloseWatches(widgets)
		create(t, cluster, widgets, "b", "y")
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff([]string{"add b/y"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if i := l.Status(); len(i.Namespaces) != 3 || i.State != status.StateSynced {
			t.Errorf("status: %s", i)
		}
	})
}

// A namespace that is forbidden when the informer falls back keeps its objects and has the reason.
func TestAllowedNamespaces_FallsBackLaterToSome(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		labelNamespace(t, cluster, "a", "red")
		labelNamespace(t, cluster, "b", "red")
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		forbid(cluster, "", "b")
		cluster.Expire(widgets)
		cluster.CloseWatches(widgets)
		time.Sleep(time.Hour)
		if n := l.Status().Namespaces; len(n) != 2 || n[1].Name != "b" || !n[1].Listed || n[1].Reason != status.ReasonForbidden {
			t.Errorf("namespaces = %+v", n)
		}
		if all, err := l.Lister().ByNamespace("b").List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("%d objects, %v", len(all), err)
		}
	})
}

// Until it is known which namespaces to list, an empty list is no answer.
func TestNamespaces_AreNotKnown(t *testing.T) {
	for name, opt := range map[string]dynamicinformer.LeaseOption{
		"allowed": dynamicinformer.WithAllowedNamespaces(), "selected": dynamicinformer.WithNamespaceSelector("team=red"),
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, func(in bubble) {
				t, cluster, f := in.T, in.cluster, in.factory
				cluster.Serve(namespaceType)
				labelNamespace(t, cluster, "a", "red")
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.GVR == namespaceType.GVR || req.GVR == widgets && req.Namespace == "" {
						return apierrors.NewForbidden(req.GVR.GroupResource(), "", errors.New(`User "bob" cannot list`))
					}
					return nil
				})
				l := acquire(t, f, widgets, opt)
				time.Sleep(time.Minute)
				unknown := func(err error) bool {
					e, is := errors.AsType[*status.IncompleteError](err)
					return is && e.GVR == widgets && len(e.Namespaces) == 0 && apierrors.IsForbidden(e.Err)
				}
				if all, err := l.Lister().List(labels.Everything()); !unknown(err) || len(all) != 0 {
					t.Errorf("%d objects, %v", len(all), err)
				}
				if _, err := l.Lister().Get("a/x"); !unknown(err) {
					t.Errorf("a/x: %v", err)
				}
				forbid(cluster, "")
				time.Sleep(time.Hour)
				if all, err := l.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
					t.Errorf("%d objects, %v", len(all), err)
				}
			})
		})
	}
}

func TestAllowedNamespaces_OfNames(t *testing.T) {
	for name, opts := range map[string][]dynamicinformer.LeaseOption{
		"before": {dynamicinformer.WithAllowedNamespaces(), dynamicinformer.WithNamespaces("a", "b")},
		"after":  {dynamicinformer.WithNamespaces("a", "b"), dynamicinformer.WithAllowedNamespaces()},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, func(in bubble) {
				t, cluster, f := in.T, in.cluster, in.factory
				forbid(cluster, "", "b")
				l := acquire(t, f, widgets, opts...)
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if all, err := l.Lister().List(labels.Everything()); !errors.Is(err, status.ErrIncomplete) || len(all) != 1 {
					t.Errorf("%d objects, %v", len(all), err)
				}
				if err := l.SetNamespaces("b", "c"); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]string{"c/x"}, keysOf(l)); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
				if n := l.Status().Namespaces; len(n) != 1 || n[0].Name != "c" {
					t.Errorf("namespaces = %+v", n)
				}
				for _, req := range cluster.Requests("list", widgets) {
					if req.Namespace == "" {
						t.Error("all namespaces were listed")
					}
				}
				_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithNamespaces("b", "c"))
				if conflict, is := errors.AsType[*dynamicinformer.ConflictError](err); !is || conflict.Have != `["b" "c"] and allowed` {
					t.Errorf("error = %v", err)
				}
			})
		})
	}
}

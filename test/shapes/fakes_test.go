package shapes_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// fake returns client-go's fake client with objects.
func fake(objects ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"}, objects...)
}

// verbs are the actions of a fake client on widgets.
func verbs(client *dynamicfake.FakeDynamicClient) string {
	var got []string
	for _, action := range client.Actions() {
		got = append(got, fmt.Sprintf("%s %s in %q", action.GetVerb(), action.GetResource().Resource, action.GetNamespace()))
	}
	return strings.Join(got, ", ")
}

// fakeShapes are tests of programs, with client-go's fake client.
var fakeShapes = []shape{
	{
		name: "a fake client with objects and changes",
		use: func(p *program) {
			client := fake(widget("ns", "a", 1))
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			p.note("%v", f.WaitForCacheSync(p.stop)[widgets])
			p.noteEvents("first", seen)
			obj := p.createIn(client, widget("ns", "b", 1))
			_, err := client.Resource(widgets).Namespace("ns").Update(p.t.Context(), obj, metav1.UpdateOptions{})
			p.must(err)
			p.must(client.Resource(widgets).Namespace("ns").Delete(p.t.Context(), "b", metav1.DeleteOptions{}))
			p.noteEvents("later", seen)
		},
		want: []string{"true", "first: add ns/a", "later: add ns/b, delete ns/b, update ns/b"},
	},
	{
		name: "objects that have a generateName and no name",
		use: func(p *program) {
			generated := widget("ns", "", 1)
			generated.SetGenerateName("a-")
			client := fake(generated, widget("ns", "b", 1))
			f := p.newFactory(client, 0)
			generic := f.ForResource(widgets)
			seen := p.listen(generic.Informer())
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			p.noteEvents("events", seen)
			all, err := generic.Lister().ByNamespace("ns").List(labels.Everything())
			p.note("%d %v", len(all), err)
			other := widget("ns", "", 2)
			other.SetGenerateName("a-")
			p.must(client.Tracker().Update(widgets, other, "ns"))
			p.must(client.Tracker().Delete(widgets, "ns", "b"))
			p.noteEvents("events", seen)
			p.must(client.Tracker().Delete(widgets, "ns", ""))
			p.must(client.Tracker().Create(widgets, generated, "ns"))
			p.must(client.Tracker().Create(widgets, widget("ns", "c", 1), "ns"))
			p.noteEvents("events", seen)
			p.note("%v", sorted(generic.Informer().GetStore().ListKeys()))
		},
		want: []string{"events: add ns/, add ns/b", "2 <nil>", "events: delete ns/b, update ns/", "events: add ns/, add ns/c, delete ns/", "[ns/ ns/c]"},
	},
	{
		name: "the actions of a fake client",
		use: func(p *program) {
			client := fake()
			f := p.newFiltered(client, 0, "ns", nil)
			f.ForResource(widgets)
			p.note("before: %s", verbs(client))
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			synctest.Wait()
			p.note("after: %s", verbs(client))
			client.ClearActions()
			time.Sleep(time.Minute)
			p.note("later: %s", verbs(client))
		},
		want: []string{"before: ", `after: list widgets in "ns", watch widgets in "ns"`, "later: "},
	},
	{
		name: "a reactor that fails some lists",
		use: func(p *program) {
			client := fake(widget("ns", "a", 1))
			lists := 0
			client.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
				if lists++; lists <= 2 {
					return true, nil, errors.New("injected")
				}
				return false, nil, nil
			})
			f := p.newFactory(client, 0)
			informer := f.ForResource(widgets).Informer()
			var texts []string
			p.must(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { texts = append(texts, err.Error()) }))
			f.Start(p.stop)
			p.note("%v", f.WaitForCacheSync(after(time.Minute))[widgets])
			p.note("%s", strings.Join(texts, "; "))
		},
		want: []string{"true", "failed to list example.com/v1, Resource=widgets: injected; failed to list example.com/v1, Resource=widgets: injected"},
	},
	{
		name: "a reactor that returns its own list",
		use: func(p *program) {
			client := fake()
			client.PrependReactor("list", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
				list, err := fake(widget("ns", "x", 1)).Resource(widgets).Namespace(action.GetNamespace()).List(p.t.Context(), metav1.ListOptions{})
				return true, list, err
			})
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			p.noteEvents("events", seen)
		},
		want: []string{"events: add ns/x"},
	},
	{
		name: "a reactor that forbids lists",
		use: func(p *program) {
			client := fake(widget("ns", "a", 1))
			client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
			})
			f := p.newFactory(client, 0)
			informer := f.ForResource(widgets).Informer()
			var forbidden atomic.Bool
			p.must(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { forbidden.Store(apierrors.IsForbidden(err)) }))
			f.Start(p.stop)
			p.note("synced %v", f.WaitForCacheSync(after(time.Minute))[widgets])
			p.note("forbidden %v", forbidden.Load())
		},
		want: []string{"synced false", "forbidden true"},
	},
	{
		name: "a watch reactor whose events the test sends",
		use: func(p *program) {
			client, source := fake(), watch.NewFake()
			client.PrependWatchReactor("widgets", clienttesting.DefaultWatchReactor(source, nil))
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			source.Add(widget("ns", "a", 1))
			source.Modify(widget("ns", "a", 2))
			source.Delete(widget("ns", "a", 2))
			p.noteEvents("events", seen)
		},
		want: []string{"events: add ns/a, delete ns/a, update ns/a"},
	},
	{
		name: "a watch reactor that fails, then works",
		use: func(p *program) {
			client := fake(widget("ns", "a", 1))
			watches := 0
			client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
				if watches++; watches <= 2 {
					return true, nil, errors.New("injected")
				}
				return false, nil, nil
			})
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			time.Sleep(time.Minute)
			p.createIn(client, widget("ns", "b", 1))
			synctest.Wait()
			keys := map[string]bool{}
			seen.mu.Lock()
			for _, event := range seen.seen {
				if strings.HasPrefix(event, "add ") {
					keys[event] = true
				}
			}
			seen.mu.Unlock()
			p.note("%v, watches %v", keys, watches >= 3)
		},
		want: []string{"map[add ns/a:true add ns/b:true], watches true"},
	},
	{
		name: "a watch error handler, and watches that break or are short",
		use: func(p *program) {
			broken := func(err *apierrors.StatusError) func(w *watch.FakeWatcher) {
				return func(w *watch.FakeWatcher) { w.Error(&err.ErrStatus) }
			}
			for _, end := range []func(w *watch.FakeWatcher){
				broken(apierrors.NewInternalError(errors.New("injected"))),
				broken(apierrors.NewResourceExpired("injected")),
				broken(apierrors.NewTooManyRequests("injected", 1)),
				broken(apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("injected"))),
				(*watch.FakeWatcher).Stop,
			} {
				client := fake()
				var watches atomic.Int64
				client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
					w := watch.NewFake()
					if watches.Add(1) <= 4 {
						go end(w)
					}
					return true, w, nil
				})
				stop := make(chan struct{})
				f := p.newFactory(client, 0)
				informer := f.ForResource(widgets).Informer()
				p.must(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { p.note("%v", err) }))
				f.Start(stop)
				time.Sleep(5 * time.Minute)
				p.note("watches: %d", watches.Load())
				close(stop)
				f.Shutdown()
			}
		},
		want: []string{"watches: 5", "watches: 5", "watches: 5", "watches: 5", "watches: 5"},
	},
	{
		name: "a test that waits for the watch before it creates objects",
		use: func(p *program) {
			client, watching := fake(), make(chan struct{})
			client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
				w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
				if err == nil {
					close(watching)
				}
				return true, w, err
			})
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			<-watching
			p.createIn(client, widget("ns", "a", 1))
			p.noteEvents("events", seen)
		},
		want: []string{"events: add ns/a"},
	},
	{
		name: "a test that creates objects as soon as the cache has synced",
		use: func(p *program) {
			client := fake()
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			p.createIn(client, widget("ns", "a", 1))
			p.noteEvents("events", seen)
		},
		want: []string{"events: add ns/a"},
	},
	{
		name: "a tracker that the test writes to",
		use: func(p *program) {
			client := fake()
			f := p.newFactory(client, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			synctest.Wait()
			p.must(client.Tracker().Create(widgets, widget("ns", "a", 1), "ns"))
			p.must(client.Tracker().Update(widgets, widget("ns", "a", 2), "ns"))
			p.noteEvents("events", seen)
		},
		want: []string{"events: add ns/a, update ns/a"},
	},
}

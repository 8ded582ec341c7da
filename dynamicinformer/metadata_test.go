package dynamicinformer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// newMetadataClient returns a fake metadata client with one widget.
func newMetadataClient(t *testing.T) *fake.FakeMetadataClient {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(scheme, partialWidget("a"))
}

func partialWidget(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
	}
}

func TestWithMetadataOnly_RequestsMetadataInAWatchOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, client := t.Context(), newMetadataClient(t)
		cluster := fakecluster.New(widgetType)
		f, err := dynamicinformer.New(cluster, dynamicinformer.WithMetadataClient(client))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Shutdown(context.WithoutCancel(ctx)) }()
		f.Start(ctx)
		partial, err := f.Acquire(ctx, widgets, dynamicinformer.WithMetadataOnly())
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.Acquire(ctx, widgets, dynamicinformer.WithMetadataOnly())
		if err != nil {
			t.Fatal(err)
		}
		whole, err := f.Acquire(ctx, widgets)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(partial.WaitForSync(ctx), again.WaitForSync(ctx), whole.WaitForSync(ctx)); err != nil {
			t.Fatal(err)
		}
		if got, err := partial.Lister().ByNamespace("ns").Get("a"); err != nil {
			t.Error(err)
		} else if _, is := got.(*metav1.PartialObjectMetadata); !is {
			t.Errorf("the lister returns a %T", got)
		}
		if objects := whole.Informer().GetStore().List(); len(objects) != 0 {
			t.Errorf("the informer on whole objects has %v", objects)
		}
		var deleted []string
		if _, err := again.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			deleted = append(deleted, obj.(*metav1.PartialObjectMetadata).Name)
		}}); err != nil {
			t.Fatal(err)
		}
		if err := client.Resource(widgets).Namespace("ns").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(deleted) != 1 {
			t.Errorf("deletions: %v, want that of a", deleted)
		}
		watches := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "watch" {
				watches++
			}
		}
		if watches != 1 {
			t.Errorf("two leases with metadata only sent %d watches, want one", watches)
		}
		if all := f.Status(); len(all) != 2 || all[0].Form != "" || all[1].Form != "metadata" || all[1].Notes() != "metadata" {
			t.Errorf("the status is %+v", all)
		}
	})
}

func TestWithMetadataOnly_NeedsAClient(t *testing.T) {
	f, err := dynamicinformer.New(fakecluster.New(widgetType), dynamicinformer.WithMetadataClient((*fake.FakeMetadataClient)(nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Acquire(t.Context(), widgets, dynamicinformer.WithMetadataOnly())
	if option, is := errors.AsType[*dynamicinformer.OptionError](err); !is || option.Option != "WithMetadataOnly" {
		t.Fatalf("Acquire returns %v, want an OptionError", err)
	}
	const want = "dynamicinformer: acquire: widgets.v1.example.com: WithMetadataOnly: the factory has no metadata client: call New with WithMetadataClient"
	if err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
}

// The options apply to the requests for metadata as to others.
func TestWithMetadataOnly_OptionsReachListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, client := t.Context(), newMetadataClient(t)
		var sent []string
		record := func(action clienttesting.Action) {
			var of clienttesting.ListRestrictions
			switch action := action.(type) {
			case clienttesting.ListAction:
				of = action.GetListRestrictions()
			case clienttesting.WatchAction:
				of = clienttesting.ListRestrictions{Labels: action.GetWatchRestrictions().Labels, Fields: action.GetWatchRestrictions().Fields}
			}
			sent = append(sent, action.GetVerb()+" "+action.GetNamespace()+" "+of.Labels.String()+" "+of.Fields.String())
		}
		client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			record(action)
			return false, nil, nil
		})
		client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
			record(action)
			return false, nil, nil
		})
		f, err := dynamicinformer.New(fakecluster.New(widgetType), dynamicinformer.WithMetadataClient(client), dynamicinformer.WithNamespace("ns"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Shutdown(context.WithoutCancel(ctx)) }()
		f.Start(ctx)
		lease, err := f.Acquire(ctx, widgets, dynamicinformer.WithMetadataOnly(), dynamicinformer.WithLabelSelector("app=x"), dynamicinformer.WithFieldSelector("metadata.name=a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(sent) != 2 || sent[0] != "list ns app=x metadata.name=a" || sent[1] != "watch ns app=x metadata.name=a" {
			t.Errorf("requests: %q", sent)
		}
	})
}

func TestObjectOrMetadata_TypedWhereKnownElseMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, client := fakecluster.New(widgetType), newMetadataClient(t)
		resolver, err := discovery.NewFromDiscovery(cluster.Discovery())
		if err != nil {
			t.Fatal(err)
		}
		f, err := dynamicinformer.New(cluster, dynamicinformer.WithDiscovery(resolver), dynamicinformer.WithMetadataClient(client))
		if err != nil {
			t.Fatal(err)
		}
		shared := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
		stop := make(chan struct{})
		defer func() {
			close(stop)
			_ = f.Shutdown(context.WithoutCancel(t.Context()))
			shared.Shutdown()
		}()
		both := dynamicinformer.ObjectOrMetadata(shared, f)
		typed, err := both.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil {
			t.Fatal(err)
		}
		if typed.Informer().GetIndexer() != shared.Core().V1().Pods().Informer().GetIndexer() {
			t.Error("pods are not the shared factory's")
		}
		partial, err := both.ForResource(widgets)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := both.ForResource(widgets); err != nil || again != partial {
			t.Errorf("a second call returns %v, %v", again, err)
		}
		if f.ForResource(widgets) == partial {
			t.Error("the informer on whole objects is the informer with metadata only")
		}
		both.Start(stop)
		if !cache.WaitForCacheSync(stop, typed.Informer().HasSynced, partial.Informer().HasSynced) {
			t.Fatal("not synced")
		}
		if got, err := partial.Lister().ByNamespace("ns").Get("a"); err != nil {
			t.Error(err)
		} else if _, is := got.(*metav1.PartialObjectMetadata); !is {
			t.Errorf("the lister returns a %T", got)
		}
		if _, err := both.ForResource(blocks); !errors.Is(err, discovery.ErrNotServed) {
			t.Errorf("for a type that is not served: %v", err)
		}
		if _, err := both.ForResource(schema.GroupVersionResource{Resource: "x"}); err == nil {
			t.Error("no error for a GVR without a version")
		}
	})
}

// The packed cache of the factory's options is for unstructured objects, and no difference of informers on metadata.
func TestObjectOrMetadata_SharesWithLeasesInSpiteOfPackedCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFactory(t, fakecluster.New(widgetType), dynamicinformer.WithPackedCache(), dynamicinformer.WithMetadataClient(newMetadataClient(t)))
		acquire(t, f, widgets, dynamicinformer.WithMetadataOnly())
		both := dynamicinformer.ObjectOrMetadata(informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), f)
		if _, err := both.ForResource(widgets); err != nil {
			t.Fatal(err)
		}
		if got := len(f.Status()); got != 1 {
			t.Errorf("%d informers, want 1", got)
		}
		shutdown(t, f)
	})
}

func TestObjectOrMetadata_NeedsAMetadataClient(t *testing.T) {
	f, err := dynamicinformer.New(fakecluster.New(widgetType))
	if err != nil {
		t.Fatal(err)
	}
	both := dynamicinformer.ObjectOrMetadata(informers.NewSharedInformerFactory(kubefake.NewClientset(), 0), f)
	if _, err := both.ForResource(widgets); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
		t.Errorf("error %v, want an OptionError", err)
	}
}

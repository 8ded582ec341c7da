package metadatainformer_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
	upstream "k8s.io/client-go/metadata/metadatainformer"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/metadatainformer"
)

func TestMain(m *testing.M) {
	fakecluster.LogErrorsAtOnce()
	goleak.VerifyTestMain(m)
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// observed is what a user observes of an informer.
type observed struct {
	Requests []string // verb, namespace and label selector
	Keys     []string // of the cache
	Mark     string   // the label of the object ns/a that the transform sets
	Indexers []string
	Resynced bool
}

// observe runs an informer in a bubble for some minutes.
func observe(t *testing.T, newInformer func(client metadata.Interface) running) (o observed) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := fake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := fake.NewSimpleMetadataClient(scheme, widget("ns", "a"), widget("other", "b"))
		record := func(action clienttesting.Action, of clienttesting.ListRestrictions) {
			o.Requests = append(o.Requests, action.GetVerb()+" "+action.GetNamespace()+" "+of.Labels.String())
		}
		client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			record(action, action.(clienttesting.ListAction).GetListRestrictions())
			return false, nil, nil
		})
		client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
			of := action.(clienttesting.WatchAction).GetWatchRestrictions()
			record(action, clienttesting.ListRestrictions{Labels: of.Labels, Fields: of.Fields})
			return false, nil, nil
		})
		informer := newInformer(client)
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { o.Resynced = true }}); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			informer.run(stop)
		}()
		time.Sleep(5 * time.Minute)
		indexer := informer.GetIndexer()
		o.Keys = slices.Sorted(slices.Values(indexer.ListKeys()))
		o.Indexers = slices.Sorted(maps.Keys(indexer.GetIndexers()))
		if object, exists, err := indexer.GetByKey("ns/a"); err == nil && exists {
			o.Mark = object.(*metav1.PartialObjectMetadata).Labels["mark"]
		}
		close(stop)
		<-ended
	})
	return o
}

func widget(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "x"}},
	}
}

// factory has the methods of both packages' factories.
type factory interface {
	Start(stopCh <-chan struct{})
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer
	Shutdown()
}

// running is an informer, and a function that runs it until stop closes.
type running struct {
	cache.SharedIndexInformer
	run func(stop <-chan struct{})
}

func of(f factory) running {
	return running{f.ForResource(widgets).Informer(), func(stop <-chan struct{}) {
		f.Start(stop)
		<-stop
		f.Shutdown()
	}}
}

func alone(i informers.GenericInformer) running { return running{i.Informer(), i.Informer().Run} }

func tweak(opts *metav1.ListOptions) { opts.LabelSelector = "app=x" }

func mark(object any) (any, error) {
	object.(*metav1.PartialObjectMetadata).Labels = map[string]string{"mark": "yes"}
	return object, nil
}

func TestInformers_AreAsClientGos(t *testing.T) {
	byName := cache.Indexers{"byName": func(object any) ([]string, error) { return []string{object.(*metav1.PartialObjectMetadata).Name}, nil }}
	for name, test := range map[string]struct {
		ours, theirs func(client metadata.Interface) running
	}{
		"of a factory": {
			func(c metadata.Interface) running {
				return of(metadatainformer.NewSharedInformerFactory(c, 0))
			},
			func(c metadata.Interface) running {
				return of(upstream.NewSharedInformerFactory(c, 0))
			},
		},
		"with resyncs": {
			func(c metadata.Interface) running {
				return of(metadatainformer.NewSharedInformerFactory(c, time.Minute))
			},
			func(c metadata.Interface) running {
				return of(upstream.NewSharedInformerFactory(c, time.Minute))
			},
		},
		"of a filtered factory": {
			func(c metadata.Interface) running {
				return of(metadatainformer.NewFilteredSharedInformerFactory(c, time.Minute, "ns", tweak))
			},
			func(c metadata.Interface) running {
				return of(upstream.NewFilteredSharedInformerFactory(c, time.Minute, "ns", tweak))
			},
		},
		"with a transform": {
			func(c metadata.Interface) running {
				return of(metadatainformer.NewSharedInformerFactoryWithOptions(c, time.Minute, nil, metadatainformer.WithTransform(mark)))
			},
			func(c metadata.Interface) running {
				return of(upstream.NewSharedInformerFactoryWithOptions(c, time.Minute, upstream.WithTransform(mark)))
			},
		},
		"without a factory": {
			func(c metadata.Interface) running {
				return alone(metadatainformer.NewFilteredMetadataInformer(c, widgets, "ns", time.Minute, byName, tweak))
			},
			func(c metadata.Interface) running {
				return alone(upstream.NewFilteredMetadataInformer(c, widgets, "ns", time.Minute, byName, tweak))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := observe(t, test.theirs), observe(t, test.ours)
			if diff := cmp.Diff(want, got); diff != "" || len(want.Requests) < 2 || len(want.Keys) == 0 {
				t.Errorf("client-go's (-), ours (+):\n%s", diff)
			}
		})
	}
}

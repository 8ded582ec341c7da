package settings_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/controllerruntime/internal/settings"
)

// from returns a label selector that names a setting.
func from(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"from": name}) }

func TestSettings_OfKindsAndNamespaces(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	period := time.Minute
	opts, err := settings.Default(&rest.Config{}, cache.Options{
		Mapper:               mapper,
		SyncPeriod:           &period,
		DefaultLabelSelector: from("all"),
		DefaultFieldSelector: fields.OneTermEqualSelector("a", "b"),
		DefaultNamespaces: map[string]cache.Config{
			"one": {FieldSelector: fields.OneTermEqualSelector("of", "one")}, "two": {LabelSelector: from("two")}, cache.AllNamespaces: {},
		},
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
			Label: from("pods"), Namespaces: map[string]cache.Config{"one": {LabelSelector: from("pods-in-one")}, "two": {}},
		}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := settings.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, kind := range []string{"Pod", "Service"} {
		of, usual := all.Of(corev1.SchemeGroupVersion.WithKind(kind))
		if usual != (kind == "Service") {
			t.Errorf("%s: usual is %v", kind, usual)
		}
		for namespace, config := range of.Namespaces {
			if config.SyncPeriod == nil || *config.SyncPeriod != period {
				t.Errorf("%s in %q: the period is %v", kind, namespace, config.SyncPeriod)
			}
			got[kind+" in "+namespace] = config.LabelSelector.String() + "; " + config.FieldSelector.String()
		}
	}
	want := map[string]string{
		"Pod in one":     "from=pods-in-one; of=one",
		"Pod in two":     "from=pods; a=b",
		"Service in one": "from=all; of=one",
		"Service in two": "from=two; a=b",
		"Service in ":    "from=all; metadata.namespace!=one,metadata.namespace!=two,a=b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The mapper does not have the kind.
func TestSettings_OfAnAbsentKind(t *testing.T) {
	opts := cache.Options{
		Mapper: meta.NewDefaultRESTMapper(nil), Scheme: scheme.Scheme,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Namespaces: map[string]cache.Config{"one": {}}}},
	}
	if _, err := settings.Default(&rest.Config{}, opts, false); !meta.IsNoMatchError(err) {
		t.Errorf("Default: %v", err)
	}
	if _, err := settings.Default(&rest.Config{}, opts, true); err != nil {
		t.Errorf("Default with absent kinds: %v", err)
	}
}

package source_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// moveGood is a transform that fails for objects named bad, and gives the others keys in namespace all.
func moveGood(obj any) (any, error) {
	object := obj.(*unstructured.Unstructured)
	if object.GetName() == "bad" {
		return nil, errors.New("bad")
	}
	object.SetName("moved-" + object.GetNamespace())
	object.SetNamespace("all")
	return object, nil
}

// What a transform has made of the objects of a namespace stays known while its lists fail.
func TestNamespaces_OneFailsInSeveralPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for _, namespace := range []string{"m", "n"} {
			create(t, cluster, namespace, "good", "red")
			create(t, cluster, namespace, "bad", "red")
		}
		src := source.New(source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, Namespaces: source.NewNamespaces("m", "n"), Polling: time.Minute,
			Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Unwatchable: true}),
		})
		if err := src.SetTransform(moveGood); err != nil {
			t.Fatal(err)
		}
		r := runSource(t, src)
		defer r.stop()
		check := func(when string, rejected int, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, r.keys()); diff != "" {
				t.Errorf("%s keys (-want +got):\n%s", when, diff)
			}
			if got := src.State().Rejected.Count; got != rejected {
				t.Errorf("%s rejected = %d, want %d", when, got, rejected)
			}
		}
		check("at first", 2, "all/moved-m", "all/moved-n")
		refuse(cluster, errForbidden)
		for range 3 {
			time.Sleep(67 * time.Second)
			check("after a poll without n", 2, "all/moved-m", "all/moved-n")
		}
		refuse(cluster, nil)
		s := testSet{testInformer: &testInformer{t: t, cluster: cluster}}
		s.removeIn("n", "good")
		s.removeIn("n", "bad")
		time.Sleep(67 * time.Second)
		check("after a poll of both", 1, "all/moved-m")
		src.SetNamespaces("n")
		time.Sleep(67 * time.Second)
		check("after a poll without m", 0)
	})
}

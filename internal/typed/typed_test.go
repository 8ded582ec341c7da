package typed

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Such objects stand for deleted objects that the cache does not have any more.
func TestClients_ObjectsThatTheyCreateHaveTheKind(t *testing.T) {
	direct, err := New[*corev1.Pod](&rest.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dynamicClient, err := dynamic.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []source.Client{direct, Convert[*corev1.Pod](dynamicClient)} {
		if pod, is := client.New(corev1.SchemeGroupVersion.WithKind("Pod")).(*corev1.Pod); !is || pod.Kind != "Pod" || pod.APIVersion != "v1" {
			t.Errorf("%T creates %+v", client, pod)
		}
	}
}

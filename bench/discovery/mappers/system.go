package mappers

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// System is one way.
type System struct {
	Name string
	// About says what it is, in a few words.
	About string
	// Brief says that only its first answer is of interest.
	Brief bool
	// Open makes a mapper for the server that cfg reaches. It does not wait.
	Open func(cfg *rest.Config) (*Mapper, error)
}

// Mapper is a system at work. What it does not have is nil.
type Mapper struct {
	meta.RESTMapper

	// Run runs beside it until ctx ends.
	Run func(ctx context.Context) error
	// Settled reports whether it has done all that it does at the beginning.
	Settled func() bool
	// Forget makes the next question go to the server: without that, what is not
	// found would never be.
	Forget func()
	// Await waits until a type is served.
	Await func(ctx context.Context, gvr schema.GroupVersionResource) error
	// Resolve answers a reference of the form plural.group, and ResolveGVK a kind.
	// Who has none of them is asked by ResourceFor and by RESTMapping.
	Resolve    func(ctx context.Context, ref string) (schema.GroupVersionResource, error)
	ResolveGVK func(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, error)
}

// The names of systems.
const (
	ClientGo          = "client-go"
	ControllerRuntime = "controller-runtime"
	GVRKit            = "gvrkit"
	GVRKitAsking      = "gvrkit-asking"
)

// All returns the systems that there are.
func All() []System {
	return []System{
		{Name: ClientGo, About: "memory.NewMemCacheClient and restmapper.NewDeferredDiscoveryRESTMapper", Open: openClientGo},
		{Name: ControllerRuntime, About: "apiutil.NewDynamicRESTMapper", Open: openControllerRuntime},
		{Name: GVRKit, About: "discovery.Resolver, Run beside it", Open: openGVRKit},
		{Name: GVRKitAsking, About: "discovery.Resolver without Run", Brief: true, Open: openGVRKitAsking},
	}
}

// Named returns the system called name.
func Named(name string) (System, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return System{}, fmt.Errorf("no system %q; there are %s", name, strings.Join(names, ", "))
}

package systems

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Reference is the name of the system that the others are compared with.
const Reference = "client-go"

// System is one way to keep a cache of a resource.
type System struct {
	Name string
	// About says what it is, in a few words.
	About string
	// Main says that it is compared on every server, however slow that is.
	Main bool
	// OnRequest says that it is compared only if it is named.
	OnRequest bool
	// Env is added to the environment of the process that the system runs in.
	Env []string
	// Drops says that its cached objects have no managedFields.
	Drops bool
	// Open makes a cache of the target and begins to fill it, until ctx ends.
	Open func(ctx context.Context, target Target) (Cache, error)
}

// Target is what is cached.
type Target struct {
	Config     *rest.Config
	GVR        schema.GroupVersionResource
	GVK        schema.GroupVersionKind
	Namespaced bool
	// Discovery says whether the server has it. If not, the system does without.
	Discovery bool
	// Handler gets all events.
	Handler cache.ResourceEventHandler
}

// Cache is a system's cache of one resource.
type Cache interface {
	// WaitForSync waits until the cache has all objects that the server had.
	WaitForSync(ctx context.Context) error
	// Object returns the object with the given name as it is cached, or as it is
	// unpacked from what is cached, which must not be changed.
	Object(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error)
	// Len returns how many objects are cached.
	Len(ctx context.Context) (int, error)
	// Stop ends what fills the cache.
	Stop(ctx context.Context) error
}

// listOnly turns client-go's watch-list off.
var listOnly = []string{"KUBE_FEATURE_WatchListClient=false"}

// All returns the systems that there are, the reference first.
func All() []System {
	return []System{
		{Name: Reference, About: "client-go's dynamicinformer, defaults", Main: true, Open: openClientGo},
		{Name: "client-go-list", About: "the same, watch-list off", Env: listOnly, Open: openClientGo},
		{Name: "client-go-stripped", About: "the same, a transform deletes managedFields", Drops: true, Open: openStripped},
		{Name: "controller-runtime", About: "controller-runtime's cache, unstructured, defaults", Main: true, Open: openControllerRuntime},
		{Name: "gvrkit", About: "gvrkit's dynamicinformer, defaults", Main: true, Open: openGVRKit()},
		{Name: "gvrkit-list", About: "the same, watch-list off", Env: listOnly, Open: openGVRKit()},
		{Name: "gvrkit-stripped", About: "the same, managedFields left out while decoding", Drops: true, Open: openGVRKit(withoutManagedFields)},
		{Name: "gvrkit-own", About: "the same, no parts shared", OnRequest: true, Open: openGVRKit(withoutSharing)},
		{Name: "client-go-fast", About: "client-go's dynamicinformer on gvrkit's client", OnRequest: true, Open: openClientGoFast},
	}
}

// Defaults returns the names of the systems that are compared if none is named.
func Defaults() []string {
	var names []string
	for _, s := range All() {
		if !s.OnRequest {
			names = append(names, s.Name)
		}
	}
	return names
}

// Names returns the names of all systems.
func Names() []string {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	return names
}

// Named returns the system called name.
func Named(name string) (System, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return System{}, fmt.Errorf("no system %q; there are %s", name, strings.Join(Names(), ", "))
}

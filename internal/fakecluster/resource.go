package fakecluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

type namespaceable struct{ resource }

func (n *namespaceable) Namespace(namespace string) dynamic.ResourceInterface {
	r := n.resource
	r.namespace = namespace
	return &r
}

// resource is the client of a resource in one namespace, or in all namespaces.
type resource struct {
	cluster   *Cluster
	gvr       schema.GroupVersionResource
	namespace string
}

func (r *resource) request(verb, name string) Request {
	return Request{Verb: verb, GVR: r.gvr, Namespace: r.namespace, Name: name}
}

// arrive is Cluster.arrive for requests for one object.
func (r *resource) arrive(ctx context.Context, verb, name string, subresources []string) (*store, error) {
	if len(subresources) > 0 {
		return nil, r.unsupported(verb + " " + subresources[0])
	}
	return r.cluster.arrive(ctx, r.request(verb, name))
}

func (r *resource) key(name string) string { return r.namespace + "/" + name }

func (r *resource) Create(ctx context.Context, obj *unstructured.Unstructured, _ metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error) {
	s, err := r.arrive(ctx, "create", obj.GetName(), subresources)
	if err != nil {
		return nil, err
	}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	key := r.key(obj.GetName())
	if s.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(r.gvr.GroupResource(), obj.GetName())
	}
	version := r.cluster.nextVersionLocked()
	created := obj.DeepCopy()
	created.SetGroupVersionKind(r.gvr.GroupVersion().WithKind(s.Kind))
	created.SetNamespace(r.namespace)
	created.SetUID(r.cluster.newUIDLocked(version))
	created.SetResourceVersion(formatVersion(version))
	s.objects[key] = created
	s.record(change{version: version, after: created})
	return created.DeepCopy(), nil
}

func (r *resource) Update(ctx context.Context, obj *unstructured.Unstructured, _ metav1.UpdateOptions, subresources ...string) (*unstructured.Unstructured, error) {
	s, err := r.arrive(ctx, "update", obj.GetName(), subresources)
	if err != nil {
		return nil, err
	}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	key := r.key(obj.GetName())
	old := s.objects[key]
	switch want := obj.GetResourceVersion(); {
	case old == nil:
		return nil, apierrors.NewNotFound(r.gvr.GroupResource(), obj.GetName())
	case want != "" && want != old.GetResourceVersion():
		return nil, apierrors.NewConflict(r.gvr.GroupResource(), obj.GetName(), fmt.Errorf("the object has been modified"))
	}
	version := r.cluster.nextVersionLocked()
	updated := obj.DeepCopy()
	updated.SetGroupVersionKind(old.GroupVersionKind())
	updated.SetNamespace(r.namespace)
	updated.SetUID(old.GetUID())
	updated.SetResourceVersion(formatVersion(version))
	s.objects[key] = updated
	s.record(change{version: version, before: old, after: updated})
	return updated.DeepCopy(), nil
}

func (r *resource) Delete(ctx context.Context, name string, _ metav1.DeleteOptions, subresources ...string) error {
	s, err := r.arrive(ctx, "delete", name, subresources)
	if err != nil {
		return err
	}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	old := s.objects[r.key(name)]
	if old == nil {
		return apierrors.NewNotFound(r.gvr.GroupResource(), name)
	}
	delete(s.objects, r.key(name))
	s.record(change{version: r.cluster.nextVersionLocked(), before: old})
	return nil
}

func (r *resource) Get(ctx context.Context, name string, _ metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error) {
	s, err := r.arrive(ctx, "get", name, subresources)
	if err != nil {
		return nil, err
	}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	obj := s.objects[r.key(name)]
	if obj == nil {
		return nil, apierrors.NewNotFound(r.gvr.GroupResource(), name)
	}
	return obj.DeepCopy(), nil
}

func (r *resource) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	req := r.request("list", "")
	req.Options = opts
	s, err := r.cluster.arrive(ctx, req)
	if err != nil {
		return nil, err
	}
	sel, err := newSelection(r.namespace, opts, r.cluster.isSharded())
	if err != nil {
		return nil, err
	}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.gvr.GroupVersion().WithKind(s.Kind + "List"))
	list.SetResourceVersion(formatVersion(r.cluster.version))
	page(list, s.matching(sel), opts, sel.shards != nil)
	return list, nil
}

// page adds the page of objects, which are sorted, that opts request. As with an API server, a list with a selector has no number of remaining
// objects. The version of the list is that of its first page; objects of later pages may have later versions.
func page(list *unstructured.UnstructuredList, objects []*unstructured.Unstructured, opts metav1.ListOptions, sharded bool) {
	if version, after, is := strings.Cut(opts.Continue, " "); is {
		list.SetResourceVersion(version)
		objects = slices.DeleteFunc(objects, func(obj *unstructured.Unstructured) bool { return pageKey(obj) <= after })
	}
	if number := int(opts.Limit); number > 0 && len(objects) > number {
		if opts.LabelSelector == "" && opts.FieldSelector == "" && !sharded {
			remaining := int64(len(objects) - number)
			list.SetRemainingItemCount(&remaining)
		}
		objects = objects[:number]
		list.SetContinue(list.GetResourceVersion() + " " + pageKey(objects[number-1]))
	}
	for _, obj := range objects {
		list.Items = append(list.Items, *obj)
	}
}

// pageKey returns the key by which the pages of a list are sorted.
func pageKey(obj *unstructured.Unstructured) string { return obj.GetNamespace() + "/" + obj.GetName() }

func (r *resource) unsupported(verb string) error {
	return apierrors.NewMethodNotSupported(r.gvr.GroupResource(), verb)
}

func (r *resource) UpdateStatus(context.Context, *unstructured.Unstructured, metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("update status")
}

func (r *resource) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return r.unsupported("delete collection")
}

func (r *resource) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("patch")
}

func (r *resource) Apply(context.Context, string, *unstructured.Unstructured, metav1.ApplyOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("apply")
}

func (r *resource) ApplyStatus(context.Context, string, *unstructured.Unstructured, metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("apply status")
}

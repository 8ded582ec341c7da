package controllerruntime

import (
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/packed"
)

// store is the cache of an informer, as objects of one form.
type store struct {
	toolscache.Indexer                                  // of cached objects
	functions          func() toolscache.Indexers       // the index functions of the program
	packed             bool                             // cached objects are packed
	decode             *gotype.Converter[client.Object] // from packed to structured objects or metadata; nil: unstructured
	kindless           bool                             // decoded objects have no kind
	indexes            string                           // precedes the names of indexes: the forms of a packed cache have their own, and so has an informer after a removed one
}

// newStore returns the store of indexer, for objects in that form, of which example is one.
func newStore(indexer toolscache.Indexer, as representation, example runtime.Object) store {
	view, can := indexer.(interface {
		Packed() (toolscache.Indexer, func(any) any)
	})
	if !can {
		return store{Indexer: indexer, functions: indexer.GetIndexers}
	}
	cached, unpack := view.Packed()
	if unpack == nil {
		return store{Indexer: indexer, functions: indexer.GetIndexers}
	}
	s := store{Indexer: cached, functions: indexer.GetIndexers, packed: true, kindless: as == asStructured, indexes: string(as) + "/"}
	if as != asUnstructured {
		s.decode = gotype.Of[client.Object]{Type: reflect.TypeOf(example)}.NewConverter()
	}
	return s
}

// object returns a cached object in the form of the store. If shares is false, it belongs to the caller.
func (s *store) object(cached any, shares bool) (runtime.Object, error) {
	object, is := cached.(runtime.Object)
	if !is {
		return nil, fmt.Errorf("cache contained %T, which is not an Object", cached)
	}
	if !s.packed {
		return own(object, shares)
	}
	from, isPacked := object.(*packed.Object)
	tree, isTree := object.(*unstructured.Unstructured) // it has values that can't be packed
	switch {
	case isPacked && s.decode == nil:
		return own(from.Unstructured(), shares)
	case isPacked:
		return s.decoded(s.decode.Decode(from, func() map[string]any { return from.Unstructured().DeepCopy().Object }))
	case isTree && s.decode != nil:
		copied, err := own(tree, false)
		if err != nil {
			return nil, err
		}
		return s.decoded(s.decode.Convert(copied.(*unstructured.Unstructured).Object))
	}
	return own(object, shares)
}

// decoded returns object as [withKind] would.
func (s *store) decoded(object client.Object, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	if s.kindless {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return object, nil
}

// index returns function for cached objects, which a packed cache decodes for it.
func (s *store) index(function toolscache.IndexFunc) toolscache.IndexFunc {
	if !s.packed {
		return function
	}
	return func(cached any) ([]string, error) {
		object, err := s.object(cached, true)
		if err != nil {
			return nil, err
		}
		return function(object)
	}
}

// own returns a copy of object, unless shares is true.
func own(object runtime.Object, shares bool) (_ runtime.Object, err error) {
	if shares {
		return object, nil
	}
	defer func() { // a transform may set a value that apimachinery can't copy
		if r := recover(); r != nil {
			key, _ := toolscache.MetaNamespaceKeyFunc(object)
			err = fmt.Errorf("%s can't be copied: %v", key, r)
		}
	}()
	return object.DeepCopyObject(), nil
}

// get implements client.Reader.
func (i *informer) get(key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	o := (&client.GetOptions{}).ApplyOptions(opts)
	cached, found, err := i.find(key)
	if err != nil {
		return err
	}
	if !found { // as in controller-runtime, the resource is the kind
		return apierrors.NewNotFound(schema.GroupResource{Group: i.gvk.Group, Resource: i.gvk.Kind}, key.Name)
	}
	shares := i.shares || o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	object, err := i.store.object(cached, shares)
	if err != nil {
		return err
	}
	from, to := reflect.ValueOf(object), reflect.ValueOf(out)
	if !from.Type().AssignableTo(to.Type()) {
		return fmt.Errorf("cache had type %s, but %s was asked for", from.Type(), to.Type())
	}
	reflect.Indirect(to).Set(reflect.Indirect(from))
	if !shares {
		out.GetObjectKind().SetGroupVersionKind(i.gvk)
	}
	return nil
}

// find returns the cached object under key. Objects of a cluster-scoped kind are found in any namespace.
func (i *informer) find(key client.ObjectKey) (cached any, found bool, err error) {
	cached, found, err = i.store.GetByKey(toolscache.ObjectName(key).String())
	if found || err != nil || key.Namespace == "" {
		return cached, found, err
	}
	if of := i.lease.Resource(); of.GVK.Kind == "" || of.Namespaced {
		return nil, false, nil
	}
	return i.store.GetByKey(key.Name)
}

// list appends the objects that o selects to objects. The limit is that of all objects.
func (i *informer) list(objects []runtime.Object, o *client.ListOptions) ([]runtime.Object, error) {
	all, err := i.store.selected(o)
	if err != nil {
		return nil, err
	}
	if o.Limit <= 0 {
		objects = slices.Grow(objects, len(all))
	}
	shares := i.shares || o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	for _, cached := range all {
		if o.Limit > 0 && int64(len(objects)) >= o.Limit {
			break
		}
		metadata, err := meta.Accessor(cached)
		if err != nil {
			return nil, err
		}
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labelsOf(metadata)) {
			continue
		}
		object, err := i.store.object(cached, shares)
		if err != nil {
			return nil, err
		}
		if !shares {
			object.GetObjectKind().SetGroupVersionKind(i.gvk)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// labelsOf returns the labels of an object for a selector.
func labelsOf(object metav1.Object) labels.Labels {
	if packed, is := object.(*packed.Object); is {
		return packed.Labels()
	}
	return labels.Set(object.GetLabels())
}

// selected returns the cached objects in the namespace of o, with its fields.
func (s *store) selected(o *client.ListOptions) ([]any, error) {
	switch {
	case o.FieldSelector != nil && !isExact(o.FieldSelector):
		return nil, fmt.Errorf("non-exact field matches are not supported by the cache")
	case o.FieldSelector != nil:
		return s.byFields(o.FieldSelector.Requirements(), o.Namespace)
	case o.Namespace != "":
		return s.ByIndex(toolscache.NamespaceIndex, o.Namespace)
	}
	return s.List(), nil
}

// isExact reports whether selector has only terms of the form k=v, and at least one.
func isExact(selector fields.Selector) bool {
	terms := selector.Requirements()
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term fields.Requirement) bool {
		return term.Operator != selection.Equals && term.Operator != selection.DoubleEquals
	})
}

// byFields returns the cached objects that fit each term: those of the first term's index for which the functions of the other indexes
// return the values.
func (s *store) byFields(terms fields.Requirements, namespace string) ([]any, error) {
	objects, err := s.ByIndex(s.indexes+indexName(terms[0].Field), indexValue(namespace, terms[0].Value))
	if err != nil { // its text has the name under which the store has the index
		return nil, fmt.Errorf("Index with name %s does not exist", indexName(terms[0].Field)) //nolint:staticcheck // client-go's text
	}
	functions := s.functions()
	for _, term := range terms[1:] {
		function, known := functions[s.indexes+indexName(term.Field)]
		if !known && len(objects) > 0 {
			return nil, fmt.Errorf("index with name %s does not exist", indexName(term.Field))
		}
		value := indexValue(namespace, term.Value)
		objects = slices.DeleteFunc(objects, func(object any) bool { return !hasValue(function, object, value) })
	}
	return objects, nil
}

// hasValue reports whether function returns value for object. If function fails or panics, it has no value, as in the function's index.
// The index itself may have another version of the object by now.
func hasValue(function toolscache.IndexFunc, object any, value string) (has bool) {
	defer func() {
		if recover() != nil {
			has = false
		}
	}()
	values, err := function(object)
	return err == nil && slices.Contains(values, value)
}

// indexName returns the name of the index of a field.
func indexName(field string) string { return "field:" + field }

// indexValue returns the indexed value of a field's value for objects in namespace, or in all namespaces if it is empty.
func indexValue(namespace, value string) string {
	if namespace == "" {
		namespace = "__all_namespaces"
	}
	return namespace + "/" + value
}

// indexersOf returns the indexer of a field: each value with the object's namespace, and for all namespaces.
func indexersOf(field string, values client.IndexerFunc) toolscache.Indexers {
	return toolscache.Indexers{indexName(field): func(cached any) ([]string, error) {
		object, is := cached.(client.Object)
		if !is {
			return nil, fmt.Errorf("object of type %T is not an Object", cached)
		}
		raw, namespaces := values(object), []string{""}
		if object.GetNamespace() != "" {
			namespaces = append(namespaces, object.GetNamespace())
		}
		indexed := make([]string, 0, len(raw)*len(namespaces))
		for _, namespace := range namespaces {
			for _, value := range raw {
				indexed = append(indexed, indexValue(namespace, value))
			}
		}
		return indexed, nil
	}}
}

package undecodable

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Negotiated returns inner, a serializer of a dynamic or metadata client that only lists and watches, with a decoder of
// JSON that returns an [Object] for each object that inner can't decode. Everything else is as inner decodes
// it, errors included: also other formats, such as CBOR.
func Negotiated(inner runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return negotiated{inner}
}

type negotiated struct{ runtime.NegotiatedSerializer }

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	inner := n.NegotiatedSerializer.SupportedMediaTypes()
	infos := make([]runtime.SerializerInfo, len(inner))
	copy(infos, inner)
	for i := range infos {
		if infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].Serializer = serializer{infos[i].Serializer}
		}
	}
	return infos
}

type serializer struct{ runtime.Serializer }

// Decode implements runtime.Decoder. If inner fails, the objects are decoded one by one: ordinary responses
// cost nothing.
func (s serializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, gvk, err := s.Serializer.Decode(data, defaults, into)
	if err == nil || defaults != nil || runtime.IsNotRegisteredError(err) { // not registered: a whole object for a metadata client
		return object, gvk, err
	}
	if into == nil { // the object of a watch event
		o := New(data, err)
		kind := o.GroupVersionKind()
		return o, &kind, nil
	}
	list, is := into.(*unstructured.UnstructuredList)
	if !is {
		return object, gvk, err
	}
	found, kind, is := s.list(data)
	if !is {
		return object, gvk, err
	}
	*list = *found
	return list, kind, nil
}

// list decodes the items of a list one by one, each in a list of its own: items may have their kind from the
// list. It returns false if data is no list, or each item can be decoded.
func (s serializer) list(data []byte) (*unstructured.UnstructuredList, *schema.GroupVersionKind, bool) {
	var items []json.RawMessage
	members := membersOf(data)
	if json.Unmarshal(members["items"], &items) != nil || items == nil {
		return nil, nil, false
	}
	only := func(item json.RawMessage) (*unstructured.UnstructuredList, *schema.GroupVersionKind, error) {
		members["items"] = append(append(json.RawMessage{'['}, item...), ']')
		data, err := json.Marshal(members)
		if err != nil {
			return nil, nil, err
		}
		list := &unstructured.UnstructuredList{}
		_, kind, err := s.Serializer.Decode(data, nil, list)
		return list, kind, err
	}
	list, kind, err := only(nil)
	if err != nil {
		return nil, nil, false
	}
	var undecodable []*Object
	for _, item := range items {
		decoded, _, err := only(item)
		if err != nil {
			undecodable = append(undecodable, New(item, err))
			continue
		}
		list.Items = append(list.Items, decoded.Items...)
	}
	list.Object[member] = undecodable
	return list, kind, len(undecodable) > 0
}

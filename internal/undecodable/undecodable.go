// Package undecodable has the objects of responses that can't be decoded. client-go fails a whole list, or
// ends a watch, because of one of them. The client of an informer returns each of them as an [Object], and all
// others as ever: its serializer is [Negotiated]. The package does not know requests and informers.
package undecodable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/gotype"
)

// Option is an option of package dynamicclient for clients of informers: the client returns an [Object] for
// each object that can't be decoded. Package dynamicclient sets it during initialisation. It must not be
// changed later.
var Option any

// Object stands for an object that can't be decoded. It has the object's kind, name, namespace, UID and
// resourceVersion, as far as they can be read.
type Object struct {
	metav1.PartialObjectMetadata
	// Err is why the object can't be decoded. Its text has no values of the object.
	Err error
}

// New returns the Object for data, which has the JSON of an object. Err is the error of the decoder.
func New(data []byte, err error) *Object {
	o := &Object{Err: safe(data, err)}
	members := membersOf(data)
	o.APIVersion, o.Kind = text(members["apiVersion"]), text(members["kind"])
	metadata := membersOf(members["metadata"])
	o.Name, o.Namespace = text(metadata["name"]), text(metadata["namespace"])
	o.UID, o.ResourceVersion = types.UID(text(metadata["uid"])), text(metadata["resourceVersion"])
	return o
}

// membersOf returns the members of a JSON object; nil if data is something else.
func membersOf(data []byte) (members map[string]json.RawMessage) {
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	return members
}

// text returns a JSON string; empty if data is something else.
func text(data []byte) (s string) {
	if json.Unmarshal(data, &s) != nil {
		return ""
	}
	return s
}

// safe returns err, why data can't be decoded, without values of the object.
func safe(data []byte, err error) error {
	if kind := kindOf(data); kind != "object" {
		return fmt.Errorf("it is not a JSON object: %s", kind)
	}
	if runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
		return errtext.Clean(err)
	}
	return gotype.WithoutValues(err)
}

// kindOf returns the kind of a JSON value.
func kindOf(data []byte) string {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return "null" // client-go's type of events has no bytes for it
	}
	switch data[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

// member is the name of the member of a list's content that has its Objects. No JSON object has it.
const member = "\x00undecodable"

// Take returns the Objects of a list that a client with [Option], or of package typed, has returned, and removes
// them from it.
func Take(list runtime.Object) (objects []*Object) {
	switch l := list.(type) {
	case *unstructured.UnstructuredList:
		objects, _ = l.Object[member].([]*Object)
		delete(l.Object, member)
	case *internalversion.List:
		l.Items = slices.DeleteFunc(l.Items, func(item runtime.Object) bool {
			object, is := item.(*Object)
			if is {
				objects = append(objects, object)
			}
			return is
		})
	}
	return objects
}

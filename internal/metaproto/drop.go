package metaproto

import (
	"maps"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// Drop is a set of fields of metadata that are left out. A nil Drop leaves out nothing. The fields of a bookmark that ends the
// initial events of a watch-list are never left out. It does not change.
type Drop struct {
	fields              []protowire.Number
	labels, annotations func(key string) bool // report whether a key is left out
}

// NewDrop returns the fields of metadata in d; nil if there are none.
func NewDrop(d *wire.Drop) *Drop {
	metadata := wire.Root(d).Below([]byte("metadata"))
	leavesKeys := false
	keys := func(field string) func(key string) bool {
		if leaves := metadata.Below([]byte(field)).Leaves(); leaves != nil {
			leavesKeys = true
			return leaves
		}
		return func(string) bool { return false }
	}
	drop := &Drop{labels: keys("labels"), annotations: keys("annotations")}
	for number, name := range names {
		if metadata.Below([]byte(name)).Dropped() {
			drop.fields = append(drop.fields, number)
		}
	}
	if len(drop.fields) == 0 && !leavesKeys {
		return nil
	}
	return drop
}

// names are the names of fields that can be left out.
var names = map[protowire.Number]string{
	generateNameField:      "generateName",
	selfLinkField:          "selfLink",
	generationField:        "generation",
	creationTimestampField: "creationTimestamp",
	deletionTimestampField: "deletionTimestamp",
	gracePeriodField:       "deletionGracePeriodSeconds",
	labelsField:            "labels",
	annotationsField:       "annotations",
	ownerReferencesField:   "ownerReferences",
	finalizersField:        "finalizers",
	managedFieldsField:     "managedFields",
}

// from leaves out the fields of h, and returns functions that report whether a key of its labels or annotations is left out. They are nil if h
// keeps all fields.
func (d *Drop) from(h *head) (labels, annotations func(key string) bool) {
	if d == nil || h.endsInitialEvents() {
		return nil, nil
	}
	for _, number := range d.fields {
		if text := h.text(number); text != nil {
			*text = nil
		}
		if part := h.run(number); part != nil {
			*part = run{}
		}
		switch number {
		case generationField:
			h.generation = 0
		case gracePeriodField:
			h.hasGracePeriod = false
		}
	}
	return d.labels, d.annotations
}

// Remove leaves out the fields of metadata that client-go has decoded.
func (d *Drop) Remove(m *metav1.ObjectMeta) {
	if d == nil || m.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		return
	}
	for _, number := range d.fields {
		switch number {
		case generateNameField:
			m.GenerateName = ""
		case selfLinkField:
			m.SetSelfLink("")
		case generationField:
			m.Generation = 0
		case creationTimestampField:
			m.CreationTimestamp = metav1.Time{}
		case deletionTimestampField:
			m.DeletionTimestamp = nil
		case gracePeriodField:
			m.DeletionGracePeriodSeconds = nil
		case labelsField:
			m.Labels = nil
		case annotationsField:
			m.Annotations = nil
		case ownerReferencesField:
			m.OwnerReferences = nil
		case finalizersField:
			m.Finalizers = nil
		case managedFieldsField:
			m.ManagedFields = nil
		}
	}
	m.Labels, m.Annotations = without(m.Labels, d.labels), without(m.Annotations, d.annotations)
}

// without removes the keys that are left out from a map. A map that has only these becomes nil.
func without(of map[string]string, left func(key string) bool) map[string]string {
	before := len(of)
	maps.DeleteFunc(of, func(key, _ string) bool { return left(key) })
	if len(of) == 0 && before > 0 {
		return nil
	}
	return of
}

package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Quarantine has the objects that an informer leaves out: of the cache, because they can't be decoded or the
// transform fails for them, or of an index, because the index function fails for them. All other objects are
// served. An object leaves the quarantine with its next good version, or when it is deleted. If the bad version
// of an object is left out of the cache, the cache keeps an earlier good version of that object.
type Quarantine struct {
	// Objects are the objects, sorted by key and index: at most 1,000. It is read-only.
	Objects []QuarantinedObject `json:"objects,omitempty"`
	// Counts are the numbers of objects by reason, also of those that are not in Objects. An object counts once
	// for each index that it is left out of. It is read-only, and nil if there are no objects.
	Counts map[Reason]uint64 `json:"counts"`
	// Since is the time since when there is at least one object.
	Since time.Time `json:"since,omitzero"`
}

// QuarantinedObject is an object that is left out.
type QuarantinedObject struct {
	// Key is the key of the object, namespace/name, as the server has it. For an object without a name, it is a
	// text that says so.
	Key string    `json:"key"`
	UID types.UID `json:"uid,omitempty"`
	// Reason is [ReasonDecodeFailed], [ReasonTransformFailed] or [ReasonIndexFailed]. Index is the name of the
	// index for ReasonIndexFailed.
	Reason Reason `json:"reason"`
	Index  string `json:"index,omitempty"`
	// Err is the last error, and Since the time since when the object is left out.
	Err   error     `json:"-"`
	Since time.Time `json:"since"`
}

// IsZero reports whether no object is left out.
func (q Quarantine) IsZero() bool { return len(q.Counts) == 0 }

// Count returns the number of objects, also of those that are not in Objects.
func (q Quarantine) Count() (n uint64) {
	for _, count := range q.Counts {
		n += count
	}
	return n
}

// Text describes the counts: "DecodeFailed 2 and IndexFailed 1". It returns "" if there are no objects.
func (q Quarantine) Text() string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(q.Counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, q.Counts[reason]))
	}
	return list(parts)
}

// namedObjects is the number of objects that an explanation names.
const namedObjects = 5

// sentences describes the first objects, and the number of all others.
func (q Quarantine) sentences(at time.Time) (all []string) {
	named := q.Objects[:min(len(q.Objects), namedObjects)]
	for n := range named {
		all = append(all, named[n].Text(at))
	}
	switch more := q.Count() - uint64(len(named)); {
	case more == 0:
	case len(named) == 0:
		all = append(all, fmt.Sprintf("Objects are left out: %s", q.Text()))
	default:
		verb := "are"
		if more == 1 {
			verb = "is"
		}
		all = append(all, fmt.Sprintf("%s more %s left out (%s in all)", count(more, "object"), verb, q.Text()))
	}
	return all
}

// Text describes the object in a sentence without a full stop.
func (o QuarantinedObject) Text(at time.Time) string {
	of := ""
	if o.Index != "" {
		of = fmt.Sprintf(" of index %q", o.Index)
	}
	text := fmt.Sprintf("%s has been left out%s for %s (%s)", o.Key, of, elapsed(o.Since, at), o.Reason)
	if o.Err != nil {
		text += ": " + o.Err.Error()
	}
	return text
}

// MarshalJSON writes the object with the keys of its fields' tags, and error: the text of Err.
func (o QuarantinedObject) MarshalJSON() ([]byte, error) {
	type fields QuarantinedObject // without MarshalJSON
	return json.Marshal(struct {
		fields
		Error string `json:"error,omitempty"`
	}{fields(o), errorText(o.Err)})
}

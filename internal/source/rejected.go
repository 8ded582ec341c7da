package source

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxRejected is the number of rejected objects whose errors are stored.
const maxRejected = 1000

// Rejected describes the objects that are left out because they can't be decoded, or the conversion or the
// transform fails for them.
type Rejected struct {
	// Count is the present number of these objects.
	Count int
	// Key is the key of the object that failed last, and Err the error.
	Key string
	Err error
	// Since is the time since when there is at least one; zero if there is none.
	Since time.Time
}

// RejectedObject is one of the objects that are left out.
type RejectedObject struct {
	// Key is the key of the object. If the object has no name, Key says so.
	Key string
	UID types.UID
	// Err is why the object is left out, and Since the time since when it is.
	Err   error
	Since time.Time
}

// rejections has the rejected objects.
type rejections struct {
	objects map[string]rejection // by their original keys
	named   int                  // the number of objects with an error
	last    Rejected
}

// rejection is one rejected object.
type rejection struct {
	uid   types.UID
	since time.Time
	err   error // nil beyond maxRejected objects
}

func (r *rejections) add(key string, uid types.UID, err error) {
	if r.objects == nil {
		r.objects = map[string]rejection{}
	}
	made := rejection{uid: uid, since: time.Now()}
	known, again := r.objects[key]
	if again && known.uid == uid {
		made.since = known.since
	}
	if known.err != nil || r.named < maxRejected {
		made.err = err
	}
	if made.err != nil && known.err == nil {
		r.named++
	}
	r.objects[key] = made
	if r.last.Since.IsZero() {
		r.last.Since = made.since
	}
	r.last.Count, r.last.Key, r.last.Err = len(r.objects), key, err
}

// remove removes key, and reports whether it was rejected.
func (r *rejections) remove(key string) bool {
	known, is := r.objects[key]
	if !is {
		return false
	}
	delete(r.objects, key)
	if known.err != nil {
		r.named--
	}
	r.last.Count--
	if r.last.Count == 0 {
		*r = rejections{}
		return true
	}
	if r.last.Key == key {
		for other, rejected := range r.objects {
			r.last.Key, r.last.Err = other, rejected.err
			if rejected.err != nil {
				break
			}
		}
	}
	return true
}

// after returns r, the rejections of a list, with the times of earlier ones.
func (r rejections) after(earlier *rejections) rejections {
	if r.last.Count == 0 || earlier.last.Count == 0 {
		return r
	}
	r.last.Since = earlier.last.Since
	for key, rejected := range r.objects {
		if known, again := earlier.objects[key]; again && known.uid == rejected.uid {
			rejected.since = known.since
			r.objects[key] = rejected
		}
	}
	return r
}

// list returns the objects with an error, sorted by key.
func (r *rejections) list() []RejectedObject {
	if r.named == 0 {
		return nil
	}
	list := make([]RejectedObject, 0, r.named)
	for key, rejected := range r.objects {
		if rejected.err != nil {
			list = append(list, RejectedObject{key, rejected.uid, rejected.err, rejected.since})
		}
	}
	slices.SortFunc(list, func(a, b RejectedObject) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

// isNameless reports whether obj has no name, so that it has no key.
func isNameless(obj metav1.Object) bool { return obj.GetName() == "" }

// originalKey returns the key that the server has given to obj. For an object without a name it is a text
// that is no key; number distinguishes the objects of a list that have no UID either.
func originalKey(obj metav1.Object, number int) string {
	switch {
	case !isNameless(obj):
		return keyOf(obj)
	case obj.GetUID() != "":
		return fmt.Sprintf("(no name, UID %s)", obj.GetUID())
	case number == 0:
		return "(no name)"
	}
	return fmt.Sprintf("(no name, %d of the list)", number)
}

// Rejected returns the objects that are left out, at most 1,000 and sorted by key, and State().Rejected of the
// same moment.
func (s *Source) Rejected() ([]RejectedObject, Rejected) {
	k := &s.gate.known
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rejected.list(), k.rejected.last
}

package source

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// MaxNamed is the number of rejected objects whose errors are stored, and that a status names.
const MaxNamed = 1000

// Rejected describes the objects that are left out because they can't be decoded, or the conversion or the
// transform fails for them.
type Rejected struct {
	// Count is the present number of these objects. Undecodable is the number of those that can't be decoded.
	Count, Undecodable int
	// Key is the key of the object that failed last, and Err the error.
	Key string
	Err error
	// Since is the time since when there is at least one; zero if there is none.
	Since time.Time
}

// RejectedObject is one of the objects that are left out.
type RejectedObject struct {
	// Key is the key of the object. If the object has no name, Key has its namespace and says so.
	Key string
	UID types.UID
	// Err is why the object is left out, and Since the time since when it is.
	Err   error
	Since time.Time
	// Undecodable says that the object can't be decoded.
	Undecodable bool
}

// rejections has the rejected objects.
type rejections struct {
	objects map[string]rejection // by their original keys
	named   map[string]error     // the errors of at most MaxNamed of them
	list    []RejectedObject     // what names returns; nil after a change
	last    Rejected
}

// rejection is one rejected object.
type rejection struct {
	uid         types.UID
	since       time.Time
	undecodable bool
}

func (r *rejections) add(key string, uid types.UID, err error) {
	if r.objects == nil {
		r.objects, r.named = map[string]rejection{}, map[string]error{}
	}
	known, again := r.remove(key)
	made := rejection{uid: uid, since: time.Now(), undecodable: errors.Is(err, ErrDecode)}
	if again && known.uid == uid {
		made.since = known.since
	}
	err = errtext.Clean(err) // a transform may return an error of any length
	r.objects[key], r.list = made, nil
	if len(r.named) < MaxNamed {
		r.named[key] = err
	}
	if made.undecodable {
		r.last.Undecodable++
	}
	if r.last.Since.IsZero() {
		r.last.Since = made.since
	}
	r.last.Count, r.last.Key, r.last.Err = len(r.objects), key, err
}

// addAll adds the objects of other. Its last one is the last one.
func (r *rejections) addAll(other *rejections) {
	for own, rejected := range other.objects {
		err := other.named[own]
		if err == nil {
			err = ErrTransform
			if rejected.undecodable {
				err = ErrDecode
			}
		}
		r.add(own, rejected.uid, err)
	}
	if other.last.Count > 0 {
		r.last.Key, r.last.Err = other.last.Key, other.last.Err
	}
}

// remove removes key, and returns what was known of it.
func (r *rejections) remove(key string) (known rejection, is bool) {
	if known, is = r.objects[key]; !is {
		return known, false
	}
	delete(r.objects, key)
	delete(r.named, key)
	r.list = nil
	r.last.Count--
	if known.undecodable {
		r.last.Undecodable--
	}
	return known, true
}

// admit removes key, and reports whether it was rejected.
func (r *rejections) admit(key string) bool {
	if _, is := r.remove(key); !is {
		return false
	}
	if r.last.Count == 0 {
		*r = rejections{}
		return true
	}
	if r.last.Key == key {
		r.last.Key, r.last.Err = r.any()
	}
	return true
}

// any returns one of the objects, if possible one with a known error.
func (r *rejections) any() (key string, err error) {
	for key, err := range r.named {
		return key, err
	}
	for key, rejected := range r.objects {
		if rejected.undecodable {
			return key, ErrDecode
		}
		return key, ErrTransform
	}
	return "", nil
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

// names returns the objects with a known error, sorted by key. The slice is not written to later.
func (r *rejections) names() []RejectedObject {
	if r.list != nil || len(r.named) == 0 {
		return r.list
	}
	r.list = make([]RejectedObject, 0, len(r.named))
	for _, key := range slices.Sorted(maps.Keys(r.named)) {
		of := r.objects[key]
		r.list = append(r.list, RejectedObject{key, of.uid, r.named[key], of.since, of.undecodable})
	}
	return r.list
}

// isNameless reports whether obj has no name, so that it has no key.
func isNameless(obj metav1.Object) bool { return obj.GetName() == "" }

// errNameless is the error of an object without a name, which has no key.
var errNameless = errors.New("it has no metadata.name")

// originalKey returns the key that the server has given to obj. For an object without a name, a text that no object has
// as its name follows the namespace; number distinguishes the objects of a list that have no UID either.
func originalKey(obj metav1.Object, number int) string {
	name := obj.GetName()
	switch {
	case name != "":
	case obj.GetUID() != "":
		name = fmt.Sprintf("(no name, UID %s)", obj.GetUID())
	case number == 0:
		name = "(no name)"
	default:
		name = fmt.Sprintf("(no name, %d of the list)", number)
	}
	return cache.NewObjectName(obj.GetNamespace(), name).String()
}

// admit records that the object under key is no longer left out, and reports whether it was.
func (s *resumableWatch) admit(key string) bool {
	if !s.known.admit(key) {
		return false
	}
	s.unreported = true
	return true
}

// admitDeleted is admit for an object that was deleted, if that is the one that is left out.
func (s *resumableWatch) admitDeleted(own string, uid types.UID) bool {
	if !s.known.rejects(own, uid) || !s.admit(own) {
		return false
	}
	s.cfg.Observer.Completed() // before handlers get the deletion
	return true
}

// reject leaves out the object with the original key own. The reflector gets its version in a bookmark, so
// that the version of the store goes on.
func (s *resumableWatch) reject(own string, id identity, err error) bool {
	s.known.reject(own, id.uid, err)
	s.unreported = true
	return s.skip(id.version)
}

// reportRejected reports that an object is left out, or no longer, if the observer does not know it. It is called when the state has the
// version of the event: no other report follows.
func (s *resumableWatch) reportRejected() {
	if s.unreported {
		s.unreported = false
		s.cfg.Observer.Completed()
	}
}

package churn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// streams has what the subject has got of lists and watches: the versions at which it may begin a watch, and the events of
// each watch. It is nearest to the client: it reads what faults have changed.
type streams struct {
	// garbles reports whether a fault that changes the frames of watches is active.
	garbles func() bool
	world   *World // gets the lists and deletions; nil: they are not recorded

	mu      sync.Mutex
	got     map[place]map[string]bool // the versions of lists, events and bookmarks
	listed  map[string]int            // beginnings and parts of lists and of initial events, and frames that a fault may have changed, by resource
	watches []*stream
}

// place is what a list or a watch selects. The namespace is empty for those of all namespaces.
type place struct{ resource, namespace, labels string }

func placeOf(r faultproxy.Request) place {
	return place{r.Resource, r.Namespace, queryOf(r).Get("labelSelector")}
}

// stream is one watch.
type stream struct {
	place
	query      string
	from       string // the version at which it began; empty if it began with the objects
	initial    bool   // its initial events have not ended: it is a list
	aggregated bool   // the aggregated server has served it
	crd        int    // the number of the type in the world when it began; -1: not known
	garbled    bool
	events     []streamEvent
}

func queryOf(req faultproxy.Request) url.Values {
	values, _ := url.ParseQuery(req.Query) // invalid parameters are ignored
	return values
}

func newStreams() *streams {
	return &streams{got: map[place]map[string]bool{}, listed: map[string]int{}}
}

// lists returns a number that changes when the subject begins to list a resource, when it gets a part of a list, which it may have asked for
// before, and when a fault may change a frame of its watches.
func (s *streams) lists(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed[resource]
}

// record returns a fault that changes nothing, and reads lists and watches.
func (s *streams) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := faultproxy.ParseRequest(r)
		if req.Verb != "list" && req.Verb != "watch" {
			next.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Accept-Encoding", "identity")
		reader := &bodyReader{ResponseWriter: w}
		if s.world != nil {
			reader.coded = func(code int) { s.world.gotCode(req, code) }
		}
		if req.Verb == "list" {
			s.count(req)
			reader.passing = func() {
				s.count(req)
				s.tell(req.Resource, reader.body)
			}
			defer func() { s.list(placeOf(req), reader.body) }()
		} else {
			reader.frame = s.watch(req, w.Header())
		}
		next.ServeHTTP(reader, r)
	})
}

// count counts the beginning or a part of a list, unless it is for one object: such a list shows the version of the server, or that the type is served, and no subject takes
// objects from it.
func (s *streams) count(list faultproxy.Request) {
	if queryOf(list).Get("limit") == "1" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed[list.Resource]++
}

// uid matches the UIDs in JSON.
var uid = regexp.MustCompile(`"uid":\s*"([^"]+)"`)

// recordDefinitions returns a fault that changes nothing, and tells the world which CRDs responses to the subject have. Hides reports whether a
// fault of requests for CRDs is active. A read of one CRD does not show that the subject can watch them again. The subject can't use a body or a
// frame that a fault has cut or garbled.
func recordDefinitions(world *World, hides func() bool) faultproxy.Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			req, reader := faultproxy.ParseRequest(r), &bodyReader{ResponseWriter: w}
			one := req.Verb == "get" || queryOf(req).Get("fieldSelector") != ""
			show := func(body []byte) {
				if !json.Valid(body) {
					return
				}
				for _, match := range uid.FindAllSubmatch(body, -1) {
					world.show(types.UID(match[1]), time.Now(), one || hides())
				}
			}
			if req.Verb == "watch" {
				reader.frame = show
			} else {
				defer func() { show(reader.body) }()
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept-Encoding", "identity")
			next.ServeHTTP(reader, r)
		})
	}
}

// tell tells the world of a list if it is complete; body is what has come of it so far. It is called before the subject gets the end, since the world
// must know of the list before the subject uses it.
func (s *streams) tell(resource string, body []byte) {
	if s.world == nil {
		return
	}
	if version, last, err := readList(body); err == nil && last && version != "" { // and no error
		s.world.gotList(resource)
	}
}

// list records the version of a list. Pages before the last one have only a part of the objects.
func (s *streams) list(at place, body []byte) {
	version, last, err := readList(body)
	if err != nil || !last {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gotLocked(at, version)
}

func (s *streams) gotLocked(at place, version string) {
	if s.got[at] == nil {
		s.got[at] = map[string]bool{}
	}
	s.got[at][version] = true
}

// watch records a watch, and returns a function for each of its frames.
func (s *streams) watch(req faultproxy.Request, header http.Header) func(frame []byte) {
	query := queryOf(req)
	w := &stream{place: placeOf(req), query: req.Query, from: query.Get("resourceVersion"), crd: -1, garbled: s.garbles()} // a fault may end before its last frame is read
	if s.world != nil {
		w.crd = s.world.number(typeOf(w.resource))
	}
	if query.Get("sendInitialEvents") == "true" {
		w.from = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches = append(s.watches, w)
	if w.initial = w.from == "" || w.from == "0"; w.initial {
		s.listed[w.resource]++
	}
	return func(frame []byte) {
		e, err := readEvent(frame)
		garbles := s.garbles()
		switch {
		case s.world == nil:
		case e.kind == "DELETED":
			s.world.gotDeletion(w.resource, e.uid)
		case e.kind == "BOOKMARK" && w.from == "": // it may end a list
			s.world.gotList(w.resource)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		w.aggregated = header.Get(frontHeader) != ""
		w.garbled = w.garbled || garbles || err != nil
		if garbles || w.initial {
			s.listed[w.resource]++
		}
		w.initial = w.initial && !e.ends
		if slices.Contains(eventTypes, e.kind) { // and no error
			w.events = append(w.events, e)
			s.gotLocked(w.place, e.version)
		}
	}
}

// has reports whether the subject has got a version of what is at a place, or of all namespaces.
func (s *streams) has(at place, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := at
	all.namespace = ""
	return s.got[at][version] || s.got[all][version]
}

// resumes checks the versions at which watches have begun.
func (s *streams) resumes(watches []faultproxy.Request) []Violation {
	var found []Violation
	for _, req := range watches {
		version := queryOf(req).Get("resourceVersion")
		if version == "" || version == "0" {
			continue
		}
		if !s.has(placeOf(req), version) {
			found = append(found, Violation{Resumable, fmt.Sprintf("a watch of %s in namespace %q began at %s, which the client had not got there: %s",
				req.Resource, req.Namespace, version, req.Query)})
		}
	}
	return found
}

// check returns the violations of the watches: of what the servers and the proxy have sent.
func (s *streams) check(w *World) []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Violation
	for _, watch := range s.watches {
		if !watch.garbled {
			found = append(append(found, watch.bookmarks()...), watch.gaps(w)...)
		}
	}
	return found
}

func (s *stream) String() string {
	return fmt.Sprintf("a watch of %s in namespace %q (%s)", s.resource, s.namespace, s.query)
}

// bookmarks checks that each bookmark is at a version at or after all events before it, and before all events after it, and that all
// events are after the version at which the watch began.
func (s *stream) bookmarks() []Violation {
	var found []Violation
	bookmark, last := s.from, s.from
	for _, e := range s.events {
		switch {
		case e.kind != "BOOKMARK" && !before(bookmark, e.version) && number(bookmark, 0) > 0:
			found = append(found, Violation{Bookmarks, fmt.Sprintf("%v: an event has the version %s after the bookmark or the beginning at %s", s, e.version, bookmark)})
		case e.kind == "BOOKMARK" && before(e.version, last):
			found = append(found, Violation{Bookmarks, fmt.Sprintf("%v: a bookmark has the version %s after an event at %s", s, e.version, last)})
		case e.kind == "BOOKMARK":
			bookmark = e.version
		}
		if before(last, e.version) || last == "" {
			last = e.version
		}
	}
	return found
}

// write is a state of an object.
type write struct {
	uid     types.UID
	version string
	left    bool // the object is no longer selected: it is sent as a deletion
}

// sent returns how often the watch has sent states, and the highest version of its events.
func (s *stream) sent() (sent map[write]int, last uint64) {
	sent = map[write]int{}
	for _, e := range s.events {
		version, _ := strconv.ParseUint(e.version, 10, 64)
		last = max(last, version)
		if e.kind != "BOOKMARK" {
			sent[write{e.uid, e.version, e.kind == "DELETED"}]++
		}
	}
	return sent, last
}

// unwritten returns a violation for each state that was sent, and was not written or is not selected, and for each deletion of an object that never was
// selected, or that was sent twice. The versions of deletions are not known.
func (s *stream) unwritten(sent map[write]int, written map[write]bool) (found []Violation) {
	for it, n := range sent {
		if n > 1 {
			found = append(found, Violation{NoGap, fmt.Sprintf("%v: it sent UID %s at %s %d times", s, it.uid, it.version, n)})
		}
		of := it
		if it.left {
			of = write{uid: it.uid}
		}
		if !written[of] {
			found = append(found, Violation{NoGap, fmt.Sprintf("%v: it sent UID %s at %s, which was not written, or is not selected", s, it.uid, it.version)})
		}
	}
	return found
}

// selects reports whether o is in the namespaces of the watch.
func (s *stream) selects(o *Object) bool { return s.namespace == "" || o.Namespace == s.namespace }

// typeOf returns the name of the type whose resource this is.
func typeOf(resource string) string { return strings.TrimSuffix(resource, "s") }

// gaps checks that the watch has sent all states of the world between the version at which it began and that of its last event, also those in which
// objects are no longer selected, and no others. A watch may outlive its CRD. Then it sends objects of a later one, but none of a later one with another
// scope.
func (s *stream) gaps(w *World) []Violation {
	from, err := strconv.ParseUint(s.from, 10, 64)
	if err != nil || from == 0 || len(s.events) == 0 {
		return nil
	}
	sent, last := s.sent()
	last = max(last, from)
	written := map[write]bool{}
	_, color, _ := strings.Cut(s.labels, "=")
	var found []Violation
	for _, o := range w.of(typeOf(s.resource), s.aggregated) {
		if !s.selects(&o) {
			continue
		}
		rescoped := o.Incarnation > s.crd && w.rescoped(o.Type, s.crd, o.Incarnation)
		for i, state := range o.States {
			version, _ := strconv.ParseUint(state.ResourceVersion, 10, 64) // zero: of a deletion
			it := write{o.UID, state.ResourceVersion, !state.Selected(color)}
			if version > from && version <= last && sent[it] == 0 && !written[it] && !rescoped && (View{Color: color}).shows(&o, i) {
				found = append(found, Violation{NoGap, fmt.Sprintf("%v: between %d and %d, it did not send %s at %s", s, from, last, o.Key(), state.ResourceVersion)})
			}
			written[it], written[write{uid: o.UID, left: it.left}] = true, true
		}
	}
	if len(written) > 0 {
		found = append(found, s.unwritten(sent, written)...)
	}
	slices.SortFunc(found, func(a, b Violation) int { return cmp.Compare(a.Text, b.Text) })
	return found
}

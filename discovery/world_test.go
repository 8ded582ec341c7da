package discovery_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

type crdObject struct {
	name, uid        string
	group, plural    string
	kind             string
	namespaced       bool
	versions         []string // served, preferred first
	generation       int
	labels           map[string]string
	terminating      bool
	established      bool
	created, touched time.Time
}

func (c *crdObject) json(full bool) map[string]any {
	meta := map[string]any{
		"name": c.name, "uid": c.uid, "generation": c.generation, "labels": c.labels, "creationTimestamp": c.created.UTC().Format(time.RFC3339),
		"managedFields": []any{map[string]any{"manager": "x", "operation": "Update", "time": c.touched.UTC().Format(time.RFC3339)}},
	}
	if c.terminating {
		meta["deletionTimestamp"] = c.touched.UTC().Format(time.RFC3339)
	}
	if !full {
		return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
	}
	scope := "Cluster"
	if c.namespaced {
		scope = "Namespaced"
	}
	names := map[string]any{"plural": c.plural, "singular": strings.ToLower(c.kind), "kind": c.kind}
	var versions []any
	for _, v := range c.versions {
		versions = append(versions, map[string]any{"name": v, "served": true})
	}
	est := "False"
	accepted := map[string]any{}
	if c.established {
		est, accepted = "True", names
	}
	conds := []any{map[string]any{"type": "Established", "status": est}, map[string]any{"type": "NamesAccepted", "status": est}}
	if c.terminating {
		conds = append(conds, map[string]any{"type": "Terminating", "status": "True"})
	}
	return map[string]any{
		"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": meta,
		"spec":   map[string]any{"group": c.group, "scope": scope, "names": names, "versions": versions},
		"status": map[string]any{"conditions": conds, "acceptedNames": accepted},
	}
}

type apiServiceObject struct {
	name, uid        string
	auto             string
	service          bool
	server           string // name of the service; empty: y
	available        bool
	created, touched time.Time
}

func (a *apiServiceObject) json(full bool) map[string]any {
	labels := map[string]string{}
	if a.auto != "" {
		labels["kube-aggregator.kubernetes.io/automanaged"] = a.auto
	}
	meta := map[string]any{
		"name": a.name, "uid": a.uid, "labels": labels, "creationTimestamp": a.created.UTC().Format(time.RFC3339),
		"managedFields": []any{map[string]any{"manager": "x", "operation": "Update", "time": a.touched.UTC().Format(time.RFC3339)}},
	}
	if !full {
		return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
	}
	v, g, _ := strings.Cut(a.name, ".")
	spec := map[string]any{"group": g, "version": v}
	if a.service {
		spec["service"] = map[string]any{"namespace": "x", "name": cmp.Or(a.server, "y")}
	}
	st := "False"
	if a.available {
		st = "True"
	}
	return map[string]any{
		"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": meta, "spec": spec,
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": st}}},
	}
}

type serverObject interface {
	json(full bool) map[string]any
}

type watchEvent struct {
	rv   int
	name string
	line []byte
}

type objectStore struct {
	objs    map[string]serverObject
	rvs     map[string]int
	log     []watchEvent
	min     int // oldest rv to go on from
	streams map[*watchStream]bool
}

type watchStream struct {
	ctx    context.Context //nolint:containedctx // of the request
	name   string          // of the only object; empty: all
	closed chan struct{}
	once   sync.Once
	frames chan []byte
	buf    []byte
	onEnd  func()
}

func (s *watchStream) Read(p []byte) (int, error) {
	if len(s.buf) == 0 {
		select {
		case f, ok := <-s.frames:
			if !ok {
				return 0, io.EOF
			}
			s.buf = f
		case <-s.closed:
			return 0, io.ErrClosedPipe
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

func (s *watchStream) Close() error {
	s.once.Do(func() { close(s.closed); s.onEnd() })
	return nil
}

// servedType is what is truly served of one group resource.
type servedType struct {
	uid, kind  string
	namespaced bool
	versions   string
}

type servedState struct {
	at     time.Time
	groups []apidiscovery.APIGroupDiscovery
	truth  map[string]servedType
	mixed  map[string]bool // types whose CRD is there, and whose v1 is of another server
}

// memoryServer is an API server in memory for bubbles, as an http.RoundTripper. It has CRDs and APIServices,
// serves the types that they define, and has discovery documents, which may be behind.
type memoryServer struct {
	mu       sync.Mutex
	rng      *rand.Rand
	rv       int
	uids     int
	crds     *objectStore
	apis     *objectStore
	backends map[string][]string // by "v1.group": plurals
	history  []servedState
	unserved map[types.UID]bool // the CRDs of Removed events with NoVersionServed, for any subscriber
	unlisted map[string]bool    // the types of Removed events with NotListed, for any subscriber
	lags     []time.Duration
	turn     int
	skew     time.Duration
	noETag   bool
	noDate   bool
	asJSON   bool
	legacy   bool
	fault    map[string]string
	lasts    time.Duration // a watch; 0: for ever
	timely   bool          // watches end after their timeout
	healer   string        // a request of this class that is answered ends all faults
	counts   map[string]int
	// unchanged is how many documents were not sent, because the client had them.
	unchanged int
	deleted   map[string]time.Time // CRDs, by UID
	log       []string
	start     time.Time
	asked     []string // paths, with the verb watch and the name of a selector
}

func newMemoryServer(seed uint64) *memoryServer {
	w := &memoryServer{
		unserved: map[types.UID]bool{}, unlisted: map[string]bool{},
		rng: rand.New(rand.NewPCG(seed, 7)), backends: map[string][]string{}, fault: map[string]string{}, counts: map[string]int{}, deleted: map[string]time.Time{}, start: time.Now(),
		crds: &objectStore{objs: map[string]serverObject{}, rvs: map[string]int{}, streams: map[*watchStream]bool{}},
		apis: &objectStore{objs: map[string]serverObject{}, rvs: map[string]int{}, streams: map[*watchStream]bool{}},
		lags: []time.Duration{0},
	}
	for _, gv := range []string{"v1.", "v1.apps", "v1.apiextensions.k8s.io", "v1.apiregistration.k8s.io"} {
		w.setAPI(&apiServiceObject{name: gv, auto: "onstart", available: true})
	}
	w.snapshot()
	return w
}

func (w *memoryServer) now() time.Time { return time.Now().Add(w.skew) }

func (w *memoryServer) uid() string { w.uids++; return fmt.Sprintf("uid-%d", w.uids) }

func (w *memoryServer) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%8.2f ", time.Since(w.start).Seconds())+fmt.Sprintf(format, args...))
}

func (w *memoryServer) put(c *objectStore, name string, o serverObject) {
	w.rv++
	kind := "MODIFIED"
	if c.objs[name] == nil {
		kind = "ADDED"
	}
	c.objs[name] = o
	c.rvs[name] = w.rv
	w.send(c, kind, name, o)
}

func (w *memoryServer) render(c *objectStore, name string, o serverObject, full bool) map[string]any {
	m := o.json(full)
	m["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(c.rvs[name])
	return m
}

func (w *memoryServer) send(c *objectStore, kind, name string, o serverObject) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": w.render(c, name, o, false)})
	if err != nil {
		panic(err)
	}
	line = append(line, '\n')
	c.log = append(c.log, watchEvent{w.rv, name, line})
	for s := range c.streams {
		if s.name == "" || s.name == name {
			s.frames <- line
		}
	}
	w.snapshot()
}

func (w *memoryServer) drop(c *objectStore, name string) {
	o := c.objs[name]
	if o == nil {
		return
	}
	w.rv++
	if crd, is := o.(*crdObject); is {
		w.deleted[crd.uid] = time.Now()
	}
	delete(c.objs, name)
	c.rvs[name] = w.rv
	w.send(c, "DELETED", name, o)
}

func (w *memoryServer) setAPI(a *apiServiceObject) {
	if old, ok := w.apis.objs[a.name].(*apiServiceObject); ok {
		a.uid, a.created = old.uid, old.created
	} else {
		a.uid, a.created = w.uid(), w.now().Truncate(time.Second)
	}
	a.touched = w.now().Truncate(time.Second)
	w.put(w.apis, a.name, a)
}

func (w *memoryServer) setCRD(c crdObject) {
	if old, ok := w.crds.objs[c.name].(*crdObject); ok && old.uid == c.uid {
		c.generation, c.created = old.generation, old.created
		if !slices.Equal(c.versions, old.versions) || c.terminating != old.terminating {
			c.generation++
		}
	} else {
		c.generation, c.created = 1, w.now().Truncate(time.Second)
	}
	c.touched = w.now().Truncate(time.Second)
	w.put(w.crds, c.name, &c)
	time.AfterFunc(time.Duration(w.rng.IntN(2000))*time.Millisecond, w.autoregister)
}

// autoregister creates APIServices for CRDs, and removes those of deleted CRDs.
func (w *memoryServer) autoregister() {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(w.crds.objs)) {
		c := w.crds.objs[name].(*crdObject)
		if !c.established {
			continue
		}
		for _, v := range c.versions {
			wanted[v+"."+c.group] = true
		}
	}
	for _, gv := range slices.Sorted(maps.Keys(wanted)) {
		if w.apis.objs[gv] == nil {
			w.setAPI(&apiServiceObject{name: gv, auto: "true", available: true})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.apis.objs)) {
		if a := w.apis.objs[name].(*apiServiceObject); a.auto == "true" && !wanted[name] {
			w.drop(w.apis, name)
		}
	}
}

// dropAPI removes a group version that the server itself serves.
func (w *memoryServer) dropAPI(name string) {
	w.drop(w.apis, name)
	w.snapshot()
}

func (w *memoryServer) dropCRD(name string) {
	w.drop(w.crds, name)
	time.AfterFunc(time.Duration(w.rng.IntN(2000))*time.Millisecond, w.autoregister)
}

// snapshot stores the currently served types.
func (w *memoryServer) snapshot() {
	groups := map[string]map[string]*apidiscovery.APIVersionDiscovery{}
	truth := map[string]servedType{}
	add := func(group, v, plural, kind, uid string, namespaced bool) {
		if groups[group] == nil {
			groups[group] = map[string]*apidiscovery.APIVersionDiscovery{}
		}
		if groups[group][v] == nil {
			groups[group][v] = &apidiscovery.APIVersionDiscovery{Version: v, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
		}
		if plural == "" {
			return
		}
		scope := apidiscovery.ScopeCluster
		if namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		groups[group][v].Resources = append(groups[group][v].Resources, apidiscovery.APIResourceDiscovery{
			Resource: plural, ResponseKind: &metav1.GroupVersionKind{Group: group, Version: v, Kind: kind}, Scope: scope,
			SingularResource: strings.ToLower(kind), Verbs: crdVerbs,
		})
		key := strings.TrimSuffix(plural+"."+group, ".")
		s := truth[key]
		if s.versions == "" {
			s.uid, s.kind, s.namespaced = uid, kind, namespaced
		}
		s.versions += v + " "
		truth[key] = s
	}
	names := slices.Sorted(maps.Keys(w.apis.objs))
	slices.SortStableFunc(names, func(a, b string) int { return -strings.Compare(a[:2], b[:2]) }) // v2 before v1
	for _, name := range names {
		a := w.apis.objs[name].(*apiServiceObject)
		v, g, _ := strings.Cut(name, ".")
		switch {
		case a.service && a.available:
			add(g, v, "", "", "", false)
			for _, plural := range w.backends[name] {
				add(g, v, plural, strings.ToUpper(plural[:1])+plural[1:len(plural)-1], "", true)
			}
		case a.service:
			add(g, v, "", "", "", false)
			groups[g][v].Freshness = apidiscovery.DiscoveryFreshnessStale
		case a.auto == "onstart":
			add(g, v, map[string]string{"": "pods", "apps": "deployments", "apiextensions.k8s.io": "customresourcedefinitions", "apiregistration.k8s.io": "apiservices"}[g], "K"+g, "", true)
		default:
			for _, name := range slices.Sorted(maps.Keys(w.crds.objs)) {
				c := w.crds.objs[name].(*crdObject)
				if c.group == g && c.established && slices.Contains(c.versions, v) {
					add(g, v, c.plural, c.kind, c.uid, c.namespaced)
				}
			}
		}
	}
	s := servedState{at: time.Now(), truth: truth, mixed: map[string]bool{}}
	for name, o := range w.crds.objs {
		a, _ := w.apis.objs["v1."+o.(*crdObject).group].(*apiServiceObject)
		s.mixed[name] = a != nil && a.service
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g}}
		for _, v := range slices.Backward(slices.Sorted(maps.Keys(groups[g]))) {
			item.Versions = append(item.Versions, *groups[g][v])
		}
		s.groups = append(s.groups, item)
	}
	w.history = append(w.history, s)
}

func (w *memoryServer) truth() map[string]servedType {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history[len(w.history)-1].truth
}

func answer(req *http.Request, code int, ct string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {ct}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func statusAnswer(req *http.Request, code int, reason string) *http.Response {
	body, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: metav1.StatusReason(reason), Message: reason})
	return answer(req, code, "application/json", body)
}

// missingAnswer returns the response that there is no object of that name.
func missingAnswer(req *http.Request, name string) *http.Response {
	status := apierrors.NewNotFound(schema.GroupResource{}, name).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status)
	return answer(req, http.StatusNotFound, "application/json", body)
}

func classOf(req *http.Request) string {
	q := req.URL.Query()
	for _, c := range []struct{ prefix, name string }{{crdPath, "crds"}, {apiServicePath, "apis"}} {
		if rest, ok := strings.CutPrefix(req.URL.Path, c.prefix); ok {
			switch {
			case q.Get("watch") != "":
				return c.name + ".watch"
			case rest != "":
				return c.name + ".get"
			}
			return c.name + ".list"
		}
	}
	switch req.URL.Path {
	case "/api":
		return "core"
	case "/apis":
		return "named"
	}
	return "version"
}

func (w *memoryServer) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	class := classOf(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[class]++
	only := strings.TrimPrefix(req.URL.Query().Get("fieldSelector"), "metadata.name=")
	w.asked = append(w.asked, strings.TrimSuffix(class[strings.Index(class, ".")+1:]+" "+req.URL.Path+" "+only, " "))
	f := w.fault[class]
	if f == "flaky" {
		f = []string{"", "500", "hang1", "410", "reset"}[rand.New(rand.NewPCG(uint64(w.counts[class]), uint64(len(class)))).IntN(5)] //nolint:gosec // a test
	}
	if f == "403all" { // RBAC allows named objects
		f = "403"
		if only != "" {
			f = ""
		}
	}
	if code, path, only := strings.Cut(f, " of "); only {
		f = ""
		if path == req.URL.Path {
			f = code
		}
	}
	if f == "replica404" {
		f = []string{"", "404"}[w.turn%2]
		w.turn++
	}
	if f == "" && class == w.healer {
		clear(w.fault)
	}
	switch f {
	case "":
	case "hang":
		w.mu.Unlock()
		<-req.Context().Done()
		w.mu.Lock()
		return nil, req.Context().Err()
	case "hang1":
		w.mu.Unlock()
		select {
		case <-req.Context().Done():
		case <-time.After(3 * time.Second):
		}
		w.mu.Lock()
	case "late": // the response is that of now
		defer func() {
			w.mu.Unlock()
			time.Sleep(time.Second)
			w.mu.Lock()
		}()
	case "reset":
		return nil, io.ErrUnexpectedEOF
	case "garbage":
		return answer(req, 200, "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", []byte("k8s\x00\x0a\x04garbage")), nil
	case "html":
		return answer(req, 200, "text/html", []byte("<html>login</html>")), nil
	case "emptyjson":
		return answer(req, 200, "application/json", []byte("{}")), nil
	case "retry":
		res := statusAnswer(req, 429, "TooManyRequests")
		res.Header.Set("Retry-After", "5")
		return res, nil
	case "endsatonce":
		if strings.HasSuffix(class, ".watch") {
			return answer(req, 200, "application/json", nil), nil
		}
	default:
		code, _ := strconv.Atoi(f)
		return statusAnswer(req, code, map[int]string{401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 410: "Expired", 500: "InternalError", 503: "ServiceUnavailable"}[code]), nil
	}
	c := w.crds
	if strings.HasPrefix(class, "apis") {
		c = w.apis
	}
	switch {
	case strings.HasSuffix(class, ".get"):
		name := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
		o := c.objs[name]
		if o == nil {
			return missingAnswer(req, name), nil
		}
		body, _ := json.Marshal(w.render(c, name, o, !strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")))
		return answer(req, 200, "application/json", body), nil
	case strings.HasSuffix(class, ".list"):
		if since, _ := strconv.Atoi(req.URL.Query().Get("resourceVersion")); since > w.rv { // the watch cache waits for that version
			w.mu.Unlock()
			time.Sleep(3 * time.Second)
			w.mu.Lock()
			res := statusAnswer(req, http.StatusGatewayTimeout, "Timeout")
			res.Header.Set("Retry-After", "1")
			return res, nil
		}
		items := []any{}
		for _, name := range slices.Sorted(maps.Keys(c.objs)) {
			if only == "" || only == name {
				items = append(items, w.render(c, name, c.objs[name], false))
			}
		}
		body, _ := json.Marshal(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(w.rv)}, "items": items})
		return answer(req, 200, "application/json", body), nil
	case strings.HasSuffix(class, ".watch"):
		since, _ := strconv.Atoi(req.URL.Query().Get("resourceVersion"))
		if since < c.min {
			return statusAnswer(req, 410, "Expired"), nil
		}
		s := &watchStream{ctx: req.Context(), name: only, closed: make(chan struct{}), frames: make(chan []byte, 10000)}
		s.onEnd = func() { w.mu.Lock(); defer w.mu.Unlock(); delete(c.streams, s) }
		for _, f := range c.log {
			if f.rv > since && (only == "" || only == f.name) {
				s.frames <- f.line
			}
		}
		c.streams[s] = true
		lasts := w.lasts
		if seconds, _ := strconv.Atoi(req.URL.Query().Get("timeoutSeconds")); w.timely {
			lasts = time.Duration(seconds) * time.Second
		}
		if lasts > 0 {
			time.AfterFunc(lasts, func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				if c.streams[s] {
					close(s.frames)
					delete(c.streams, s)
				}
			})
		}
		return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{"Content-Type": {"application/json"}}, Body: s, ContentLength: -1}, nil
	case class == "core", class == "named":
		return w.document(req, class), nil
	default:
		return w.version(req), nil
	}
}

func (w *memoryServer) view() *servedState {
	lag := w.lags[w.turn%len(w.lags)]
	w.turn++
	at := &w.history[0]
	for i := range w.history {
		if !w.history[i].at.After(time.Now().Add(-lag)) {
			at = &w.history[i]
		}
	}
	return at
}

func (w *memoryServer) document(req *http.Request, class string) *http.Response {
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}, Items: []apidiscovery.APIGroupDiscovery{}}
	for _, g := range w.view().groups {
		if (g.Name == "") == (class == "core") {
			list.Items = append(list.Items, g)
		}
	}
	var res *http.Response
	asJSON, _ := json.Marshal(&list)
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256(asJSON))
	switch {
	case w.legacy:
		var body []byte
		if class == "core" {
			body, _ = json.Marshal(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		} else {
			doc := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{}}
			for _, g := range list.Items {
				out := metav1.APIGroup{Name: g.Name}
				for _, v := range g.Versions {
					out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Version, Version: v.Version})
				}
				out.PreferredVersion = out.Versions[0]
				doc.Groups = append(doc.Groups, out)
			}
			body, _ = json.Marshal(doc)
		}
		return w.finish(answer(req, 200, "application/json", body))
	case !w.noETag && req.Header.Get("If-None-Match") == etag:
		w.unchanged++
		res = answer(req, 304, "", nil)
	case w.asJSON || !strings.Contains(req.Header.Get("Accept"), "protobuf"):
		res = answer(req, 200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", asJSON)
	default:
		raw, err := list.Marshal()
		if err != nil {
			panic(err)
		}
		env := runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: list.Kind, APIVersion: list.APIVersion}, Raw: raw}
		body, _ := env.Marshal()
		res = answer(req, 200, "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", append([]byte("k8s\x00"), body...))
	}
	if !w.noETag {
		res.Header.Set("ETag", etag)
	}
	return w.finish(res)
}

func (w *memoryServer) finish(res *http.Response) *http.Response {
	if !w.noDate {
		res.Header.Set("Date", w.now().UTC().Format(http.TimeFormat))
	}
	return res
}

func (w *memoryServer) version(req *http.Request) *http.Response {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var group, v string
	if path[0] == "api" {
		v = path[1]
	} else {
		group, v = path[1], path[2]
	}
	for _, g := range w.view().groups {
		for _, ver := range g.Versions {
			if g.Name != group || ver.Version != v {
				continue
			}
			if ver.Freshness == apidiscovery.DiscoveryFreshnessStale {
				return statusAnswer(req, 503, "ServiceUnavailable")
			}
			out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.TrimPrefix(group+"/"+v, "/"), APIResources: []metav1.APIResource{}}
			for _, r := range ver.Resources {
				out.APIResources = append(out.APIResources, metav1.APIResource{Name: r.Resource, SingularName: r.SingularResource, Kind: r.ResponseKind.Kind, Namespaced: r.Scope == apidiscovery.ScopeNamespace, Verbs: r.Verbs})
			}
			body, _ := json.Marshal(out)
			return answer(req, 200, "application/json", body)
		}
	}
	return answer(req, 404, "text/plain", []byte("404 page not found"))
}

// endWatches ends all watches. With expire, they can't continue.
func (w *memoryServer) endWatches(c *objectStore, expire bool) {
	if expire {
		c.min = w.rv
		w.rv++
	}
	for s := range c.streams {
		if expire {
			s.frames <- []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n")
		} else {
			close(s.frames)
			delete(c.streams, s)
		}
	}
}

// delayEvents makes the open watches of c stand still until the returned function is called.
func (w *memoryServer) delayEvents(c *objectStore) (caughtUp func()) {
	streams, seen := maps.Clone(c.streams), len(c.log)
	clear(c.streams)
	return func() {
		for s := range streams {
			for _, f := range c.log[seen:] {
				s.frames <- f.line
			}
			c.streams[s] = true
		}
	}
}

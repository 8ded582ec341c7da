package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/redirect"
)

// metadataWatch lists and watches the metadata of all objects of one resource, with client-go's metadata
// client and reflector. It has the back-off, and handles 403 and 404, since the reflector would repeat
// every request.
//
// It is the reflector's store. Run makes all callbacks, one at a time.
type metadataWatch struct {
	getter   metadata.Getter
	endpoint *endpoint
	path     string
	name     string // of the only object that is watched; empty: all objects are
	pace     watchPace
	jitter   jitter

	before func(ctx context.Context) // called before a watch is opened; may wait

	list  func(list metaList)                             // a complete list
	event func(kind watch.EventType, item *slimMeta)      // Added, Modified or Deleted
	state func(state SourceState, verb string, err error) // called with the result of each attempt
	// served reports whether there is evidence that the server has the resource; nil: there is none.
	served func() bool

	// Only run and its reflector use the fields below.
	backoff wait.Backoff               // since the last watch that was steady
	denial  wait.Backoff               // after watches that are forbidden and requests that are not authorized, since the last watch that was steady
	refusal wait.Backoff               // after lists that are forbidden, since the last list that succeeded
	absence wait.Backoff               // after lists that are not found, since the last list that succeeded
	asked   time.Time                  // when the last list was requested
	filled  bool                       // the last list was not empty; before the first list: objects are known
	opened  time.Time                  // the start of the watch; zero: there was none since the last list
	until   time.Time                  // when the server ends the watch
	stop    func()                     // ends the watch
	failed  atomic.Pointer[watchError] // of the last request, or of an event of the watch
}

// metaList is a complete list.
type metaList struct {
	items   []*slimMeta
	version string
	asked   time.Time // when its first page was requested
}

// watchPace has the intervals of a metadataWatch. They have jitter, so that many processes do not send
// their requests at the same time.
type watchPace struct {
	first, last time.Duration // the back-off doubles from first to last
	// denied is the first pause after a request that is not found, forbidden or not authorized: the server may be about to start, or
	// the permission about to be granted. The pause doubles up to one of the next three.
	denied  time.Duration
	absent  time.Duration // after a list of a resource that the server does not have
	refused time.Duration // after a list that is forbidden
	other   time.Duration // after a watch that is forbidden, before the next list, or a request that is not authorized
	steady  time.Duration // a shorter watch is a failure, also if it had events
	page    time.Duration // the timeout of a page of a list, and of the start of a watch
}

var usualWatchPace = watchPace{
	first: 200 * time.Millisecond, last: 30 * time.Second,
	denied: 2 * time.Second, absent: time.Minute, refused: 5 * time.Minute, other: 30 * time.Second,
	steady: 5 * time.Second, page: 90 * time.Second,
}

// watchError is the error of a request. It does not unwrap: after some errors the reflector would wait
// itself, and this wait can't be ended early.
type watchError struct {
	verb string
	err  error
}

// newWatchError returns the error of a request, whose text may have a body.
func newWatchError(verb string, err error) *watchError {
	return &watchError{verb: verb, err: errtext.Clean(err)}
}

func (e *watchError) Error() string { return e.err.Error() }

var (
	// errNotMetadata is the error of an invalid response. The metadata client accepts any JSON as a
	// list of objects.
	errNotMetadata = errors.New("the response is not metadata")
	// errEndedAtOnce is the error of a watch that was not steady.
	errEndedAtOnce = errors.New("the server ended the watch at once")
	// errOverdue is the error of a watch without a response.
	errOverdue = errors.New("the server did not respond in time")
	// errRewound is the error of a watch that would be silent: the server does not have its resourceVersion (kubernetes#107457).
	errRewound = errors.New("the server's resourceVersion has gone back, as after a restore of etcd")
)

// newMetadataClient returns client-go's client for metadata. Its requests count as requests of the
// endpoint, and obey the endpoint's pauses.
func newMetadataClient(cfg *rest.Config, client *http.Client, e *endpoint) (metadata.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.RateLimiter == nil {
		cfg.QPS = -1 // no limit, as for the endpoint's own requests
	}
	shared := *client
	shared.Transport = watchTransport{endpoint: e, next: client.Transport}
	return metadata.NewForConfigAndClient(cfg, &shared)
}

// watchTransport is the transport of the metadata client.
type watchTransport struct {
	endpoint *endpoint
	next     http.RoundTripper // nil: the default one
}

// RoundTrip implements http.RoundTripper.
func (t watchTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(req.URL.Path, strings.TrimSuffix(t.endpoint.base.Path, "/"))
	if err := t.endpoint.pauses.of(path); err != nil {
		return nil, err
	}
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	t.endpoint.sent.Add(1)
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, endAttempt(req, err)
	}
	if redirect.Is(res) {
		return res, nil
	}
	if res.Body == nil { // a transport of the program may return none, and http.Client adds one only later
		res.Body = http.NoBody
	}
	if res.StatusCode < http.StatusBadRequest {
		if err := checkMetadata(res, req.URL.Query().Get("watch") != ""); err != nil {
			return nil, endAttempt(req, err) // the client would also repeat a request whose response breaks off
		}
		return res, nil
	}
	// The client would wait for Retry-After up to ten times, and its error would have the whole body.
	res.Request = req
	fault := faultOf(res)
	_ = res.Body.Close()
	if _, wanted := apierrors.SuggestsClientDelay(fault); wanted {
		t.endpoint.pauses.settle(path, fault)
	}
	status := fault.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"} // the client would ignore the message of another object
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	res.Header = http.Header{"Content-Type": {"application/json"}}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}

// attempt is the key of a context's cancel function.
type attempt struct{}

// newAttempt returns a context for one request of the metadata client, which ends when the transport
// fails. Otherwise the client would hide the error, repeat the request up to ten times, and at last
// return a watch without events.
func newAttempt(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	return context.WithValue(ctx, attempt{}, end), end
}

// endAttempt ends the context of req with err, and returns err.
func endAttempt(req *http.Request, err error) error {
	if end, is := req.Context().Value(attempt{}).(context.CancelCauseFunc); is {
		end(err)
	}
	return err
}

// checkMetadata returns an error if res is JSON and not a list of metadata. The metadata client accepts a
// list of any objects in JSON, but not in protobuf, which servers send.
func checkMetadata(res *http.Response, watches bool) error {
	switch media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); { // it may be missing
	case media == "application/vnd.kubernetes.protobuf", watches && media == "application/json":
		return nil
	case media != "application/json":
		_ = res.Body.Close()
		return fmt.Errorf("%w: content type %q", errNotMetadata, res.Header.Get("Content-Type"))
	}
	body, err := read(res)
	_ = res.Body.Close()
	if err != nil {
		return err
	}
	var list struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(body, &list); err != nil || list.Kind != "PartialObjectMetadataList" {
		return errNotMetadata
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// run lists and watches until ctx ends. There are no callbacks after it has returned. It is called once.
func (w *metadataWatch) run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(listWatch{&cache.ListWatch{
		ListWithContextFunc: w.listPage, WatchFuncWithContext: w.open,
	}}, &metav1.PartialObjectMetadata{}, w, cache.ReflectorOptions{Name: "discovery", TypeDescription: w.path})
	quiet := klog.NewContext(ctx, klog.Logger{}) // state reports the outcome
	w.resetBackoff()
	w.permitted()
	for ctx.Err() == nil {
		w.failed.Store(nil)
		w.opened = time.Time{}
		err := reflector.ListAndWatchWithContext(quiet)
		if ctx.Err() == nil {
			w.settle(ctx, err)
		}
	}
}

// listWatch is a ListWatch for which the reflector does not send a watch-list: it would wait forever for a
// server that does not end the initial events.
type listWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is called by the reflector.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// listPage requests a page of the list.
func (w *metadataWatch) listPage(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, w.pace.page)
	defer cancel()
	asked, end := newAttempt(ctx)
	defer end(nil)
	if opts.Continue == "" {
		w.asked = time.Now()
	}
	opts.ResourceVersion = "" // the list of a server that is behind has deleted objects, and one that was restored waits for a later version for seconds
	w.selectName(&opts)
	page, err := w.getter.List(asked, opts)
	switch {
	case asked.Err() != nil && ctx.Err() == nil:
		err = context.Cause(asked)
	case err != nil:
	case page.ResourceVersion == "":
		err = errNotMetadata
	case page.Continue != "" && page.Continue == opts.Continue:
		err = errors.New("the list does not end: a page refers to itself as the next one")
	}
	for i := 0; err == nil && i < len(page.Items); i++ {
		err = checkNamed(page.Items[i].Name, page.Items[i].UID)
	}
	if err != nil {
		w.failed.Store(newWatchError("list", err))
		return nil, err
	}
	w.failed.Store(nil)
	w.endpoint.recovery.succeeded(w.path)
	w.permitted()
	return page, nil
}

// checkNamed returns an error if an object has no name or no UID.
func checkNamed(name string, uid types.UID) error {
	if name == "" || uid == "" {
		return fmt.Errorf("%w: an object without name or UID (name %q, UID %q)", errNotMetadata, name, uid)
	}
	return nil
}

// selectName limits a request to the object that is watched.
func (w *metadataWatch) selectName(opts *metav1.ListOptions) {
	if w.name != "" {
		opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.name).String()
	}
}

// overdueAfter is how long a watch may last after its timeout. Then its connection hangs.
const overdueAfter = 30 * time.Second

// open opens the watch. A watch without a response, or which the server does not end in time, is ended.
// After a watch that was not steady, there is a back-off and a list first.
func (w *metadataWatch) open(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	switch failed := w.failed.Load(); {
	case failed != nil: // an invalid event, and the watch ended as if it had worked
		return nil, failed
	case w.steady():
		w.resetBackoff()
		if err := w.compare(ctx, opts.ResourceVersion); err != nil {
			return nil, w.refuse(err)
		}
	case !w.opened.IsZero():
		return nil, w.refuse(errEndedAtOnce)
	}
	w.before(ctx)
	w.selectName(&opts)
	asked, end := newAttempt(ctx)
	timer := time.AfterFunc(w.pace.page, func() { end(errOverdue) })
	watching, err := w.getter.Watch(asked, opts)
	if !timer.Stop() {
		end(errOverdue)
	}
	if asked.Err() != nil && ctx.Err() == nil {
		if err == nil {
			watching.Stop()
		}
		err = context.Cause(asked)
	}
	if err != nil {
		end(nil)
		return nil, w.refuse(err)
	}
	w.failed.Store(nil)
	w.opened, w.until = time.Now(), time.Time{}
	w.state(SourceCurrent, "", nil)
	bounded := &boundedWatch{Interface: watching, end: func() { end(nil) }}
	if seconds := opts.TimeoutSeconds; seconds != nil {
		w.until = w.opened.Add(time.Duration(*seconds) * time.Second)
		overdue := time.AfterFunc(time.Duration(*seconds)*time.Second+overdueAfter, bounded.end)
		bounded.end = func() { overdue.Stop(); end(nil) }
	}
	w.stop = bounded.end
	return bounded, nil
}

// compare returns an error if the server's version is below version, up to which the watch that has ended had everything. It sends a
// request only after a watch that the server has ended early, as it does when it stops: if etcd was restored meanwhile, another watch
// would be silent. After a failed watch, a list follows.
func (w *metadataWatch) compare(ctx context.Context, version string) error {
	if time.Until(w.until) < time.Second {
		return nil
	}
	opts := metav1.ListOptions{Limit: 1}
	w.selectName(&opts)
	ctx, cancel := context.WithTimeout(ctx, w.pace.page)
	defer cancel()
	asked, end := newAttempt(ctx)
	defer end(nil)
	page, err := w.getter.List(asked, opts)
	switch {
	case asked.Err() != nil:
		return context.Cause(asked)
	case err != nil:
		return err
	}
	if isBefore(page.ResourceVersion, version) {
		return errRewound
	}
	return nil
}

// refuse stores and returns the error of a watch.
func (w *metadataWatch) refuse(err error) error {
	failed := newWatchError("watch", err)
	w.failed.Store(failed)
	return failed
}

// steady reports whether the watch that has just ended had lasted for long enough.
func (w *metadataWatch) steady() bool {
	return !w.opened.IsZero() && time.Since(w.opened) >= w.pace.steady
}

// resetBackoff ends the back-offs of watches: the next failure is the first.
func (w *metadataWatch) resetBackoff() {
	w.backoff, w.denial = newBackoff(w.pace.first, w.pace.last), newBackoff(w.pace.denied, w.pace.other)
}

// permitted ends the back-offs of lists that are forbidden or not found: the next refusal is the first.
func (w *metadataWatch) permitted() {
	w.refusal, w.absence = newBackoff(w.pace.denied, w.pace.refused), newBackoff(w.pace.denied, w.pace.absent)
}

// boundedWatch is a watch whose Stop also ends the request.
type boundedWatch struct {
	watch.Interface
	end func()
}

// Stop implements watch.Interface.
func (w *boundedWatch) Stop() {
	w.Interface.Stop()
	w.end()
}

// Replace passes on a complete list. This and the following methods are those of the reflector's store.
func (w *metadataWatch) Replace(objects []any, version string) error {
	items := make([]*slimMeta, 0, len(objects))
	for _, object := range objects {
		if item := metaOf(object); item != nil {
			items = append(items, item)
		}
	}
	w.filled = len(items) > 0
	w.list(metaList{items, version, w.asked})
	return nil
}

// Add passes on a new object.
func (w *metadataWatch) Add(object any) error { return w.take(watch.Added, object) }

// Update passes on a changed object.
func (w *metadataWatch) Update(object any) error { return w.take(watch.Modified, object) }

// Delete passes on a deletion.
func (w *metadataWatch) Delete(object any) error { return w.take(watch.Deleted, object) }

// Resync does nothing.
func (w *metadataWatch) Resync() error { return nil }

// take passes an event on. The reflector would skip an event that is not valid. Instead, the watch ends, and
// a list follows.
func (w *metadataWatch) take(kind watch.EventType, object any) error {
	item, err := metaOf(object), errNotMetadata
	if item != nil {
		err = checkNamed(item.Name, item.UID)
	}
	switch {
	case w.failed.Load() != nil: // the list has this event too
	case err != nil:
		w.failed.Store(newWatchError("watch", err))
		w.stop()
	default:
		w.event(kind, item)
	}
	return nil
}

// metaOf returns the stored part of an object's metadata. It does not have the annotations, in which a CRD
// may have a copy of its schemas.
func metaOf(object any) *slimMeta {
	in, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	item := &slimMeta{
		Name: in.Name, UID: in.UID, ResourceVersion: in.ResourceVersion, Generation: in.Generation,
		Labels: in.Labels, DeletionTimestamp: in.DeletionTimestamp,
		created: in.CreationTimestamp.Time, touched: in.CreationTimestamp.Time,
	}
	for i := range in.ManagedFields {
		if at := in.ManagedFields[i].Time; at != nil && at.After(item.touched) {
			item.touched = at.Time
		}
	}
	return item
}

// settle reports the result of an attempt, and waits until the next one.
func (w *metadataWatch) settle(ctx context.Context, err error) {
	steady := w.steady()
	if steady {
		w.resetBackoff()
	}
	failed := w.failed.Load()
	switch {
	case failed != nil:
	case err != nil:
		failed = newWatchError("list", err)
	case steady: // the end of a watch that worked is not a failure
		sleep(ctx, spread(w.pace.first, 0.5, w.jitter), nil)
		return
	default:
		failed = newWatchError("watch", errEndedAtOnce)
	}
	cause := failed.err
	switch {
	case apierrors.IsForbidden(cause), apierrors.IsUnauthorized(cause):
		w.state(SourceForbidden, failed.verb, cause)
		backoff := &w.denial
		if apierrors.IsForbidden(cause) && failed.verb == "list" {
			backoff = &w.refusal
		}
		sleep(ctx, spread(backoff.Step(), 0.1, w.jitter), nil)
	case failed.verb == "list" && apierrors.IsNotFound(cause) && !w.filled && (w.served == nil || !w.served()):
		// Otherwise the 404 is of a wrong server, or of one that starts.
		w.state(SourceAbsent, failed.verb, cause)
		sleep(ctx, spread(w.absence.Step(), 0.1, w.jitter), nil)
	default:
		healed := w.endpoint.recovery.waiting()
		if failed.verb == "list" {
			healed = w.endpoint.recovery.failed(w.path)
		}
		w.state(SourceFailing, failed.verb, cause)
		delay := spread(w.backoff.Step(), 0.5, w.jitter)
		if paused, is := errors.AsType[*pauseError](w.endpoint.pauses.of(w.path)); is {
			delay, healed = w.jitter(max(time.Until(paused.until), 0), 0.1), nil
		}
		sleep(ctx, delay, healed)
	}
}

// jitter returns a duration from d to d and factor times d, as wait.Jitter does.
type jitter func(d time.Duration, factor float64) time.Duration

// spread returns a duration that differs from d by at most that part of d.
func spread(d time.Duration, part float64, jitter jitter) time.Duration {
	return jitter(time.Duration(float64(d)*(1-part)), 2*part/(1-part))
}

// newBackoff returns a back-off that doubles from first to last.
func newBackoff(first, last time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Steps: 10, Cap: last}
}

// sleep returns after d, or when ctx ends or early is closed. It reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-early:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// The resources that a run watches.
var (
	crdResource        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServiceResource = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

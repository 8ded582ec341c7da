package discovery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// The paths of the root documents.
const (
	corePath  = "/api"
	namedPath = "/apis"
)

// acceptAggregated requests the aggregated format, which has all resources, in its versions v2 and
// v2beta1, which differ only in their names. A server without aggregated discovery responds in the
// legacy format. Protobuf is half as long as JSON and is decoded faster.
const (
	acceptAggregated = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," + acceptLegacy
	acceptLegacy = "application/json"
)

// restServer is the server over HTTP.
type restServer struct {
	endpoint *endpoint
	metadata metadata.Interface
}

func (s *restServer) failed() <-chan struct{} { return s.endpoint.recovery.failed(namedPath) }

func (s *restServer) requests() uint64 { return s.endpoint.sent.Load() }

func (s *restServer) everything(ctx context.Context, previous *document) (*document, error) {
	if previous == nil {
		previous = &document{}
	}
	var (
		doc  document
		wg   sync.WaitGroup
		core root
	)
	wg.Go(func() { core = s.root(ctx, corePath, previous.core, parseCore) })
	doc.named = s.root(ctx, namedPath, previous.named, parseGroups)
	wg.Wait()
	doc.core = core
	return doc.after(previous)
}

// named requests only the named groups. The resources of the core group do not change while a server
// runs.
func (s *restServer) named(ctx context.Context, previous *document) (*document, error) {
	if previous == nil || previous.core.err != nil || len(previous.core.groups) == 0 {
		return s.everything(ctx, previous)
	}
	doc := document{core: previous.core, named: s.root(ctx, namedPath, previous.named, parseGroups)}
	if doc.named.err != nil && len(doc.named.groups) == 0 {
		return nil, doc.named.err
	}
	return doc.after(previous)
}

// after returns the document after previous: previous itself if nothing has changed, and an error if
// both roots failed.
func (d document) after(previous *document) (*document, error) {
	switch doc := d; {
	case doc.core.err != nil && doc.named.err != nil:
		return nil, joined(doc.core.err, doc.named.err)
	case doc.core.err == nil && doc.named.err == nil && len(doc.core.groups)+len(doc.named.groups) == 0:
		return nil, errNoGroups
	case doc.core.same(previous.core) && doc.named.same(previous.named):
		return previous, nil
	default:
		return doc.withLastKnown(previous), nil
	}
}

// joined returns a and b as one error, or the one that is not nil.
func joined(a, b error) error {
	if a != nil && b != nil {
		return &causesError{[]error{a, b}}
	}
	return cmp.Or(a, b)
}

// same reports whether r is the same response as previous.
func (r root) same(previous root) bool {
	return r.err == nil && previous.err == nil && r.etag != "" && r.etag == previous.etag
}

// root requests the document of one root. If a server does not have the path, it serves nothing there,
// unless it had the path before.
func (s *restServer) root(ctx context.Context, path string, previous root, parse func([]byte) ([]groupDoc, error)) root {
	r, err := s.ask(ctx, path, acceptAggregated, previous, parse)
	if errors.Is(err, errOtherFormat) || apierrors.IsNotAcceptable(err) {
		r, err = s.ask(ctx, path, acceptLegacy, previous, parse)
	}
	err = errtext.Clean(err) // a name or a time of the document may be long
	s.endpoint.pauses.settle(path, err)
	switch {
	case apierrors.IsNotFound(err) && len(previous.groups) == 0:
		return root{}
	case err != nil && r.groups == nil:
		return root{err: &askedError{at: time.Now(), err: err}, legacy: previous.legacy}
	case err != nil:
		r.err, r.etag = &askedError{at: time.Now(), err: err}, ""
	}
	if r.legacy {
		fill(ctx, r.groups, s.groupVersion)
	}
	return r
}

// ask requests the document of one root in the formats of accept. The server responds in one of them,
// or in another format if it supports none.
func (s *restServer) ask(ctx context.Context, path, accept string, previous root, parse func([]byte) ([]groupDoc, error)) (root, error) {
	header := http.Header{"Accept": {accept}}
	if strings.HasPrefix(previous.etag, `"`) {
		header.Set("If-None-Match", previous.etag)
	}
	res, err := s.endpoint.get(ctx, path, header)
	if err != nil {
		return root{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if res.StatusCode == http.StatusNotModified {
		if previous.etag == "" {
			return root{}, fmt.Errorf("GET %s: %w: not modified, but no document is known", path, errNoList)
		}
		return previous, nil
	}
	date, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		date = time.Now()
	}
	format := formatOf(res.Header.Get("Content-Type"))
	if format == formatOther {
		return root{}, fmt.Errorf("GET %s: %w: %s", path, errOtherFormat, res.Header.Get("Content-Type"))
	}
	body, err := read(res)
	if err != nil {
		return root{}, err
	}
	if format == formatLegacy {
		groups, err := parse(body)
		return readRoot(path, root{legacy: true, date: date}, groups, err)
	}
	etag := res.Header.Get("ETag")
	if !strings.HasPrefix(etag, `"`) {
		etag = fmt.Sprintf("sha256:%x", sha256.Sum256(body))
	}
	if etag == previous.etag && previous.err == nil {
		return previous, nil
	}
	var groups []groupDoc
	if format == formatProtobuf {
		groups, err = parseProtobuf(body, previous.groups)
	} else {
		groups, err = parseAggregated(body)
	}
	return readRoot(path, root{etag: etag, date: date}, groups, err)
}

// readRoot adds the groups that belong below path to r. It may return groups and an error.
func readRoot(path string, r root, groups []groupDoc, err error) (root, error) {
	belonging := groupList{groups: groups, err: err}
	belonging.ofRoot(path)
	r.groups = belonging.groups
	if belonging.err != nil {
		return r, fmt.Errorf("GET %s: %w", path, belonging.err)
	}
	return r, nil
}

func (s *restServer) groupVersion(ctx context.Context, gv schema.GroupVersion) (versionDoc, error) {
	path := namedPath + "/" + gv.String()
	if gv.Group == "" {
		path = corePath + "/" + gv.Version
	}
	body, err := s.fetch(ctx, path, acceptLegacy)
	var version versionDoc
	if err == nil {
		if version, err = parseList(gv, body); err != nil {
			err = fmt.Errorf("GET %s: %w", path, err)
		}
	}
	err = errtext.Clean(err)
	s.endpoint.pauses.settle(path, err)
	return version, err
}

// fetch returns the body of a response in one of the formats of accept.
func (s *restServer) fetch(ctx context.Context, path, accept string) ([]byte, error) {
	res, err := s.endpoint.get(ctx, path, http.Header{"Accept": {accept}})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	return read(res)
}

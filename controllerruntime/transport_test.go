package controllerruntime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// transport responds to HTTP requests from a cluster, without sockets: controller-runtime's cache needs an HTTP client.
type transport struct {
	*fakecluster.Cluster
	seen *sync.Map // the path and the selectors of each list and watch
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	body, err := t.respond(ctx, req)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if stream, is := body.(*stream); is {
		return response(req, http.StatusOK, stream), nil
	}
	code := http.StatusOK
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		of := status.Status()
		of.Kind, of.APIVersion = "Status", "v1"
		body, code = of, int(of.Code)
	} else if err != nil {
		return nil, err
	}
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return response(req, code, io.NopCloser(bytes.NewReader(content))), nil
}

func response(req *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: req, Body: body, Header: http.Header{"Content-Type": {"application/json"}},
	}
}

// respond returns the value of a response: a stream for a watch.
func (t transport) respond(ctx context.Context, req *http.Request) (any, error) {
	path := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if path[0] == "api" && len(path) > 1 {
		path = append([]string{"apis", ""}, path[1:]...)
	}
	switch {
	case len(path) == 1:
		return t.groups(ctx, path[0] == "api")
	case len(path) == 2:
		return t.group(ctx, path[1])
	case len(path) == 3:
		list, err := t.discovery().ServerResourcesForGroupVersionWithContext(ctx, schema.GroupVersion{Group: path[1], Version: path[2]}.String())
		if err == nil {
			list.Kind, list.APIVersion = "APIResourceList", "v1"
		}
		return list, err
	}
	gvr, namespace := schema.GroupVersionResource{Group: path[1], Version: path[2], Resource: path[len(path)-1]}, ""
	if len(path) == 6 {
		namespace = path[4]
	}
	if strings.HasSuffix(gvr.Group, ".k8s.io") {
		return nil, apierrors.NewForbidden(gvr.GroupResource(), "", errors.New("no permission"))
	}
	return t.objects(ctx, t.Resource(gvr).Namespace(namespace), req.URL.Path, req.URL.Query(), strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata"))
}

func (t transport) objects(ctx context.Context, from dynamic.ResourceInterface, path string, query url.Values, metadata bool) (any, error) {
	var opts metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &opts, nil); err != nil {
		return nil, err
	}
	t.seen.Store(fmt.Sprintf("%s %q %q", path, opts.LabelSelector, opts.FieldSelector), true)
	if opts.Watch {
		events, err := from.Watch(ctx, opts)
		if err != nil {
			return nil, err
		}
		return &stream{ctx: ctx, events: events, metadata: metadata, closed: make(chan struct{})}, nil
	}
	list, err := from.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	content := list.UnstructuredContent()
	if !metadata {
		return content, nil
	}
	for n, item := range content["items"].([]any) {
		content["items"].([]any)[n] = partial(item.(map[string]any))
	}
	content["kind"], content["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	return content, nil
}

func partial(object map[string]any) map[string]any {
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]}
}

func (t transport) groups(ctx context.Context, legacy bool) (any, error) {
	groups, err := t.discovery().ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, err
	}
	if !legacy {
		groups.Kind, groups.APIVersion = "APIGroupList", "v1"
		kept := groups.Groups[:0]
		for _, group := range groups.Groups {
			if group.Name != "" {
				kept = append(kept, group)
			}
		}
		groups.Groups = kept
		return groups, nil
	}
	versions := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{}}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if group.Name == "" {
				versions.Versions = append(versions.Versions, version.Version)
			}
		}
	}
	return versions, nil
}

func (t transport) group(ctx context.Context, name string) (any, error) {
	groups, err := t.discovery().ServerGroupsWithContext(ctx)
	if err != nil {
		return nil, err
	}
	for _, group := range groups.Groups {
		if group.Name == name {
			group.Kind, group.APIVersion = "APIGroup", "v1"
			return group, nil
		}
	}
	return nil, apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
}

// stream is the body of a watch.
type stream struct {
	ctx      context.Context //nolint:containedctx // of the request
	events   apiwatch.Interface
	metadata bool
	left     []byte
	closed   chan struct{}
	once     sync.Once
}

// Read implements io.Reader. The end of the context ends the stream without an error.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		select {
		case event, open := <-s.events.ResultChan():
			if !open {
				return 0, io.EOF
			}
			frame, err := s.frame(event)
			if err != nil {
				return 0, err
			}
			s.left = append(frame, '\n')
		case <-s.closed:
			return 0, io.EOF
		case <-s.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *stream) frame(event apiwatch.Event) ([]byte, error) {
	var object any = event.Object
	if tree, is := event.Object.(*unstructured.Unstructured); is {
		object = tree.Object
		if s.metadata {
			object = partial(tree.Object)
		}
	}
	if status, is := event.Object.(*metav1.Status); is {
		status.Kind, status.APIVersion = "Status", "v1"
	}
	return json.Marshal(map[string]any{"type": event.Type, "object": object})
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.events.Stop()
	})
	return nil
}

// discovery returns a discovery client with contexts.
func (t transport) discovery() clientdiscovery.DiscoveryInterfaceWithContext {
	return t.Discovery().(clientdiscovery.DiscoveryInterfaceWithContext)
}

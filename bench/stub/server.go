// Package stub is an API server that responds with prepared JSON, so that a benchmark of clients
// does not wait for the server. It serves the objects of one kind, with lists, pages, watches and
// initial events, in JSON or, as kube-apiserver, only their metadata in protobuf. It keeps the events
// of the last [Client.Change]: an earlier watch or page gets 410. It may serve the same objects as those of several kinds.
//
// It has no discovery, selectors, lists of one namespace, writes, permissions, compression or TLS.
package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/process"
)

// Role is the role of a process that runs a [Server].
const Role = "stub"

// eventsPath is the path of [Client.Change], without the number.
const eventsPath = "/bench/events/"

// Config is the number and the kind of a server's objects.
type Config struct {
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	// Kinds is the number of kinds that have these objects; zero: one. See [KindNumber].
	Kinds int `json:"kinds,omitempty"`
}

// KindNumber returns a kind of a server with several ones, with its name and resource. Number 0 is kind itself.
func KindNumber(kind objects.Kind, number int) objects.Kind {
	if number > 0 {
		kind.GVK.Kind += strconv.Itoa(number)
		kind.GVR.Resource += strconv.Itoa(number)
	}
	return kind
}

// Server is the handler.
type Server struct {
	http.ServeMux

	kind objects.Kind

	// mu guards the fields below. It is never held while writing to a client.
	mu      sync.Mutex
	version int64 // of the last change
	items   []*item
	events  []*item       // the last changes, whose versions are consecutive
	more    chan struct{} // is closed after the next change
}

// New returns a server.
func New(ctx context.Context, config Config) (*Server, error) {
	kind, err := harness.Find(objects.All(), config.Kind, func(k objects.Kind) string { return k.Name })
	if err != nil {
		return nil, err
	}
	s := &Server{kind: kind, version: objects.Version(config.Objects - 1), more: make(chan struct{})}
	for i := range config.Objects {
		text, err := json.Marshal(kind.Object(i))
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		s.items = append(s.items, newItem(text))
	}
	for number := range max(1, config.Kinds) {
		as := KindNumber(kind, number)
		s.HandleFunc("GET /apis/"+as.GVR.GroupVersion().String()+"/"+as.GVR.Resource, func(w http.ResponseWriter, r *http.Request) { s.serve(s.respond(w, r, as.GVK), w, r) })
	}
	s.HandleFunc("POST "+eventsPath+"{number}", s.serveChange)
	return s, nil
}

// serveChange changes the number of objects in the path.
func (s *Server) serveChange(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 0 {
		http.Error(w, "invalid number", http.StatusBadRequest)
		return
	}
	for i := range n {
		s.update(i == 0)
	}
}

// update changes the next object: it sets the version, and increments the generation and the
// counter, if there is one. The first update drops the events of earlier ones.
func (s *Server) update(first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first {
		s.events = nil
	}
	s.version++
	index := int(s.version-objects.Version(0)) % len(s.items)
	// The keys are sorted: generation and resourceVersion of metadata precede all others.
	text, metadata := bytes.Clone(s.items[index].text), *s.items[index].metadata
	copy(text[after(text, bytes.Index, `"resourceVersion":"`):], objects.FormatVersion(s.version))
	text = increment(text, after(text, bytes.LastIndex, `"`+s.kind.Counter+`":`))
	text = increment(text, after(text, bytes.Index, `"generation":`))
	metadata.ResourceVersion = objects.FormatVersion(s.version)
	metadata.Generation++
	s.items[index] = &item{text, &metadata}
	s.events = append(s.events, s.items[index])
	close(s.more)
	s.more = make(chan struct{})
}

// after returns the index of the text after mark, or -1 if mark is not in text.
func after(text []byte, index func(s, sep []byte) int, mark string) int {
	if at := index(text, []byte(mark)); at >= 0 {
		return at + len(mark)
	}
	return -1
}

// increment increments the integer at index at of text, if at is not negative. It may change text.
func increment(text []byte, at int) []byte {
	if at < 0 {
		return text
	}
	end := at
	for '0' <= text[end] && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(text[at:end]), 10, 64)
	if err != nil {
		return text
	}
	return slices.Replace(text, at, end, strconv.AppendInt(nil, n+1, 10)...)
}

// list returns all items and their version.
func (s *Server) list() ([]*item, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items), s.version
}

// since returns the events after a version, and a channel that is closed when there are more. It
// returns false if the server does not have these events.
func (s *Server) since(version int64) (events []*item, more <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.version - version
	if n < 0 || n > int64(len(s.events)) {
		return nil, nil, false
	}
	return s.events[len(s.events)-int(n):], s.more, true
}

// RunProcess serves the configuration that the parent of this process has sent, on a loopback port.
func RunProcess(ctx context.Context) error {
	var config Config
	ctx, err := process.Request(ctx, &config)
	if err != nil {
		return err
	}
	handler, err := New(ctx, config)
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	defer server.CloseClientConnections() // runs before Close
	err = process.Answer(Client{server.URL})
	<-ctx.Done()
	return err
}

// Client is a client of a [Server]: a connection, and requests for changes.
type Client struct {
	Host string `json:"host"`
}

// Config returns a config without a rate limit.
func (c Client) Config() *rest.Config { return &rest.Config{Host: c.Host, QPS: -1} }

// Change makes the server change n objects, one after another. It returns after the last change.
func (c Client) Change(ctx context.Context, n int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s%s%d", c.Host, eventsPath, n), http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("change %d objects: %s: %s", n, res.Status, text))
	}
	return errors.Join(err, res.Body.Close())
}

// Start starts a server in a process of its own, which is killed when ctx ends.
func Start(ctx context.Context, config Config) (c Client, stop func() error, err error) {
	child, err := process.Start(ctx, Role, nil, config)
	if err == nil {
		stop, err = child.Stop, child.Read(&c)
	}
	return c, stop, err
}

// Package stub is an API server that responds with prepared JSON, so that a benchmark of clients
// does not wait for the server. It serves the objects of one kind, with lists, pages, watches and
// initial events. A watch from an earlier version gets 410.
//
// It has no discovery, selectors, lists of one namespace, writes, permissions, compression or TLS.
// [Client.Change] makes changes.
package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/process"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// Role is the role of a process that runs a [Server].
const Role = "stub"

// eventsPath is the path of [Client.Change], without the number.
const eventsPath = "/bench/events/"

// queued is the number of events that can wait for the slowest watch.
const queued = 512

// Config is the number and the kind of a server's objects.
type Config struct {
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
}

// Server is the handler.
type Server struct {
	http.ServeMux

	kind    objects.Kind
	events  *watch.Broadcaster
	watches atomic.Int64

	// mu guards the fields below. It is never held while writing to a client or a watch.
	mu      sync.Mutex
	version int64 // of the last change
	items   []*item
}

// item is the JSON of an object in one version. It never changes.
type item struct {
	runtime.Unknown // a broadcaster requires a runtime.Object

	version int64
}

func newItem(text []byte, version int64) *item { return &item{runtime.Unknown{Raw: text}, version} }

// New returns a server. It runs until Shutdown.
func New(ctx context.Context, config Config) (*Server, error) {
	kind, err := objects.Named(config.Kind)
	if err != nil {
		return nil, err
	}
	s := &Server{
		kind: kind, version: objects.Version(config.Objects - 1),
		events: watch.NewLongQueueBroadcaster(queued, watch.WaitIfChannelFull),
	}
	for i := range config.Objects {
		text, err := json.Marshal(kind.Object(i))
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		s.items = append(s.items, newItem(text, objects.Version(i)))
	}
	s.HandleFunc("GET /apis/"+kind.GVR.GroupVersion().String()+"/"+kind.GVR.Resource, s.serve)
	s.HandleFunc("POST "+eventsPath+"{number}", s.serveChange)
	return s, nil
}

// Shutdown ends all watches.
func (s *Server) Shutdown() { s.events.Shutdown() }

// serveChange changes the number of objects in the path.
func (s *Server) serveChange(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 0 {
		http.Error(w, "invalid number", http.StatusBadRequest)
		return
	}
	for s.watches.Load() == 0 && err == nil {
		err = usage.Sleep(r.Context(), time.Millisecond)
	}
	for range n {
		if err = errors.Join(err, r.Context().Err()); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_ = s.events.Action(watch.Modified, s.update()) // it fails after Shutdown
	}
}

// update changes the next object: it sets the version, and increments the generation and the
// counter, if there is one.
func (s *Server) update() *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	index := int(s.version-objects.Version(0)) % len(s.items)
	// The keys are sorted: generation and resourceVersion of metadata precede all others.
	text := bytes.Clone(s.items[index].Raw)
	copy(text[after(text, bytes.Index, `"resourceVersion":"`):], objects.FormatVersion(s.version))
	text = increment(text, after(text, bytes.LastIndex, `"`+s.kind.Counter+`":`))
	text = increment(text, after(text, bytes.Index, `"generation":`))
	s.items[index] = newItem(text, s.version)
	return s.items[index]
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

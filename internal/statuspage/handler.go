package statuspage

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// Source returns the statuses. It is safe for concurrent use and does not block. Its results belong
// to the caller.
type Source interface {
	// Status returns the statuses of all informers, in any order.
	Status() []status.Informer
	// Explain returns the explanation of the resource with that name. If there is no informer on
	// it, the explanation says so, and found is false.
	Explain(name string) (e status.Explanation, found bool)
}

// Handler serves GET and HEAD. At its mount path it serves the table. One segment below, it serves the
// details of the resource with that name. Other paths are not found.
//
// The parameter resource also selects one resource; state, q and offset select a part of the table;
// format is text, html or json, and replaces the Accept header.
type Handler struct {
	source Source
	tables *answers[*Table]
	pages  *answers[response]
}

// NewHandler returns a handler for the statuses of source.
func NewHandler(source Source) *Handler {
	return &Handler{source: source, tables: newAnswers[*Table](), pages: newAnswers[response]()}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		refuse(http.StatusMethodNotAllowed, "This page is read-only: GET or HEAD.").send(w, r)
		return
	}
	q, err := newQuery(r)
	if err != nil {
		refuse(http.StatusBadRequest, "Bad request: "+err.Error()+".").send(w, r)
		return
	}
	at := placeOf(r)
	if at.unknown || len(at.resource) > resourceAtMost {
		refuse(http.StatusNotFound, "Not found: add the name of a resource, such as pods.v1, to the path of the table.").send(w, r)
		return
	}
	if at.resource != "" && !at.unsure {
		q.base = "./"
	}
	if at.resource != "" && q.resource == "" {
		q.resource, q.unsure, q.base = at.resource, at.unsure, "./"
	}
	found, _, err := h.pages.get(r.Context(), q.key(), func(ctx context.Context) (response, time.Time, error) {
		if q.resource != "" {
			if found, until, err := h.detail(q); !q.unsure || found.code != http.StatusNotFound {
				return found, until, err
			}
			q.resource, q.base = "", ""
		}
		return h.table(ctx, q)
	})
	if err != nil {
		found = refuse(http.StatusServiceUnavailable, "Not available: "+err.Error()+".")
	}
	found.send(w, r)
}

// detail returns the response to q for one resource.
func (h *Handler) detail(q query) (response, time.Time, error) {
	e, found := h.source.Explain(q.resource)
	code := http.StatusOK
	if !found {
		code = http.StatusNotFound
	}
	bound(&e)
	body, err := renderDetail(&e, q)
	return response{code, q.format, body}, time.Now().Add(keep), err
}

// table returns the response to q for the table. It is stored as long as the table.
func (h *Handler) table(ctx context.Context, q query) (response, time.Time, error) {
	whole, until, err := h.tables.get(ctx, "", func(context.Context) (*Table, time.Time, error) {
		t := newTable(h.source.Status(), time.Now())
		return t, time.Now().Add(keep), nil
	})
	if err != nil {
		return response{}, time.Time{}, err
	}
	body, err := renderTable(whole.cut(q), q)
	return response{http.StatusOK, q.format, body}, until, err
}

// response is the response to any number of equal requests. Its body is read-only.
type response struct {
	code   int
	format format
	body   []byte
}

// refuse returns a response of one line.
func refuse(code int, line string) response { return response{code, asText, []byte(line + "\n")} }

// send writes the response, without the body for HEAD. It takes as long as the client reads.
func (r response) send(w http.ResponseWriter, to *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(r.body)))
	header.Set("Content-Security-Policy", policy)
	header.Set("Content-Type", r.format.contentType())
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Vary", "Accept")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.code)
	if to.Method != http.MethodHead {
		_, _ = w.Write(r.body) // an error means that the client has gone
	}
}

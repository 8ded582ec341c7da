package statuspage

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// Source is where the statuses come from. It is safe for concurrent use and does not block. What it
// returns belongs to the caller.
type Source interface {
	// Status returns the statuses of all informers, in any order.
	Status() []status.Informer
	// Explain returns the explanation of the resource of that name. Found is false if there is no
	// informer on it; the explanation says so.
	Explain(name string) (e status.Explanation, found bool)
}

// Handler answers GET and HEAD. At the path that it is mounted at is the table, and one
// segment below it the resource of that name in detail; other paths are not found.
//
// The parameter resource selects one resource too; state, q and offset select a part of the table;
// and format, which is text, html or json, takes the place of the Accept header.
type Handler struct {
	source Source
	tables answers[*Table]
	pages  answers[response]
}

// NewHandler returns a handler that shows the statuses of source.
func NewHandler(source Source) *Handler { return &Handler{source: source} }

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
	if at.unknown {
		refuse(http.StatusNotFound, "Not found: the page has a table, and one segment below it each resource, such as pods.v1.").send(w, r)
		return
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

// detail answers q about one resource.
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

// table answers q about all. It is good for as long as the table that it is of.
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

// response is an answer to any number of equal requests. Its body is read-only.
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
	if to.Method == http.MethodGet {
		_, _ = w.Write(r.body) // an error means that the client has gone
	}
}

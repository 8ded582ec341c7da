package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aggregatedFormat is how a client asks for a document that tells everything.
const aggregatedFormat = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveDocument answers what is served below a path.
func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	if whole, ok := d.aggregated[r.URL.Path]; ok {
		w.Header().Set("Vary", "Accept")
		if strings.Contains(r.Header.Get("Accept"), aggregatedFormat) {
			w.Header().Set("ETag", whole.etag)
			if r.Header.Get("If-None-Match") == whole.etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", "application/json;"+aggregatedFormat)
			_, _ = w.Write(whole.body) // the client has gone, if that fails
			return
		}
	}
	body, found := d.legacy[r.URL.Path]
	if !found {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client has gone, if that fails
}

// serveOne answers a request for the object whose name is in the path.
func (c *collection) serveOne(w http.ResponseWriter, r *http.Request) {
	items, _, _, _ := c.page(0, 0, 0) // version 0 has not passed
	for _, item := range items {
		if item.name == r.PathValue("name") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(item.texts[formOf(r)]) // the client has gone, if that fails
			return
		}
	}
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no such object")
}

// formOf returns the form that a client asks for. Clients that ask for metadata want it
// rather in protobuf, and take JSON.
func formOf(r *http.Request) form {
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return metadata
	}
	return whole
}

// serve answers a list or a watch.
func (c *collection) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if watching, _ := strconv.ParseBool(q.Get("watch")); watching {
		c.serveWatch(w, r, q)
		return
	}
	limit, err := number(q, "limit")
	var version, offset int
	if token := q.Get("continue"); err == nil && token != "" {
		_, err = fmt.Sscanf(token, "%d.%d", &version, &offset)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	items, present, left, err := c.page(version, offset, limit)
	if err != nil {
		fail(w, http.StatusGone, metav1.StatusReasonExpired, err.Error())
		return
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(present)}
	if left > 0 {
		meta.Continue = fmt.Sprintf("%d.%d", present, offset+len(items))
	}
	text, _ := json.Marshal(meta) // it has texts only
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	form, kind, groupVersion := formOf(r), c.kind, c.groupVersion
	if form == metadata {
		kind, groupVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	fmt.Fprintf(out, `{"kind":"%sList","apiVersion":%q,"metadata":%s,"items":[`, kind, groupVersion, text)
	for i, item := range items {
		if i > 0 {
			_ = out.WriteByte(',') // Flush returns the first error
		}
		_, _ = out.Write(item.texts[form])
	}
	fmt.Fprint(out, "]}\n")
	_ = out.Flush() // the client has gone, if that fails
}

// serveWatch sends the events since a version until the client has enough.
func (c *collection) serveWatch(w http.ResponseWriter, r *http.Request, q url.Values) {
	version, err := number(q, "resourceVersion")
	seconds, err2 := number(q, "timeoutSeconds")
	if err != nil || err2 != nil || version == 0 {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "this server watches from a version only")
		return
	}
	ctx := r.Context()
	if seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	w.Header().Set("Content-Type", "application/json")
	flush := http.NewResponseController(w).Flush
	for err := flush(); err == nil; {
		events, more, gone := c.after(version)
		if gone != nil {
			text, _ := json.Marshal(status(http.StatusGone, metav1.StatusReasonExpired, gone.Error())) // it has texts only
			_, _ = fmt.Fprintf(w, `{"type":"ERROR","object":%s}`+"\n", text)
			return
		}
		for _, event := range events {
			_, err = w.Write(event[formOf(r)])
			version++
		}
		if more == nil {
			err = flush()
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

func number(q url.Values, name string) (int, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("invalid %s %q", name, text)
	}
	return n, nil
}

// status returns a failure as API servers put it.
func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message)) // the client has gone, if that fails
}

package churn

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// converter is the conversion webhook of the CRDs of a run that have one. A type has the path of its name. It is safe for
// concurrent use.
type converter struct {
	server *http.Server
	ended  chan struct{}
	url    string
	ca     string // base64

	mu     sync.Mutex
	broken map[string]bool // types whose requests fail
}

func startConverter() (*converter, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	c := &converter{ended: make(chan struct{}), broken: map[string]bool{}}
	c.url = fmt.Sprintf("https://localhost:%d/", listener.Addr().(*net.TCPAddr).Port)
	c.ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}))
	c.server = &http.Server{
		ReadHeaderTimeout: time.Minute,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:          log.New(io.Discard, "", 0), // API servers often close connections early
		Handler:           c,
	}
	go func() {
		defer close(c.ended)
		_ = c.server.ServeTLS(listener, "", "") // until it is closed
	}()
	return c, nil
}

func (c *converter) close() {
	_ = c.server.Close()
	<-c.ended
}

// conversion returns the conversion of a CRD.
func (c *converter) conversion(typ string) map[string]any {
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": c.url + typ, "caBundle": c.ca},
	}}
}

// setBroken makes the conversion of a type fail, or work again.
func (c *converter) setBroken(typ string, broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[typ] = broken
}

// ServeHTTP converts objects: versions differ only in their names.
func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	broken := c.broken[strings.TrimPrefix(r.URL.Path, "/")]
	c.mu.Unlock()
	var review struct {
		Request struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); broken || err != nil {
		http.Error(w, "churn: the conversion fails on purpose", http.StatusInternalServerError)
		return
	}
	for _, obj := range review.Request.Objects {
		obj["apiVersion"] = review.Request.DesiredAPIVersion
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
		"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"},
	}})
}

// convert makes the conversion of a type fail, or work again.
func (w *writer) convert(op Op) {
	typ, broken := op.Arg("type"), op.Verb == BreakConversion
	if i, n := w.world.Incarnation(typ); broken && (n < 0 || !i.Webhook || w.world.Moved()) {
		return
	}
	w.mend(typ, broken)
}

func (w *writer) mend(typ string, broken bool) {
	if w.converter != nil {
		w.world.setConversionFails(typ, broken)
		w.converter.setBroken(typ, broken)
	}
}

// useConverter starts the webhook if it is not running.
func (w *writer) useConverter() error {
	if w.converter != nil {
		return nil
	}
	var err error
	w.converter, err = startConverter()
	return err
}

// gotCode records the code of a response to a list or a watch of the subject.
func (w *World) gotCode(req faultproxy.Request, code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes[schema.GroupVersionResource{Group: req.Group, Version: req.Version, Resource: req.Resource}] = code
}

// Throttled reports whether the last response to a list or a watch of a resource, which the subject has got, was 429. API servers respond so
// until they can convert the objects: if there are two, all requests of a subject may reach the one that does.
func (w *World) Throttled(of schema.GroupVersionResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[of] == http.StatusTooManyRequests
}

package statuspage_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

// Whatever a name, an error or a sentence has in it, no markup of it reaches a browser and
// no control character a terminal.
func TestHandler_EscapesEverything(t *testing.T) {
	const evil = "<script>alert(1)</script>\"'&\x1b[31m\u202e\n</style><img src=x onerror=alert(2)>{{.}}"
	i := status.Informer{
		GVR: gvrOf(evil), VersionPolicy: discovery.FirstOf(evil), State: evil, Reason: evil, Namespace: evil, Verb: evil, Err: errors.New(evil),
		Resource: discovery.Resource{
			GVR: schema.GroupVersionResource{Group: evil, Version: evil, Resource: evil}, GVK: schema.GroupVersionKind{Kind: evil}, Backing: evil, CRDUID: evil,
		},
		Evidence: discovery.Evidence{Kind: evil, CRDUID: evil}, LastFailed: evil, FailedObjects: 1, ResourceVersion: evil,
		Quarantine: status.Quarantine{
			Objects: []status.QuarantinedObject{{Key: evil, UID: evil, Reason: evil, Index: evil, Err: errors.New(evil)}},
			Counts:  map[status.Reason]uint64{evil: 1},
		},
		Traffic: status.Traffic{Failures: map[status.Reason]uint64{evil: 1}},
		Owners:  []status.Owner{{Name: evil}}, Handlers: []status.Handler{{Handler: evil, Lease: evil, RunningSince: time.Now().Add(-time.Hour)}},
	}
	failed := i // its message is the error
	failed.Evidence, failed.FailedObjects = discovery.Evidence{}, 0
	failing := discovery.SourceStatus{State: evil, Verb: evil, Err: errors.New(evil)}
	handler := statuspage.NewHandler(&informers{
		all: []status.Informer{i, failed}, chain: []status.Step{{About: evil, Text: evil}}, elsewhere: []schema.GroupVersionResource{gvrOf(evil)},
		discovery: &discovery.Status{Running: true, CRDs: failing, APIServices: failing, Documents: failing},
	})
	inQuery := "resource=" + strings.NewReplacer("<", "%3C", " ", "%20", "\"", "%22", "&", "%26", "\x1b", "%1b", "\n", "%0a", "{", "%7b", ".", "%2e").Replace(evil)
	for _, target := range []string{"/", "/?" + inQuery, "/?q=%3Cscript%3Ealert(1)%3C/script%3E%22", "/?resource=%3Cscript%3E%1b"} {
		html := get(t, handler, target, "text/html").Body.String()
		if strings.Count(html, "<script") != 1 || strings.Contains(html, "<img") || strings.Count(html, "</style") != 1 || strings.ContainsAny(html, "\x1b\u202e") {
			t.Errorf("%s: markup gets through:\n%s", target, html[strings.Index(html, "<main"):])
		}
		if text := get(t, handler, target, "text/plain").Body.String(); strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: control characters get through: %q", target, text)
		}
		body := get(t, handler, target, "application/json").Body.Bytes()
		if !json.Valid(body) || strings.Contains(string(body), "<script") {
			t.Errorf("%s: JSON: %s", target, body)
		}
	}
	// What is escaped is still there to be read, and to be followed.
	if html := get(t, handler, "/", "text/html").Body.String(); !strings.Contains(html, "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;\\x1b[31m\\u202e ") || !strings.Contains(html, `href="?resource=%3Cscript%3E`) {
		t.Errorf("HTML: %s", html)
	}
}

package statuspage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/internal/statuspage"
)

// Whatever a name, an error or a sentence has in it, no markup of it reaches a browser and
// no control character a terminal.
func TestHandler_EscapesEverything(t *testing.T) {
	const evil = "<script>alert(1)</script>\"'&\x1b[31m\u202e\n</style><img src=x onerror=alert(2)>{{.}}"
	i := statuspage.Informer{
		Name: evil, Group: evil, Version: evil, Resource: evil, VersionPolicy: evil, Served: &statuspage.Served{Name: evil + "2", Kind: evil, Backing: evil, CRDUID: evil},
		State: evil, Reason: evil, Message: evil, Advice: evil, Namespace: evil, Verb: evil, Error: evil, Evidence: &statuspage.Evidence{Kind: evil, CRDUID: evil},
		ResourceVersion: evil, Traffic: statuspage.Traffic{Failures: map[string]uint64{evil: 1}},
		Holders: []statuspage.Holder{{Name: evil}}, Handlers: []statuspage.Handling{{Handler: evil, Lease: evil}},
	}
	handler := statuspage.NewHandler(&evilSource{informers{all: []statuspage.Informer{i}, chain: []statuspage.Step{{About: evil, Text: evil}}}, evil})
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

// evilSource tells of names elsewhere and of discovery, too.
type evilSource struct {
	informers
	evil string
}

func (s *evilSource) Detail(name string) (statuspage.Detail, bool) {
	d, found := s.informers.Detail(name)
	d.Elsewhere = []string{s.evil}
	d.Discovery = &statuspage.Discovery{Running: true, Sources: []statuspage.DiscoverySource{{Name: s.evil, State: s.evil, Verb: s.evil, Error: s.evil}}}
	return d, found
}

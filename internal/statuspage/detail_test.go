package statuspage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

func TestDetail_HasTheChainAndAllFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		i := informer("widgets.v1.example.com", "Degraded")
		i.Reason, i.Verb, i.Err, i.Since, i.Attempts = "Forbidden", "list", errors.New("not you"), time.Now().Add(-time.Minute), 7
		i.Handlers = []status.Handler{{Handler: "*main.viewer", Lease: "gc", Delivered: 1234, Backlog: 2, RunningSince: time.Now().Add(-20 * time.Second)}}
		i.Resource = discovery.Resource{GVR: i.GVR, GVK: schema.GroupVersionKind{Kind: "Widget"}}
		i.Owners = []status.Owner{{Name: "gc", Leases: 1, Since: time.Now().Add(-time.Hour)}}
		i.Quarantine = status.Quarantine{Counts: map[status.Reason]uint64{status.ReasonDecodeFailed: 3}, Objects: []status.QuarantinedObject{
			{Key: "ns/a", Reason: status.ReasonDecodeFailed, Err: errors.New("no number"), Since: time.Now().Add(-time.Minute)},
			{Key: "ns/b", Reason: status.ReasonIndexFailed, Index: "by-owner", Since: time.Now().Add(-time.Hour)},
		}}
		i.CacheBytes = 3 << 19
		i.Traffic = status.Traffic{Lists: 1, Watches: 2, Bytes: 2048, Events: 3, Failures: map[status.Reason]uint64{"Forbidden": 7, "Decode": 1}}
		source := &informers{all: []status.Informer{i}, chain: []status.Step{{About: "Wanted", Text: "It is wanted."}, {About: "Next", Text: "It is tried again."}}}
		handler := statuspage.NewHandler(source)
		got := get(t, handler, "/?resource=widgets.v1.example.com", "").Body.String()
		want := `widgets.v1.example.com at 2000-01-01 01:00:00 UTC

It is wanted.
It is tried again.

State           Degraded Forbidden
Since           60s ago, 2000-01-01 00:59:00 UTC
Left out        DecodeFailed 3
Attempts        7
Namespace       none: cluster-scoped
Version policy  Exact
Served as       widgets.v1.example.com, kind Widget, cluster-scoped
Generation      1
Objects         0
Cache           1.5 MiB of memory
Succeeded       1 list, 2 watches
Failed          Decode 1, Forbidden 7
Received        3 events, 2.0 KiB
Requested by    0 leases

HANDLER       LEASE  DELIVERED  WAITING  RUNNING  BEHIND
*main.viewer  gc     1,234      2        20s      -

OWNER  LEASES  FOR
gc     1       60m

LEFT OUT  REASON        INDEX     FOR  ERROR
ns/a      DecodeFailed  -         60s  no number
ns/b      IndexFailed   by-owner  60m  -

And 1 left out object more, not shown.

Discovery  none: only requests show what is served
`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
		html := get(t, handler, "/?resource=widgets.v1.example.com", "text/html").Body.String()
		for _, part := range []string{
			"<li><b>Wanted</b> <span>It is wanted.</span></li>", "<dt>Failed</dt><dd>Decode 1, Forbidden 7</dd>", `<th scope="row">*main.viewer</th>`, `<strong class="late">20s</strong>`, `<th scope="row">gc</th>`,
			`<tr><th scope="row">ns/a</th><td data-label="Reason">DecodeFailed</td>`,
		} {
			if !strings.Contains(html, part) {
				t.Errorf("no %s in HTML", part)
			}
		}
		get(t, handler, "/?resource=widgets.v1.example.com", "text/html")
		if n := source.asked.Load(); n != 2 {
			t.Errorf("three looks in two formats: asked %d times", n)
		}
	})
}

func TestDetail_ShowsDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		d := &discovery.Status{
			Running: true, Types: 70, Requests: 1234, Answers: discovery.Answers{Served: 5, NotServed: 4, Inconclusive: 3, Ambiguous: 2},
			CRDs:        discovery.SourceStatus{State: discovery.SourceAbsent, Since: time.Now(), Verb: "list", Err: errors.New("404")},
			APIServices: discovery.SourceStatus{State: discovery.SourceForbidden, Since: time.Now().Add(-time.Minute), Verb: "watch", Err: errors.New("not you")},
			Documents:   discovery.SourceStatus{State: discovery.SourceCurrent, Since: time.Now()},
		}
		handler := statuspage.NewHandler(&informers{all: []status.Informer{informer("pods.v1", "Synced")}, discovery: d})
		checkEnd := func(want string) {
			t.Helper()
			time.Sleep(time.Second) // an answer is kept for half of that
			if got := get(t, handler, "/?resource=pods.v1", "").Body.String(); !strings.HasSuffix(got, want) {
				t.Errorf("%s\nwant at its end:\n%s", got, want)
			}
		}
		checkEnd(`
Discovery                  running, 70 types known
Discovery requests         1,234
Discovery answers          5 served, 4 not served, 3 inconclusive, 2 ambiguous
CustomResourceDefinitions  not served by this server
APIServices                Forbidden for 61s: cannot watch: not you
Discovery documents        Watching for 1s
`)
		d.Running = false
		checkEnd(`
Discovery           not running: each lookup is a request to the server
Discovery requests  1,234
Discovery answers   5 served, 4 not served, 3 inconclusive, 2 ambiguous
`)
	})
}

func TestDetail_UnknownResourcesAreNotFound(t *testing.T) {
	handler := statuspage.NewHandler(&informers{chain: []status.Step{{About: "Wanted", Text: "There is no informer on it."}}})
	for _, accept := range []string{"", "text/html", "application/json"} {
		got := get(t, handler, "/?resource=none", accept)
		if got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "There is no informer on it.") {
			t.Errorf("%q: %d %s", accept, got.Code, got.Body)
		}
	}
}

func TestDetail_IsBounded(t *testing.T) {
	source := &informers{}
	for range 2000 {
		source.all = append(source.all, informer("widgets.v1", "Synced"))
	}
	for i := range 12_000 {
		source.chain = append(source.chain, status.Step{About: "Wanted", Text: fmt.Sprint(i)})
	}
	handler := statuspage.NewHandler(source)
	var d struct {
		Informers     []any
		MoreInformers int
		Chain         []status.Step
	}
	if err := json.Unmarshal(get(t, handler, "/?resource=widgets.v1", "application/json").Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Informers) != 50 || d.MoreInformers != 1950 || len(d.Chain) != 300 {
		t.Errorf("%d informers and %d more, %d steps", len(d.Informers), d.MoreInformers, len(d.Chain))
	}
	if html := get(t, handler, "/?resource=widgets.v1", "text/html").Body.String(); !strings.Contains(html, "And 1,950 informers more, not shown.") {
		t.Error("HTML does not tell of those that it does not show")
	}
}

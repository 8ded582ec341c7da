package statuspage_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

// tableOf returns the table at target, by way of JSON.
func tableOf(t *testing.T, handler http.Handler, target string) shownTable {
	t.Helper()
	var table shownTable
	if err := json.Unmarshal(get(t, handler, target, "application/json").Body.Bytes(), &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func names(table shownTable) (all []string) {
	for _, i := range table.Informers {
		all = append(all, i.State+" "+i.Name)
	}
	return all
}

func TestTable_WhatIsWrongComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, busy := informer("stuck", "Synced"), informer("busy", "Synced")
		stuck.Handlers = []status.Handler{{}, {Backlog: 3, RunningSince: time.Now()}}
		source := &informers{all: []status.Informer{
			informer("f", "Stopped"), informer("e", "Synced"), informer("d", "Starting"), informer("c", "Unknown"), informer("b", "NotServed"),
			informer("z", "Degraded"), informer("a", "Degraded"), informer("g", "Novel"), stuck, busy,
		}}
		time.Sleep(10 * time.Second)
		source.all[9].Handlers = []status.Handler{{Backlog: 4, RunningSince: time.Now().Add(-9 * time.Second)}}
		table := tableOf(t, statuspage.NewHandler(source), "/")
		want := []string{
			"Degraded a", "Degraded z", "Synced stuck", "Novel g", "NotServed b", "Unknown c", "Starting d", "Synced busy", "Synced e", "Stopped f",
		}
		if diff := cmp.Diff(want, names(table)); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		summary := statuspage.Summary{Informers: 10, Late: 1, Backlog: 7, States: map[status.State]int{
			"Degraded": 2, "NotServed": 1, "Unknown": 1, "Starting": 1, "Synced": 3, "Stopped": 1, "Novel": 1,
		}}
		if diff := cmp.Diff(summary, table.Summary); diff != "" {
			t.Errorf("summary (-want +got):\n%s", diff)
		}
	})
}

func TestTable_TenThousandTypesAreShownInParts(t *testing.T) {
	handler := statuspage.NewHandler(&informers{all: many(10_000)})
	first := tableOf(t, handler, "/")
	if len(first.Informers) != 500 || first.Matching != 10_000 || first.NotShown != 9_500 || first.Informers[0].State != "Degraded" {
		t.Errorf("first part: %d of %d, %d not shown, begins with %+v", len(first.Informers), first.Matching, first.NotShown, first.Informers[0])
	}
	seen := map[string]bool{}
	for offset, further := 0, 10_000; further > 0 && offset < 20_000; offset += 500 {
		part := tableOf(t, handler, fmt.Sprintf("/?offset=%d", offset))
		for _, name := range names(part) {
			seen[name] = true
		}
		if further = part.NotShown; further != 9_500-offset {
			t.Errorf("offset %d: %d further informers, want %d", offset, further, 9_500-offset)
		}
	}
	if len(seen) != 10_000 {
		t.Errorf("all parts together have %d", len(seen))
	}
	if beyond := tableOf(t, handler, "/?offset=12000"); beyond.NotShown != 0 || len(beyond.Informers) > 0 {
		t.Errorf("beyond the last: %d, and %d further informers", len(beyond.Informers), beyond.NotShown)
	}
	text := get(t, handler, "/?offset=500", "").Body.String()
	if !strings.Contains(text, "501 to 1,000 of 10,000 informers, problems first; 9,500 not shown.") || strings.Count(text, "\n") > 510 {
		t.Errorf("text: %s", text[max(0, len(text)-200):])
	}
	if text := get(t, handler, "/?offset=9500", "").Body.String(); !strings.Contains(text, "9,501 to 10,000 of 10,000 informers, problems first; 9,500 not shown.") {
		t.Errorf("the last part: %s", text[max(0, len(text)-200):])
	}
	if html := get(t, handler, "/?offset=1500", "text/html").Body.String(); !strings.Contains(html, `<a href="?offset=1000" rel="prev">`) {
		t.Error("the link to earlier rows is not to offset 1000")
	}
	html := get(t, handler, "/?offset=500", "text/html").Body.String()
	if !strings.Contains(html, `<a href="?" rel="prev">`) || !strings.Contains(html, `<a href="?offset=1000" rel="next">`) || strings.Count(html, "<tr data-key") != 500 || len(html) > 1<<20 {
		t.Errorf("HTML: %d rows, %d bytes", strings.Count(html, "<tr data-key"), len(html))
	}
}

func TestTable_ShowsHowLongAnInformerHasBeenSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		well, wrong := informer("pods.v1", "Synced"), informer("jobs.v1.batch", "Degraded")
		well.Since, wrong.Since, wrong.Reason = time.Now(), time.Now(), "Throttled"
		time.Sleep(3 * time.Hour)
		handler := statuspage.NewHandler(&informers{all: []status.Informer{well, wrong}})
		html := get(t, handler, "/", "text/html").Body.String()
		if !strings.Contains(html, `<span class="state synced">Synced</span><small>for 3h</small></td>`) ||
			!strings.Contains(html, `<span class="state degraded">Degraded</span></td>`) || strings.Count(html, "<small>for 3h</small>") != 2 {
			t.Errorf("HTML: %s", html)
		}
		text := get(t, handler, "/", "").Body.String()
		if !strings.Contains(text, "pods.v1        3h   0        -      -         -\n") || !strings.Contains(text, "Throttled; for 3h\n") {
			t.Errorf("text: %s", text)
		}
	})
}

// Health checks fail for a handler that is stuck: the row of an informer that is synced names it.
func TestTable_ARowNamesStuckHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		stuck := informer("pods.v1", "Synced")
		stuck.Handlers = []status.Handler{
			{Handler: "*main.fast"},
			{Handler: "example.com/gc/main.viewer", Lease: "gc", Backlog: 1234, RunningSince: time.Now().Add(-61 * time.Second)},
			{Handler: "*main.slow", Backlog: 1, BehindSince: time.Now().Add(-20 * time.Second)},
		}
		handler := statuspage.NewHandler(&informers{all: []status.Informer{stuck}})
		const want = `handler main.viewer of "gc" has been in one call for 61s, 1,234 events waiting, and 1 other handler`
		if text := get(t, handler, "/", "").Body.String(); !strings.Contains(text, "  "+want+"\n") {
			t.Errorf("text: %s", text)
		}
		if html := get(t, handler, "/", "text/html").Body.String(); !strings.Contains(html, `class="why"><span class="late">`+strings.ReplaceAll(want, `"`, "&#34;")+"</span></td>") {
			t.Errorf("HTML: %s", html)
		}
		stuck.Handlers[0].RunningSince = time.Now().Add(-time.Second)
		handler = statuspage.NewHandler(&informers{all: []status.Informer{stuck}})
		if text := get(t, handler, "/", "").Body.String(); !strings.Contains(text, "  3, 1,235 waiting, one call running for 61s  ") {
			t.Errorf("the longest call: %s", text)
		}
		stuck.Handlers = stuck.Handlers[2:]
		handler = statuspage.NewHandler(&informers{all: []status.Informer{stuck}})
		if text := get(t, handler, "/", "").Body.String(); !strings.Contains(text, "  handler *main.slow has been behind for 20s, 1 event waiting\n") {
			t.Errorf("one that is behind: %s", text)
		}
		stuck.Handlers[0] = status.Handler{Handler: "*main.slow", RunningSince: time.Now().Add(-2 * time.Second)}
		handler = statuspage.NewHandler(&informers{all: []status.Informer{stuck}})
		if html := get(t, handler, "/", "text/html").Body.String(); !strings.Contains(html, "<span>handler *main.slow has been in one call for 2s</span>") {
			t.Errorf("a call that is only slow: %s", html)
		}
	})
}

func TestTable_IsFilteredByStateAndText(t *testing.T) {
	held, wrong := informer("pods.v1", "Synced"), informer("jobs.v1.batch", "Degraded")
	held.Owners = []status.Owner{{Name: "Garbage"}}
	wrong.Reason = "Forbidden"
	handler := statuspage.NewHandler(&informers{all: []status.Informer{held, wrong, informer("crons.v1.batch", "Synced")}})
	for query, want := range map[string][]string{
		"state=Synced":         {"Synced crons.v1.batch", "Synced pods.v1"},
		"state=synced":         {"Synced crons.v1.batch", "Synced pods.v1"},
		"state=DEGRADED":       {"Degraded jobs.v1.batch"},
		"q=BATCH":              {"Degraded jobs.v1.batch", "Synced crons.v1.batch"},
		"q=forbid":             {"Degraded jobs.v1.batch"},
		"q=garb":               {"Synced pods.v1"},
		"q=batch&state=Synced": {"Synced crons.v1.batch"},
		"q=nothing":            nil,
	} {
		table := tableOf(t, handler, "/?"+query)
		if diff := cmp.Diff(want, names(table)); diff != "" || table.Matching != len(want) || table.NotShown != 0 || table.Summary.Informers != 3 {
			t.Errorf("%s: matching %d, not shown %d (-want +got):\n%s", query, table.Matching, table.NotShown, diff)
		}
	}
	if got := get(t, handler, "/?q=nothing", "").Body.String(); !strings.Contains(got, "0 of 3 informers match.") {
		t.Errorf("nothing matches: %s", got)
	}
}

// Whoever has thousands of leases or handlers on a type, or long errors, does not make a page long.
func TestTable_RowsAreBounded(t *testing.T) {
	all := many(1)
	for range 1000 {
		all[0].Owners = append(all[0].Owners, status.Owner{Name: strings.Repeat("x", 100), Leases: 1})
		all[0].Handlers = append(all[0].Handlers, status.Handler{Handler: "h"})
	}
	all[0].Err = errors.New("x" + strings.Repeat("é", 100_000))
	for range 1000 {
		all[0].Quarantine.Objects = append(all[0].Quarantine.Objects, status.QuarantinedObject{Key: "ns/a", Reason: status.ReasonDecodeFailed, Err: all[0].Err})
	}
	all[0].Quarantine.Counts = map[status.Reason]uint64{status.ReasonDecodeFailed: 1100}
	for n := range 1000 {
		namespace := status.Namespace{Name: fmt.Sprintf("n%03d", n), Listed: true, Terminating: n >= 990}
		if n%100 == 99 {
			namespace.Reason, namespace.Err = status.ReasonForbidden, all[0].Err
		}
		all[0].Namespaces = append(all[0].Namespaces, namespace)
	}
	waitsFor := slices.Repeat([]string{"widgets"}, 1000)
	all[0].Shard = &status.Shard{Member: "a", Pending: "1-9", Awaited: 9, Owners: waitsFor, LettingGo: "10", WaitsFor: waitsFor, Err: all[0].Err.Error()}
	handler := statuspage.NewHandler(&informers{all: all})
	i := tableOf(t, handler, "/").Informers[0]
	if n := i.Namespaces; len(n) != 20 || n[9].Name != "n009" || n[10].Name != "n099" || n[19].Name != "n999" || len(n[19].Error) > 300 {
		t.Errorf("a row has %d namespaces: %+v", len(n), n)
	}
	if want := (status.NamespaceCounts{All: 980, Terminating: 9}); i.MoreNamespaces != want {
		t.Errorf("more namespaces: %+v, want %+v", i.MoreNamespaces, want)
	}
	if s := i.Shard; len(s.Owners) != 20 || s.MoreOwners != 980 || len(s.WaitsFor) != 20 || s.MoreWaitsFor != 980 || len(s.Err) > 1100 {
		t.Errorf("a row has the shard %+v", s)
	}
	if len(i.Owners) != 20 || i.MoreOwners != 980 || len(i.Handlers) != 20 || i.MoreHandlers != 980 || len(i.Error) > 1100 || !strings.HasSuffix(i.Error, "é …") {
		t.Errorf("a row has %d owners and %d more, %d handlers and %d more, an error of %d bytes", len(i.Owners), i.MoreOwners, len(i.Handlers), i.MoreHandlers, len(i.Error))
	}
	if len(i.Quarantine.Objects) != 20 || len(i.Quarantine.Objects[0].Error) > 300 {
		t.Errorf("a row has %d objects that are left out", len(i.Quarantine.Objects))
	}
	for _, text := range []string{"1,000 namespaces, 10 fail, 10 terminating", "widgets, 500 more"} {
		if got := get(t, handler, "/"+all[0].Name(), "text/plain").Body.String(); !strings.Contains(got, text) {
			t.Errorf("the details do not have %q", text)
		}
	}
	if len(all[0].Namespaces) != 1000 || len(all[0].Namespaces[999].Err.Error()) < 100_000 || len(all[0].Shard.Owners) != 1000 {
		t.Error("the page has changed the status")
	}
	if text := get(t, handler, "/", "").Body.String(); !strings.Contains(text, "and 997 more") || !strings.Contains(text, "  1,000  ") {
		t.Errorf("text: %s", text)
	}
	detail := get(t, handler, "/?resource="+all[0].Name(), "text/html").Body
	if !strings.Contains(detail.String(), "And 600 left out objects, 500 handlers, 500 owners more, not shown.") || detail.Len() > 1<<19 {
		t.Errorf("detail: %d bytes", detail.Len())
	}
}

// A row counts all handlers, and names one with a problem, also if it shows only some of them.
func TestTable_OneOfManyHandlersIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		i := informer("pods.v1", "Synced")
		for n := range 100 {
			i.Handlers = append(i.Handlers, status.Handler{Handler: fmt.Sprintf("*main.h%d", n), Backlog: 1})
		}
		i.Handlers[50].RunningSince = time.Now().Add(-time.Minute)
		i.Handlers[60].Reason = status.ReasonHandlerPanicked
		handler := statuspage.NewHandler(&informers{all: []status.Informer{i}})
		table := tableOf(t, handler, "/")
		if of := table.Informers[0].Handlers; len(of) != 20 || of[17].Handler != "*main.h17" || of[18].Handler != "*main.h50" || of[19].Handler != "*main.h60" || table.Informers[0].MoreHandlers != 80 {
			t.Errorf("JSON: %+v", of)
		}
		const why = "handler *main.h50 has been in one call for 60s, 1 event waiting, and 1 other handler"
		if text := get(t, handler, "/", "").Body.String(); table.Summary.Backlog != 100 || !strings.Contains(text, "  100, 100 waiting, one call running for 60s  ") || !strings.Contains(text, why) {
			t.Errorf("text: %s", text)
		}
		if html := get(t, handler, "/", "text/html").Body.String(); !strings.Contains(html, `<strong class="late">100, 100 waiting`) {
			t.Errorf("HTML: %s", html)
		}
	})
}

// The kind of an error determines how it is displayed, also if its text is cut.
func TestTable_LongErrorKeepsItsKind(t *testing.T) {
	i := informer("pods.v1", "Degraded")
	i.Reason, i.Verb = "Forbidden", "list"
	i.Err = apierrors.NewForbidden(i.GVR.GroupResource(), "", errors.New(strings.Repeat("x", 100_000)))
	text := get(t, statuspage.NewHandler(&informers{all: []status.Informer{i}}), "/", "").Body.String()
	if !strings.Contains(text, "Forbidden: cannot list: xxx") || !strings.Contains(text, "xxx …") {
		t.Errorf("text: %.300s", text)
	}
}

func TestTable_TextIsAligned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		short, long := informer("pods.v1", "Synced"), informer("ipamblocks.v1.crd.projectcalico.org", "Degraded")
		short.Objects, short.Traffic.LastEvent, short.Pinned = 12_345, time.Now().Add(-5*time.Second), true
		long.Reason, long.Verb, long.Err = "Throttled", "list", errors.New("slowly")
		long.Since, long.Attempts, long.NextRetry = time.Now().Add(-90*time.Second), 4, time.Now().Add(30*time.Second)
		long.Owners = []status.Owner{{Name: "gc", Leases: 2}, {Leases: 1}}
		got := get(t, statuspage.NewHandler(&informers{all: []status.Informer{short, long}}), "/", "").Body.String()
		want := `Informers at 2000-01-01 01:00:00 UTC: 2 informers, 12,345 objects, 0 events waiting for handlers
1 Degraded, 1 Synced

STATE     RESOURCE                             FOR  OBJECTS  EVENT  HANDLERS  OWNERS            WHY
Degraded  ipamblocks.v1.crd.projectcalico.org  90s  0        -      -         gc ×2, (no name)  Throttled: cannot list: slowly; for 90s, 4 attempts, next in 30s
Synced    pods.v1                              -    12,345   5s     -         ForResource

One resource: ?resource=ipamblocks.v1.crd.projectcalico.org  Filter: ?state=Degraded or ?q=TEXT  JSON: ?format=json
`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
	})
}

// The names of fields are a contract; those of an informer are tested in package status.
func TestTable_JSONIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		late := informer("a", "Degraded")
		late.Objects, late.Handlers = 3, []status.Handler{{Handler: "T", Backlog: 7, BehindSince: at}}
		time.Sleep(time.Minute)
		got := get(t, statuspage.NewHandler(&informers{all: []status.Informer{late, informer("b", "Synced")}}), "/?state=synced", "application/json").Body.String()
		got = regexp.MustCompile(`\n *`).ReplaceAllString(got, "")
		want := `{"at": "2000-01-01T00:01:00Z","summary": {"informers": 2,"states": {"Degraded": 1,"Synced": 1},"late": 1,"backlog": 7,"objects": 3},` +
			`"matching": 1,"offset": 0,"notShown": 0,"informers": [{"name": "b","group": "","version": "","resource": "b",` +
			`"id": 0,"state": "Synced","listed": false,"generation": 0,"objects": 0,"traffic": {"lists": 0,"watches": 0,"bytes": 0,"events": 0},"leases": 0}]}`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("JSON (-want +got):\n%s", diff)
		}
	})
}

func TestTable_SaysWhichHandlerHasPanicked(t *testing.T) {
	i := informer("widgets.v1", "Synced")
	i.Handlers = []status.Handler{{Handler: "example.com/x.viewer", Lease: "gc", Panics: 3, LastPanic: "nil map", Reason: status.ReasonHandlerPanicked, FailedObjects: 2, LastFailed: "ns/a"}}
	body := get(t, statuspage.NewHandler(&informers{all: []status.Informer{i}}), "/", "text/plain").Body.String()
	want := `handler x.viewer of "gc" has panicked for 2 objects, the last one is ns/a; its last panic: nil map`
	if !strings.Contains(body, want) {
		t.Errorf("the table has no %q:\n%s", want, body)
	}
}

package discovery

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFeed_WatchesFromWhereTheListWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		list := ft.next("list")
		if diff := cmp.Diff(url.Values{"limit": {"100"}}, list.URL.Query()); diff != "" {
			t.Errorf("query of the list (-want +got):\n%s", diff)
		}
		if got := list.Header.Get("Accept"); got != "application/json" {
			t.Errorf("Accept = %q", got)
		}
		list.list("7", "", "a", "b")
		w := ft.next("watch")
		query := w.URL.Query()
		seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
		if err != nil {
			t.Error(err)
		}
		within(t, "lifetime of the watch", time.Duration(seconds)*time.Second, 5*time.Minute, 10*time.Minute)
		query.Del("timeoutSeconds")
		if diff := cmp.Diff(url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {"7"}}, query); diff != "" {
			t.Errorf("query of the watch (-want +got):\n%s", diff)
		}
		ft.saw("Connecting", "list a b")
		s := w.stream()
		ft.saw("Watching")
		s.send("ADDED", crdNamed("c", "8"))
		s.send("MODIFIED", crdNamed("a", "9"))
		s.send("DELETED", crdNamed("b", "10"))
		ft.saw("ADDED c", "MODIFIED a", "DELETED b")
	})
}

func TestFeed_PutsThePagesOfAListTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "two", "a", "b")
		second := ft.next("list")
		if got := second.param("continue"); got != "two" {
			t.Errorf("continue = %q, want two", got)
		}
		ft.saw("Connecting")
		second.list("7", "three")
		ft.next("list").list("8", "", "c") // not of one version: the oldest counts
		if got := ft.next("watch").param("resourceVersion"); got != "7" {
			t.Errorf("watch from %q, want 7", got)
		}
		ft.saw("list a b c")
	})
}

func TestFeed_BeginsAListAnewThatTheServerForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "two", "a", "b")
		ft.next("list").fail(http.StatusGone, "Expired")
		again := ft.next("list")
		if got := again.param("continue"); got != "" {
			t.Errorf("continue = %q, want none", got)
		}
		again.list("9", "", "a")
		if got := ft.next("watch").param("resourceVersion"); got != "9" {
			t.Errorf("watch from %q, want 9", got)
		}
		ft.saw("Connecting", "list a")
	})
}

func TestFeed_GivesUpAListThatTheServerAlwaysForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		for range 1 + maxRestarts {
			ft.next("list").list("7", "two", "a")
			ft.next("list").fail(http.StatusGone, "Expired")
		}
		ft.saw("Connecting", "Failing list: it is Expired")
	})
}

func TestFeed_GivesUpAListWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "two", "a")
		ft.next("list").list("7", "two", "a")
		ft.saw("Connecting", "Failing list: the list does not get on: a page names itself as the next")
	})
}

func TestFeed_TakesNullItemsForNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":null}`))
		ft.next("watch")
		ft.saw("Connecting", "list")
	})
}

func TestFeed_TakesNoOtherAnswerForAList(t *testing.T) {
	const meta = `"metadata":{"resourceVersion":"7"}`
	item := crdNamed("a", "7")
	for name, body := range map[string]string{
		"nothing":                  "",
		"HTML":                     "<html><body>Sign in</body></html>",
		"a Status":                 statusOf(200, "OK"),
		"null":                     "null",
		"an array":                 "[" + item + "]",
		"no items":                 "{" + meta + "}",
		"no version":               `{"items":[` + item + `]}`,
		"items are an object":      "{" + meta + `,"items":{"a":` + item + "}}",
		"items are a string":       "{" + meta + `,"items":"a"}`,
		"an item is null":          "{" + meta + `,"items":[null]}`,
		"an item is a string":      "{" + meta + `,"items":["a"]}`,
		"an item without UID":      "{" + meta + `,"items":[{"metadata":{"name":"a"}}]}`,
		"an item without name":     "{" + meta + `,"items":[{"metadata":{"uid":"u"}}]}`,
		"cut before the items":     "{" + meta,
		"cut after a key":          "{" + meta + `,"items"`,
		"cut before an item":       "{" + meta + `,"items":[`,
		"cut in an item":           "{" + meta + `,"items":[` + item[:20],
		"cut after an item":        "{" + meta + `,"items":[` + item,
		"cut before another":       "{" + meta + `,"items":[` + item + ",",
		"cut after the items":      "{" + meta + `,"items":[` + item + "]",
		"more after the list":      "{" + meta + `,"items":[]}{}`,
		"HTML after the list":      "{" + meta + `,"items":[]}<p>`,
		"metadata is not metadata": `{"metadata":7,"items":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				ft.next("list").reply(http.StatusOK, strings.NewReader(body))
				synctest.Wait()
				if len(ft.log) != 2 || !strings.HasPrefix(ft.log[1], "Failing list: the answer is no list: ") {
					t.Errorf("callbacks %q, want Connecting and Failing", ft.log)
				}
				if strings.HasPrefix(name, "cut") && !strings.HasSuffix(ft.log[1], io.ErrUnexpectedEOF.Error()) {
					t.Errorf("callback %q, want one that tells of an unexpected end", ft.log[1])
				}
				ft.next("list")
			})
		})
	}
}

func TestFeed_ResumesAfterAnEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		s.send("ADDED", crdNamed("a", "8"))
		s.end()
		again, waited := ft.waited("watch")
		if got := again.param("resourceVersion"); got != "8" {
			t.Errorf("resumed from %q, want 8", got)
		}
		within(t, "wait", waited, 0, 0)
		again.stream().send("ADDED", crdNamed("b", "9"))
		ft.saw("ADDED a", "ADDED b")
	})
}

func TestFeed_ResumesFromABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		<-time.After(time.Minute)
		s.send("BOOKMARK", bookmark("100"))
		s.end()
		if got := ft.next("watch").param("resourceVersion"); got != "100" {
			t.Errorf("resumed from %q, want 100", got)
		}
		ft.sawNothing()
	})
}

func TestFeed_ResumesAfterABrokenConnection(t *testing.T) {
	for name, cut := range map[string]func(*feedStream){
		"between two events": func(s *feedStream) { s.breakOff() },
		"within an event": func(s *feedStream) {
			s.write(`{"type":"ADDED","object":{"meta`)
			s.end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				s := ft.begin()
				s.send("ADDED", crdNamed("a", "8"))
				cut(s)
				again, waited := ft.waited("watch")
				if got := again.param("resourceVersion"); got != "8" {
					t.Errorf("resumed from %q, want 8", got)
				}
				within(t, "wait", waited, 100*time.Millisecond, 300*time.Millisecond)
				again.stream()
				ft.saw("ADDED a", "Failing watch: unexpected EOF", "Watching")
			})
		})
	}
}

func TestFeed_ListsAgainWhenTheVersionHasExpired(t *testing.T) {
	event := func(code int, reason string) func(*feedRequest) {
		return func(r *feedRequest) { r.stream().send("ERROR", statusOf(code, reason)) }
	}
	for name, expire := range map[string]func(*feedRequest){
		"410":             func(r *feedRequest) { r.fail(http.StatusGone, "Expired") },
		"410, other":      func(r *feedRequest) { r.fail(http.StatusGone, "Conflict") },
		"event Expired":   event(0, "Expired"),
		"event Gone":      event(0, "Gone"),
		"event 410":       event(410, ""),
		"404":             func(r *feedRequest) { r.fail(http.StatusNotFound, "NotFound") },
		"404 in HTML":     func(r *feedRequest) { r.reply(http.StatusNotFound, strings.NewReader("<p>")) },
		"a later version": func(r *feedRequest) { r.reply(504, strings.NewReader(tooLarge)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				s := ft.begin("a", "b")
				<-time.After(time.Minute)
				s.end()
				expire(ft.next("watch"))
				ft.next("list").list("90", "", "b")
				again := ft.next("watch")
				if got := again.param("resourceVersion"); got != "90" {
					t.Errorf("watch from %q, want 90", got)
				}
				again.stream()
				ft.saw("list b")
			})
		})
	}
}

const tooLarge = `{"kind":"Status","status":"Failure","code":504,"reason":"Timeout","message":"Too large resource version: 7, current: 3",
	"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}`

func TestFeed_GoesOnAfterAnEventThatIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		s.send("ADDED", crdNamed("a", "8"))
		s.send("ERROR", statusOf(500, "InternalError"))
		ft.saw("ADDED a", "Failing watch: the server broke off the watch: it is InternalError")
		again := ft.next("watch")
		if got := again.param("resourceVersion"); got != "8" {
			t.Errorf("resumed from %q, want 8", got)
		}
		again.stream()
		ft.saw("Watching")
	})
}

func TestFeed_IgnoresEventsOfUnknownType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		s.send("SYNCED", `{"metadata":{"resourceVersion":"99"}}`)
		s.send("ADDED", crdNamed("a", "8"))
		s.end()
		if got := ft.next("watch").param("resourceVersion"); got != "8" {
			t.Errorf("resumed from %q, want 8", got)
		}
		ft.saw("ADDED a")
	})
}

func TestFeed_TakesNoOtherAnswerForAnEvent(t *testing.T) {
	for name, body := range map[string]string{
		"a list":              `{"items":[],"metadata":{"resourceVersion":"8"}}`,
		"a string":            `"ADDED"`,
		"HTML":                "<html>",
		"no object":           `{"type":"ADDED"}`,
		"object is null":      `{"type":"ADDED","object":null}`,
		"object without UID":  `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"8"}}}`,
		"bookmark of nothing": `{"type":"BOOKMARK","object":[]}`,
		"error without cause": `{"type":"ERROR","object":"no"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				s := ft.begin()
				s.write(body + "\n")
				synctest.Wait()
				if len(ft.log) != 1 || !strings.HasPrefix(ft.log[0], "Failing watch: ") {
					t.Errorf("callbacks %q, want Failing", ft.log)
				}
				if got := ft.next("watch").param("resourceVersion"); got != "7" {
					t.Errorf("resumed from %q, want 7", got)
				}
			})
		})
	}
}

func TestFeed_WantsJSONOfAWatch(t *testing.T) {
	for name, contentType := range map[string]string{"HTML": "text/html; charset=utf-8", "none": "", "protobuf": "application/vnd.kubernetes.protobuf;stream=watch"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				ft.next("list").list("7", "")
				ft.next("watch").reply(http.StatusOK, strings.NewReader(""), "Content-Type", contentType)
				ft.saw("Connecting", "list", "Failing watch: the server answered the watch with content type "+strconv.Quote(contentType))
			})
		})
	}
}

func TestFeed_HasNothingThatCouldBeUnmodified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "")
		ft.next("watch").reply(http.StatusNotModified, strings.NewReader(""))
		ft.saw("Connecting", "list", "Failing watch: the server answered 304 Not Modified")
	})
}

func TestFeed_AcceptsAParameterOfJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "")
		reader, writer := io.Pipe()
		ft.next("watch").reply(http.StatusOK, reader, "Content-Type", "application/json;stream=watch")
		ft.saw("Connecting", "list", "Watching")
		(&feedStream{t, writer}).end()
	})
}

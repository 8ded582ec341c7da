package discovery

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFeed_GivesUpAWatchThatOutlivesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "")
		hung := ft.next("watch")
		seconds, err := strconv.Atoi(hung.param("timeoutSeconds"))
		if err != nil {
			t.Fatal(err)
		}
		hung.stream()
		again, waited := ft.waited("watch")
		end := time.Duration(seconds+30) * time.Second
		within(t, "until the next watch", waited, end+100*time.Millisecond, end+300*time.Millisecond)
		if got := again.param("resourceVersion"); got != "7" {
			t.Errorf("resumed from %q, want 7", got)
		}
		ft.saw("Connecting", "list", "Watching", "Failing watch: context deadline exceeded")
	})
}

func TestFeed_GivesUpAListThatDoesNotCome(t *testing.T) {
	for name, hang := range map[string]func(*feedRequest){
		"no answer":  func(*feedRequest) {},
		"half of it": func(r *feedRequest) { r.stream().write(`{"items":[`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				hang(ft.next("list"))
				_, waited := ft.waited("list")
				within(t, "until the next list", waited, 90*time.Second, 91*time.Second)
				synctest.Wait()
				if got := ft.log[len(ft.log)-1]; !strings.HasPrefix(got, "Failing list: ") || !strings.HasSuffix(got, "context deadline exceeded") {
					t.Errorf("callback %q, want one that tells of the deadline", got)
				}
			})
		})
	}
}

func TestFeed_GivesUpAnEventWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		s.send("ADDED", crdNamed("a", "8"))
		s.write(`{"type":"ADDED","object":{"metadata":{"name":"`)
		sent := 0
		for chunk := strings.Repeat("x", 1<<20); sent < 64; sent++ {
			if _, err := io.WriteString(s, chunk); err != nil {
				break
			}
		}
		if sent > 16 {
			t.Errorf("%d MiB of an event were read", sent)
		}
		ft.saw("ADDED a", "Failing watch: "+errValueTooLong.Error())
	})
}

func TestFeed_SaysThatThereIsNoCollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").fail(http.StatusNotFound, "NotFound")
		ft.saw("Connecting", "Absent list: it is NotFound")
		for range 3 {
			probe, waited := ft.waited("list")
			within(t, "wait", waited, 54*time.Second, 66*time.Second)
			probe.fail(http.StatusNotFound, "NotFound")
		}
		ft.sawNothing()
		ft.next("list").list("7", "", "a")
		ft.next("watch").stream()
		ft.saw("list a", "Watching")
	})
}

// A request may have gone astray, and what is not there would be taken for deleted.
func TestFeed_ACollectionThatHadSomethingHasNotGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin("a")
		s.send("ADDED", crdNamed("b", "8"))
		s.end()
		ft.next("watch").fail(http.StatusNotFound, "NotFound")
		ft.next("list").reply(http.StatusNotFound, strings.NewReader("404 page not found\n"))
		ft.saw("ADDED b", "Failing list: GET "+crdPath+": 404 404 page not found")
		_, waited := ft.waited("list")
		within(t, "wait", waited, 0, time.Second)
	})
}

func TestFeed_ProbesWhatItMayNotDo(t *testing.T) {
	for name, c := range map[string]struct {
		verb, reason string
		code         int
	}{
		"list is forbidden":     {"list", "Forbidden", 403},
		"list is unauthorized":  {"list", "Unauthorized", 401},
		"watch is forbidden":    {"watch", "Forbidden", 403},
		"watch is unauthorized": {"watch", "Unauthorized", 401},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				seen := []string{"Connecting"}
				if c.verb == "watch" {
					ft.next("list").list("7", "")
					seen = append(seen, "list")
				}
				ft.next(c.verb).fail(c.code, c.reason)
				ft.saw(append(seen, "Forbidden "+c.verb+": it is "+c.reason)...)
				for range 10 {
					probe, waited := ft.waited("list") // what was missed meanwhile may be much
					within(t, "wait", waited, 27*time.Second, 33*time.Second)
					if c.verb == "watch" {
						probe.list("7", "")
						ft.saw("list")
						probe = ft.next("watch")
					}
					probe.fail(c.code, c.reason)
				}
				ft.sawNothing()
				ft.next("list").list("7", "")
				ft.saw("list")
				ft.next("watch").stream()
				ft.saw("Watching")
			})
		})
	}
}

func TestFeed_BacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		want := 200 * time.Millisecond
		ft.next("list").refuse()
		for range 12 {
			r, waited := ft.waited("list")
			within(t, "wait", waited, want/2, want*3/2)
			want = min(2*want, 30*time.Second)
			r.refuse()
		}
		ft.saw("Connecting", "Failing list: io: read/write on closed pipe")
	})
}

func TestFeed_BacksOffFromTheBeginningAfterAGoodWatch(t *testing.T) {
	for name, be := range map[string]func(*feedStream){
		"with an event":      func(s *feedStream) { s.send("ADDED", crdNamed("a", "8")) },
		"that lived for 5 s": func(*feedStream) { <-time.After(5 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				ft.next("list").list("7", "")
				for range 10 {
					ft.next("watch").refuse()
				}
				s := ft.next("watch").stream()
				be(s)
				s.breakOff()
				_, waited := ft.waited("watch")
				within(t, "wait", waited, 100*time.Millisecond, 300*time.Millisecond)
			})
		})
	}
}

func TestFeed_BacksOffFromWatchesThatEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		s.send("BOOKMARK", bookmark("8")) // tells nothing that one could use
		want := 200 * time.Millisecond
		for range 10 {
			s.end()
			ft.saw("Failing watch: " + errEndedAtOnce.Error())
			r, waited := ft.waited("watch")
			within(t, "wait", waited, want/2, want*3/2)
			want = min(2*want, 30*time.Second)
			s = r.stream()
			ft.saw("Watching")
		}
	})
}

func TestFeed_BacksOffFromWatchesThatExpireAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		want := 200 * time.Millisecond
		ft.next("list").list("7", "")
		ft.next("watch").fail(http.StatusGone, "Expired")
		ft.saw("Connecting", "list") // the first may be chance
		for i := range 10 {
			r, waited := ft.waited("list")
			within(t, "wait", waited, want/2, want*3/2)
			want = min(2*want, 30*time.Second)
			r.list("7", "")
			ft.next("watch").fail(http.StatusGone, "Expired")
			if i == 0 {
				ft.saw("list", "Failing watch: it is Expired")
			} else {
				ft.saw("list")
			}
		}
	})
}

func TestFeed_WaitsAsLongAsTheServerWants(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				if verb == "watch" {
					ft.next("list").list("7", "")
				}
				ft.next(verb).fail(http.StatusTooManyRequests, "TooManyRequests", "Retry-After", "100")
				_, waited := ft.waited(verb)
				within(t, "wait", waited, 100*time.Second, 110*time.Second)
				if got, want := ft.log[len(ft.log)-1], "Failing "+verb+": it is TooManyRequests"; got != want {
					t.Errorf("last callback %q, want %q", got, want)
				}
			})
		})
	}
}

func TestFeed_WaitsForAPauseThatAnotherRequestBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		s := ft.begin()
		ft.feed.endpoint.pauses.mu.Lock()
		ft.feed.endpoint.pauses.paths = map[string]*pauseError{crdPath: {until: time.Now().Add(100 * time.Second), err: io.ErrNoProgress}}
		ft.feed.endpoint.pauses.mu.Unlock()
		s.send("ADDED", crdNamed("a", "8"))
		s.end()
		_, waited := ft.waited("watch")
		within(t, "wait", waited, 100*time.Second, 110*time.Second)
	})
}

func TestFeed_ReportsAFailureOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.next("list").list("7", "")
		for range 5 {
			ft.next("watch").refuse() // with another query each time
		}
		ft.next("watch").fail(http.StatusInternalServerError, "InternalError")
		ft.next("watch")
		ft.saw("Connecting", "list", "Failing watch: io: read/write on closed pipe", "Failing watch: it is InternalError")
	})
}

func TestFeed_EndsWithItsContext(t *testing.T) {
	for name, until := range map[string]func(*feedTest){
		"before an answer":     func(ft *feedTest) { ft.next("list") },
		"within a list":        func(ft *feedTest) { ft.next("list").stream().write(`{"items":[`) },
		"while it backs off":   func(ft *feedTest) { ft.next("list").refuse() },
		"while it is paused":   func(ft *feedTest) { ft.next("list").fail(429, "TooManyRequests", "Retry-After", "100") },
		"while it is absent":   func(ft *feedTest) { ft.next("list").fail(404, "NotFound") },
		"before a watch":       func(ft *feedTest) { ft.next("list").list("7", ""); ft.next("watch") },
		"within a watch":       func(ft *feedTest) { ft.begin() },
		"within an event":      func(ft *feedTest) { ft.begin().write(`{"type":`) },
		"before it has begun":  func(*feedTest) {},
		"while it is expired":  func(ft *feedTest) { ft.begin().send("ERROR", statusOf(410, "Expired")) },
		"while it is slowed":   func(ft *feedTest) { ft.begin().end() },
		"while it is rejected": func(ft *feedTest) { ft.next("list").fail(403, "Forbidden") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ft := startFeed(t)
				until(ft)
				synctest.Wait()
				ft.log = nil
				began := time.Now()
				ft.cancel()
				<-ft.done
				within(t, "until run returned", time.Since(began), 0, 0)
				ft.sawNothing()
			})
		})
	}
}

func TestFeed_DoesNothingAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := startFeed(t)
		ft.cancel()
		<-ft.done
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ft.feed.endpoint.client = nil // would panic
		ft.done = make(chan struct{})
		ft.feed.run(ctx)
		close(ft.done)
	})
}

package churn_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/churn"
)

// plain is a subject that does something once, and leaves what end does not end.
type plain struct {
	restless []churn.Violation // at rest
	end      func()
}

func (*plain) Do(context.Context, churn.Op) error { return nil }
func (*plain) Settle()                            {}

func (p *plain) AtRest(context.Context) []churn.Violation { return p.restless }

func (p *plain) Stop(context.Context) []churn.Violation {
	p.end()
	return nil
}

// serve starts a server that has no namespaces, an empty list of t1s at version 7, and watches of them without events.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/t1s"):
			http.Error(w, "not found", http.StatusNotFound)
		case r.URL.Query().Get("watch") != "":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"kind":"T1List","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// client sends the requests of a subject.
type client struct {
	t   *testing.T
	env churn.Environment
}

// get sends a request for t1s with this query, and returns when the response has begun or, for a list, is complete.
func (c client) get(query string) (end func()) {
	c.t.Helper()
	address := fmt.Sprintf("%s/apis/%s/v1/t1s?%s", c.env.Config.Host, c.env.World.Group, query)
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	response, err := c.env.HTTP.Do(req) //nolint:bodyclose // end closes it
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(query, "watch") {
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			c.t.Error(err)
		}
	}
	return func() { _ = response.Body.Close() }
}

func TestRun_ReportsWhatASubjectDoes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		do   func(c client) *plain
		want churn.Invariant // empty: there is no violation
	}{
		{"a subject that does nothing", func(client) *plain { return &plain{end: func() {}} }, ""},
		{"a watch begins at the version of a list", func(c client) *plain {
			c.get("")()
			return &plain{end: c.get("watch=1&resourceVersion=7")}
		}, ""},
		{"a watch begins at another version", func(c client) *plain {
			c.get("")()
			return &plain{end: c.get("watch=1&resourceVersion=6")}
		}, churn.Resumable},
		{"a watch stays", func(c client) *plain {
			c.t.Cleanup(c.get("watch=1"))
			return &plain{end: func() {}}
		}, churn.Released},
		{"a goroutine stays", func(c client) *plain {
			stay := make(chan struct{})
			c.t.Cleanup(func() { close(stay) })
			go func() { <-stay }()
			return &plain{end: func() {}}
		}, churn.Released},
		{"a subject does not come to rest", func(client) *plain {
			return &plain{restless: []churn.Violation{{Invariant: churn.Status, Text: "not yet"}}, end: func() {}}
		}, churn.Status},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Patience: 50 * time.Millisecond, Subject: func(_ context.Context, env churn.Environment) (churn.Subject, error) {
				return tc.do(client{t, env}), nil
			}}
			result, err := churn.Run(t.Context(), cfg, nil)
			switch {
			case err != nil:
				t.Error(err)
			case tc.want == "" && result.Failed(), tc.want != "" && (!result.Failed() || result.Violations[0].Invariant != tc.want):
				t.Errorf("want %q, got\n%v", tc.want, result)
			}
		})
	}
}

// The lag is that of the script: neither a rest nor the next run has it.
func TestRun_AnIncompleteConfigIsAnError(t *testing.T) {
	for want, cfg := range map[string]churn.Config{
		"Config.Servers": {Subject: func(context.Context, churn.Environment) (churn.Subject, error) { return &plain{}, nil }},
		"Config.Subject": {Servers: []*rest.Config{serve(t)}},
	} {
		if _, err := churn.Run(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %s", err, want)
		}
	}
}

func TestRun_EndsItsLag(t *testing.T) {
	t.Parallel()
	var set []time.Duration
	lag := churn.NewServerLag(func(d time.Duration) { set = append(set, d) })
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Lag: lag, Subject: func(context.Context, churn.Environment) (churn.Subject, error) {
		return &plain{end: func() {}}, nil
	}}
	script, err := churn.Parse("lag ms=300\nsettle\nlag\nlag ms=0\nlag ms=7000")
	if err != nil {
		t.Fatal(err)
	}
	if result, err := churn.Run(t.Context(), cfg, script); err != nil || result.Failed() {
		t.Fatalf("%v\n%v", err, result)
	}
	const ms = time.Millisecond
	if want := []time.Duration{300 * ms, 0, 500 * ms, 0, 2000 * ms, 0}; !slices.Equal(set, want) {
		t.Errorf("the lag was %v, want %v", set, want)
	}
	cfg.Lag = nil
	if result, err := churn.Run(t.Context(), cfg, script); err != nil || result.Failed() {
		t.Errorf("without a ServerLag: %v\n%v", err, result)
	}
}

func TestRun_EndsItsLagIfTheScriptIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var set []time.Duration
	lag := churn.NewServerLag(func(d time.Duration) {
		set = append(set, d)
		cancel()
	})
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Lag: lag, Subject: func(context.Context, churn.Environment) (churn.Subject, error) {
		return &plain{end: func() {}}, nil
	}}
	script := churn.Script{churn.NewOp(churn.Lag, nil, "ms", "700"), churn.NewOp(churn.Pause, []string{"1h"})}
	if _, err := churn.Run(ctx, cfg, script); !errors.Is(err, context.Canceled) || !slices.Equal(set, []time.Duration{700 * time.Millisecond, 0}) {
		t.Errorf("%v, and the lag was %v", err, set)
	}
}

// The end of a context is no violation: also not of a shorter script.
func TestRun_EndOfTheContextIsAnError(t *testing.T) {
	t.Parallel()
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Patience: time.Minute, Subject: func(context.Context, churn.Environment) (churn.Subject, error) {
		return &plain{restless: []churn.Violation{{Invariant: churn.Status, Text: "not yet"}}, end: func() {}}, nil
	}}
	for _, script := range []churn.Script{nil, {churn.NewOp(churn.Settle, nil)}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if result, err := churn.Run(ctx, cfg, script); !errors.Is(err, context.DeadlineExceeded) || result.Failed() {
			t.Errorf("%v: %v\n%v", script, err, result)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		failed := churn.Result{Script: churn.Script{churn.NewOp(churn.Settle, nil), churn.NewOp(churn.Settle, nil)}, Violations: []churn.Violation{{Invariant: churn.Status}}}
		if shortest := churn.Shortest(ctx, cfg, failed); len(shortest.Script) != 2 {
			t.Errorf("shortened to\n%v\n%v", shortest.Script, shortest)
		}
	}
}

// Operations after the one that has failed are not carried out. A shorter script does not have them, also if there is no time to look for one.
func TestShortest_BeginsWithTheOperationThatFailed(t *testing.T) {
	t.Parallel()
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Patience: time.Millisecond, Subject: func(context.Context, churn.Environment) (churn.Subject, error) {
		return &plain{restless: []churn.Violation{{Invariant: churn.Status, Text: "not yet"}}, end: func() {}}, nil
	}}
	settle, retry := churn.NewOp(churn.Settle, nil), churn.NewOp(churn.Retry, []string{"l1"})
	result, err := churn.Run(t.Context(), cfg, churn.Script{retry, settle, retry, settle})
	if err != nil || result.Done != 2 || len(result.Script) != 4 {
		t.Errorf("%d of %d operations were carried out: %v", result.Done, len(result.Script), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if shortest := churn.Shortest(ctx, cfg, result); shortest.Script.String() != "retry l1\nsettle\n" || !shortest.Failed() {
		t.Errorf("shortened to\n%v\n%v", shortest.Script, shortest)
	}
	if result, err := churn.Run(t.Context(), cfg, churn.Script{retry}); err != nil || !result.Failed() || result.Done != 1 {
		t.Errorf("at the end: %d operations, %v", result.Done, err)
	}
}

// Each script that does not come to rest breaks Rest: that alone is not the violation that a shorter script must have.
func TestShortest_KeepsAnInvariant(t *testing.T) {
	t.Parallel()
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Patience: time.Millisecond, Subject: func(context.Context, churn.Environment) (churn.Subject, error) {
		return &plain{restless: []churn.Violation{{Invariant: churn.Status, Text: "not yet"}}, end: func() {}}, nil
	}}
	script := churn.Script{churn.NewOp(churn.Settle, nil), churn.NewOp(churn.Settle, nil)}
	for invariant, want := range map[churn.Invariant]int{churn.Status: 0, churn.Equal: 2} {
		failed := churn.Result{Script: script, Violations: []churn.Violation{{Invariant: invariant}, {Invariant: churn.Rest}}}
		if shortest := churn.Shortest(t.Context(), cfg, failed); len(shortest.Script) != want {
			t.Errorf("%s: shortened to %d operations, want %d", invariant, len(shortest.Script), want)
		}
	}
}

// asking is a subject that sends a request whenever it must be at rest.
type asking struct {
	plain
	ask func()
}

func (a *asking) AtRest(context.Context) []churn.Violation {
	a.ask()
	return nil
}

func TestRun_ServersAlternateAtRest(t *testing.T) {
	t.Parallel()
	for period, want := range map[string]bool{"1": true, "0": false} {
		var asked atomic.Bool
		second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Store(true)
			http.Error(w, "not found", http.StatusNotFound)
		}))
		t.Cleanup(second.Close)
		cfg := churn.Config{Servers: []*rest.Config{serve(t), {Host: second.URL}}, Subject: func(_ context.Context, env churn.Environment) (churn.Subject, error) {
			return &asking{plain{end: func() {}}, func() { client{t, env}.get("")() }}, nil //nolint:contextcheck // it asks without a context
		}}
		script := churn.Script{churn.NewOp(churn.Alternate, nil, "period", period), churn.NewOp(churn.Settle, nil)}
		if result, err := churn.Run(t.Context(), cfg, script); err != nil || result.Failed() {
			t.Errorf("%v\n%v", err, result)
		}
		if asked.Load() != want {
			t.Errorf("period %s: the second server was asked at rest: %v, want %v", period, asked.Load(), want)
		}
	}
}

// timing is a subject that records when its operations end, and when it must be at rest.
type timing struct {
	plain
	done, asked time.Time
}

func (s *timing) Do(context.Context, churn.Op) error {
	s.done, s.asked = time.Now(), time.Time{}
	return nil
}

func (s *timing) AtRest(context.Context) []churn.Violation {
	if s.asked.IsZero() {
		s.asked = time.Now()
	}
	return nil
}

// A connection that breaks because its fault ends counts as open for a moment.
func TestRun_NoRestRightAfterTheEndOfAFault(t *testing.T) {
	t.Parallel()
	subject := &timing{plain: plain{end: func() {}}}
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Subject: func(context.Context, churn.Environment) (churn.Subject, error) { return subject, nil }}
	script := churn.Script{churn.NewOp(churn.Fault, []string{"f1", "t1"}, "kind", "hang"), churn.NewOp(churn.Retry, []string{"l1"}), churn.NewOp(churn.Settle, nil)}
	if result, err := churn.Run(t.Context(), cfg, script); err != nil || result.Failed() {
		t.Errorf("%v\n%v", err, result)
	}
	if after := subject.asked.Sub(subject.done); after < 20*time.Millisecond {
		t.Errorf("the subject is asked %v after the last operation", after)
	}
}

// observing is a subject that records during each operation whether discovery fails.
type observing struct {
	plain
	env   churn.Environment
	fails []bool
}

func (s *observing) Do(context.Context, churn.Op) error {
	s.fails = append(s.fails, s.env.DiscoveryFails())
	return nil
}

func TestRun_SubjectKnowsWhetherDiscoveryFails(t *testing.T) {
	t.Parallel()
	script, err := churn.Parse(`
		retry l1
		fault f1 t1 kind=breakdefinitions
		retry l1
		heal f1
		retry l1
		fault f1 all kind=fail
		retry l1
		fault f2 all kind=stalegroup
		retry l1
		settle
		retry l1`)
	if err != nil {
		t.Fatal(err)
	}
	subject := &observing{plain: plain{end: func() {}}}
	cfg := churn.Config{Servers: []*rest.Config{serve(t)}, Subject: func(_ context.Context, env churn.Environment) (churn.Subject, error) {
		subject.env = env
		return subject, nil
	}}
	if result, err := churn.Run(t.Context(), cfg, script); err != nil || result.Failed() {
		t.Errorf("%v\n%v", err, result)
	}
	if want := []bool{false, true, false, false, true, false}; !slices.Equal(subject.fails, want) {
		t.Errorf("discovery fails: %v, want %v", subject.fails, want)
	}
}

package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

func tooMany(seconds int) error {
	return apierrors.NewTooManyRequests("later", seconds)
}

// The text of a proxy is in the error, unless it is long, a page, or may have credentials.
func TestFaultOf_HasTheTextOfAProxy(t *testing.T) {
	for body, want := range map[string]string{
		" no upstream\n":                   "no upstream",
		"":                                 "Bad Gateway",
		"<html>no upstream":                "Bad Gateway",
		"no\nupstream":                     "Bad Gateway",
		strings.Repeat("no upstream ", 20): "Bad Gateway",
		`upstream: {"data":"c2VjcmV0"}`:    "Bad Gateway",
		"denied: token=c2VjcmV0":           "Bad Gateway",
	} {
		request := &http.Request{URL: &url.URL{Path: "/apis"}}
		got := faultOf(&http.Response{StatusCode: http.StatusBadGateway, Body: io.NopCloser(strings.NewReader(body)), Request: request}).Error()
		if want := "GET /apis: 502 " + want; got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

// One server may refuse 20,000 resources. Each refusal has the same cost.
func TestPauses_AreBoundedAndHaveConstantCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pauses
		for i := range 20_000 {
			p.settle(fmt.Sprint("/apis/g", i), tooMany(60))
		}
		if got := len(p.paths); got != maxPaused {
			t.Errorf("%d paths are remembered, want %d", got, maxPaused)
		}
		if p.of("/apis/g19999") == nil {
			t.Error("the last one is not")
		}
		looks := p.look
		p.settle("/apis/another", tooMany(60))
		if !p.look.Equal(looks) {
			t.Error("all of them are looked through for each one more")
		}
		<-time.After(2 * time.Minute)
		p.settle("/apis/later", tooMany(60))
		if got := len(p.paths); got != 1 {
			t.Errorf("%d paths are remembered after their time, want 1", got)
		}
	})
}

func TestPauses_GrowWhileAPathFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pauses
		failure := errors.New("connection refused")
		begin, asked := time.Now(), 0
		for time.Since(begin) < time.Minute {
			if err := p.of("/apis"); err == nil {
				asked++
				p.settle("/apis", failure)
			} else if !errors.Is(err, failure) || err.Error() != failure.Error() {
				t.Fatalf("during the pause: %v, want the last error", err)
			}
			<-time.After(time.Millisecond)
		}
		if asked < 60 || asked > 67 { // one a second, and a few at the beginning
			t.Errorf("asked %d times in a minute", asked)
		}
		p.settle("/apis", context.Canceled) // by the callers
		if p.of("/apis") == nil {
			t.Error("a request that was cut short ends the pause")
		}
		if p.of("/api") != nil {
			t.Error("another path is not asked for either")
		}
		for _, answer := range []error{nil, apierrors.NewNotFound(schema.GroupResource{}, "")} {
			p.settle("/apis", failure)
			p.settle("/apis", answer)
			p.settle("/apis", failure)
			if err := p.of("/apis"); err != nil {
				t.Errorf("after %v and one failure it is not asked for: %v", answer, err)
			}
		}
	})
}

// client-go waits after each 5xx. Only Retry-After counts as requested by the server.
func TestPauses_OnlyRetryAfterCountsAsRequestedByTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pauses
		fault := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable}}
		p.settle("/apis", fault)
		if err := p.of("/apis"); err != nil {
			t.Errorf("after one failure: %v", err)
		}
		p.settle("/apis", tooMany(3600))
		<-time.After(maxPause - time.Second)
		if err := p.of("/apis"); err == nil {
			t.Error("the server's wish is not obeyed")
		}
		<-time.After(2 * time.Second)
		if err := p.of("/apis"); err != nil {
			t.Errorf("obeyed for too long: %v", err)
		}
	})
}

func TestBackoff_DoublesUpToItsCap(t *testing.T) {
	for _, tc := range []struct {
		name        string
		first, last time.Duration
		want        []time.Duration
	}{
		{"of a path", firstBackoff, maxBackoff, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second, time.Second}},
		{"of an object", readBackoff, readAgain, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
		{"of documents", usualPace.backoff().Duration, usualPace.backoff().Cap, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
		{"of a watch", usualWatchPace.first, usualWatchPace.last, []time.Duration{
			200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
			3200 * time.Millisecond, 6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 30 * time.Second, 30 * time.Second,
		}},
	} {
		backoff := newBackoff(tc.first, tc.last)
		for i, want := range tc.want {
			if got := backoff.Step(); got != want {
				t.Errorf("%s: pause %d = %v, want %v", tc.name, i, got, want)
			}
		}
	}
}

func TestSpread_KeepsItsBounds(t *testing.T) {
	for _, part := range []float64{0.1, 0.5} {
		low, high := time.Duration(float64(time.Minute)*(1-part)), time.Duration(float64(time.Minute)*(1+part))
		least, most := high, low
		for range 1000 {
			d := spread(time.Minute, part, wait.Jitter)
			least, most = min(least, d), max(most, d)
		}
		if tenth := (high - low) / 10; least < low || least > low+tenth || most > high || most < high-tenth {
			t.Errorf("spread by %v: from %v to %v, want from %v to %v", part, least, most, low, high)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRecovery_ARequestThatSucceedsAfterAFailureEndsBackOffs(t *testing.T) {
	var r recovery
	r.succeeded("/apis")
	crds, watch := r.failed("/crds"), r.waiting()
	r.succeeded("/apis") // it has not failed: the server was not out
	if closed(crds) || closed(watch) {
		t.Fatal("what has not failed has ended a back-off")
	}
	r.failed("/apis")
	r.succeeded("/apis")
	if !closed(crds) || !closed(watch) {
		t.Error("the first success did not end them")
	}
	again := r.waiting()
	r.succeeded("/apis")
	if closed(again) {
		t.Error("the second one has ended the next")
	}
	r.succeeded("/crds") // which was still failing
	if !closed(again) {
		t.Error("a success later did not end it")
	}
}

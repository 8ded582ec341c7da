package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// callLog records the callbacks of one call of Follow, and the events of the handlers of its leases.
type callLog struct {
	recorder

	held map[string]<-chan struct{} // channels that calls, such as "start ships", wait for
	each time.Duration              // the time of a handler's call

	leases sync.Map // by the name of the type
}

// OnDelete implements cache.ResourceEventHandler.
func (d *callLog) OnDelete(obj any) {
	time.Sleep(d.each)
	d.recorder.OnDelete(obj)
}

// stops returns the calls of Stopped.
func (d *callLog) stops() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.events), func(line string) bool { return !strings.HasPrefix(line, "stop ") })
}

// write records a call, and returns a channel that the call must wait for, or nil.
func (d *callLog) write(call, name string, detail ...any) (until <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := strings.Join(strings.Fields(fmt.Sprint(append([]any{call, " ", name, " "}, detail...)...)), " ")
	d.events = append(d.events, line)
	return d.held[call+" "+name]
}

// funcs returns functions that write to the log.
func (d *callLog) funcs(t *testing.T) dynamicinformer.FollowFuncs {
	t.Helper()
	return dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) {
			until := d.write("start", l.Status().GVR.Resource)
			d.leases.Store(l.Status().GVR.Resource, l)
			if _, err := l.AddEventHandler(d); err != nil && !errors.Is(err, dynamicinformer.ErrReleased) {
				t.Errorf("AddEventHandler: %v", err)
			}
			waitUntil(until)
		},
		Stopped: func(res discovery.Resource, evidence discovery.Evidence) {
			waitUntil(d.write("stop", res.GVR.Resource, string(evidence.Kind), " ", string(evidence.CRDUID)))
		},
	}
}

func waitUntil(until <-chan struct{}) {
	if until != nil {
		<-until
	}
}

// wants compares the calls since the last comparison.
func (d *callLog) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // a resolver reads events in batches
	synctest.Wait()
	if diff := cmp.Diff(want, d.take()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// follower is a running call of Follow.
type follower struct {
	*callLog
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
}

// follow calls Follow with s on a factory that is started.
func follow(t *testing.T, f *dynamicinformer.Factory, s discovery.Selector, opts ...dynamicinformer.FollowOption) *follower {
	t.Helper()
	return (&callLog{}).follow(t, f, s, opts...)
}

// follow is the function follow, with this log.
func (d *callLog) follow(t *testing.T, f *dynamicinformer.Factory, s discovery.Selector, opts ...dynamicinformer.FollowOption) *follower {
	t.Helper()
	f.Start(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	w := &follower{callLog: d, t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { w.ended <- f.Follow(ctx, s, w.funcs(t), opts...) }()
	return w
}

// leave ends the call of Follow.
func (w *follower) leave() {
	w.t.Helper()
	w.cancel()
	if err := <-w.ended; err != nil {
		w.t.Errorf("Follow: %v", err)
	}
}

// end ends the call of Follow, and checks that f has no informers.
func (w *follower) end(f *dynamicinformer.Factory) {
	w.t.Helper()
	w.leave()
	if left := f.Status(); len(left) > 0 {
		w.t.Errorf("%d informers are left: %+v", len(left), left[0])
	}
	shutdown(w.t, f)
}

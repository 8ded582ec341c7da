package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// ErrNotSynced is matched by every [*NotSyncedError].
var ErrNotSynced = errors.New("informer not synced")

// NotSyncedError says why one resource's informer has not synced. It unwraps to
// the cause, so that apierrors.IsForbidden, meta.IsNoMatchError and the sentinels
// of package discovery hold for it where they hold for that.
type NotSyncedError struct {
	GVR schema.GroupVersionResource
	// Namespace is where requests go; empty means everywhere. Before discovery has
	// found that a type has no namespaces, it is the factory's.
	Namespace string
	// Verb is that of the request that failed, list or watch; empty if none was
	// made.
	Verb   string
	Reason Reason
	// Since is when it went wrong first without having gone right since.
	Since time.Time
	// Attempts is how often it has gone wrong since.
	Attempts int
	// Err is how it went wrong last; nil if nothing has.
	Err error

	at time.Time // when this was found
}

func (e *NotSyncedError) Error() string {
	var b strings.Builder
	// The errors of discovery begin with the resource.
	if refused := e.Verb == "" && e.Err != nil; refused {
		fmt.Fprintf(&b, "%v (%s", e.Err, e.Reason)
	} else {
		fmt.Fprintf(&b, "%s: not synced %s: ", discovery.RefOf(e.GVR), namespaceText(e.Namespace))
		if e.Err != nil {
			fmt.Fprintf(&b, "cannot %s: %v ", e.Verb, e.Err)
		}
		fmt.Fprintf(&b, "(%s", e.Reason)
	}
	if !e.Since.IsZero() && !e.at.IsZero() {
		fmt.Fprintf(&b, " for %s", e.at.Sub(e.Since).Round(100*time.Millisecond))
	}
	switch {
	case e.Attempts == 1:
		b.WriteString(", 1 attempt")
	case e.Attempts > 1:
		fmt.Fprintf(&b, ", %d attempts", e.Attempts)
	}
	b.WriteString(")")
	if advice := e.advice(); advice != "" {
		b.WriteString("; " + advice)
	}
	return b.String()
}

// advice is what a person can do, or "".
func (e *NotSyncedError) advice() string {
	switch {
	case e.Reason == ReasonForbidden && e.Verb == "":
		return "let the user read discovery, or do without it: WithDiscovery(nil)"
	case e.Reason == ReasonForbidden:
		return "grant the user list and watch on it"
	case e.Reason == ReasonUnauthorized:
		return "check the credentials"
	case e.Reason == ReasonUnavailable:
		return "is the API server reachable and healthy?"
	case e.Reason == ReasonConversionFailed:
		return "see to the CRD's conversion webhook"
	case e.Reason == ReasonNotStarted:
		return "ask for it with ForResource and call Start"
	}
	return ""
}

// Is reports whether target is ErrNotSynced.
func (e *NotSyncedError) Is(target error) bool { return target == ErrNotSynced }

// Unwrap returns the cause.
func (e *NotSyncedError) Unwrap() error { return e.Err }

// WaitForSync waits until the informers on gvrs, or all of the factory's if none
// are given, have each listed their resource once, or until ctx ends. It returns
// nil, or the [*NotSyncedError] of each that has not, joined in order of gvrs or,
// for all, of name. It waits on channels and does not poll.
//
// A type that can't be listed holds up nobody but those who wait for it, and for
// no longer than their ctx lets it: the error has the reason. A resource that was
// never asked for with ForResource is an error at once; one whose informer ended
// before it had synced is not waited for. Waiting does not start informers.
func (f *Factory) WaitForSync(ctx context.Context, gvrs ...schema.GroupVersionResource) error {
	waiting, unknown := f.known(gvrs)
	if unknown != nil {
		return errors.Join(unknown...)
	}
	var errs []error
	for _, e := range waiting {
		f.wait(ctx, e)
	}
	for _, e := range waiting {
		if err := f.notSynced(e); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// wait waits until e has synced or never will, or for ctx.
func (f *Factory) wait(ctx context.Context, e *entry) {
	closing := f.closing
	for {
		select {
		case <-e.synced():
			return
		case <-e.done:
			return
		case <-ctx.Done():
			return
		case <-closing:
			// What has been started by now goes on to its own end; what has
			// not will never be.
			f.mu.Lock()
			started := e.started()
			f.mu.Unlock()
			if !started {
				return
			}
			closing = nil
		}
	}
}

// known returns the entries of gvrs, or all sorted by name, and an error for each
// that nobody has asked for.
func (f *Factory) known(gvrs []schema.GroupVersionResource) (entries []*entry, unknown []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(gvrs) == 0 {
		gvrs = slices.SortedFunc(maps.Keys(f.entries), func(a, b schema.GroupVersionResource) int {
			return strings.Compare(a.String(), b.String())
		})
	}
	for _, gvr := range gvrs {
		if e := f.entries[gvr]; e != nil {
			entries = append(entries, e)
			continue
		}
		unknown = append(unknown, &NotSyncedError{GVR: gvr, Namespace: f.options.namespace, Reason: ReasonNotStarted})
	}
	return entries, unknown
}

// notSynced returns why e has not synced, or nil if it has.
func (f *Factory) notSynced(e *entry) error {
	if e.hasSynced() {
		return nil
	}
	err := e.trouble.notSynced()
	f.mu.Lock()
	started := e.started()
	f.mu.Unlock()
	switch {
	case closed(e.done), !started && closed(f.closing):
		err.Reason = ReasonStopped
	case !started:
		err.Reason = ReasonNotStarted
	}
	return err
}

// waitForStarted waits for the started informers and returns which have synced.
func (f *Factory) waitForStarted(ctx context.Context) map[schema.GroupVersionResource]bool {
	f.mu.Lock()
	started := map[schema.GroupVersionResource]*entry{}
	for gvr, e := range f.entries {
		if e.started() {
			started[gvr] = e
		}
	}
	f.mu.Unlock()
	synced := make(map[schema.GroupVersionResource]bool, len(started))
	for gvr, e := range started {
		f.wait(ctx, e)
		synced[gvr] = e.hasSynced()
	}
	return synced
}

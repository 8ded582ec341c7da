package dynamicinformer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// logReader knows what the lines of the log say about the informer on widgets, and that no line repeats another one.
type logReader struct {
	*testing.T
	logger  klog.Logger
	read    int                 // the number of entries that have been read
	fails   map[string][]string // the reasons of failures that have not ended, by namespace; empty: all
	gone    bool
	leftOut bool
	whole   time.Time // when the last failure in all namespaces ended
	lines   int       // in this minute
	minute  time.Time
	unclear bool // lines may be missing, because of their limit, or come later, because each watch ends soon
}

// follow reads the new lines.
func (l *logReader) follow() {
	l.Helper()
	synctest.Wait()
	all := l.logger.GetSink().(ktesting.Underlier).GetBuffer().Data()
	for _, entry := range all[l.read:] {
		l.read++
		values := append(slices.Clone(entry.WithKVList), entry.ParameterKVList...)
		value := func(key string) string {
			if i := slices.Index(values, any(key)); i >= 0 {
				return fmt.Sprint(values[i+1])
			}
			return ""
		}
		if value("resource") != "widgets.v1.example.com" {
			continue
		}
		if entry.Timestamp.Sub(l.minute) >= time.Minute {
			l.minute, l.lines = entry.Timestamp, 0
		}
		l.lines++
		if l.lines == 10 || strings.Contains(fmt.Sprint(entry.Err), "ends watches within") {
			l.unclear = true
			return
		}
		l.line(entry.Message, value("namespace"), value("reason"))
	}
}

// line checks a line against those before.
func (l *logReader) line(text, namespace, reason string) {
	l.Helper()
	before := fmt.Sprintf("failing: %v, gone: %v, objects left out: %v", l.fails, l.gone, l.leftOut)
	var right bool
	switch text {
	case "Failed to list or watch, retrying", "Waiting for the resource before listing it":
		right = !slices.Contains(l.fails[namespace], reason)
		l.fails[namespace] = append(l.fails[namespace], reason)
	case "Recovered":
		right = slices.Contains(l.fails[namespace], reason) && (namespace != "" || !l.gone)
		delete(l.fails, namespace)
		l.whole = time.Now()
	case "The resource is gone, waiting for it to come back":
		right = !l.gone
		l.gone, l.fails[""] = true, append(l.fails[""], string(status.ReasonNotFound))
	case "The resource is there again":
		right = l.gone
		l.gone = false
		delete(l.fails, "")
	case "Objects are left out":
		right = !l.leftOut
		l.leftOut = true
	case "No object is left out any more":
		right = l.leftOut
		l.leftOut = false
	}
	if !right {
		l.Errorf("%v: %q, namespace %q, reason %s, after %s", time.Now(), text, namespace, reason, before)
	}
}

// check compares the lines with the status. If all namespaces fail, the log has the reason of one of them. When another one recovers, a namespace
// has a line of its own after its next attempt.
func (l *logReader) check(s status.Informer) {
	l.Helper()
	says := func(namespace string, reason status.Reason) bool {
		return slices.Contains(l.fails[namespace], string(reason))
	}
	fails := s.Err != nil && s.FailedObjects == 0
	of := func(n status.Namespace) bool { return says("", n.Reason) }
	wrong := fails && !says("", s.Reason) && !slices.ContainsFunc(s.Namespaces, of) || !fails && l.fails[""] != nil
	wrong = wrong || l.leftOut != (s.Quarantine.Counts[status.ReasonTransformFailed] > 0)
	for _, n := range s.Namespaces {
		wrong = wrong || n.Err == nil && l.fails[n.Name] != nil
		wrong = wrong || n.Err != nil && !fails && time.Since(l.whole) > time.Minute && !says(n.Name, n.Reason)
	}
	if wrong {
		l.Errorf("%v: status %s %+v, the log says: failing: %v, objects left out: %v", time.Now(), s, s.Namespaces, l.fails, l.leftOut)
	}
}

// Requests fail at random, and the type comes and goes. The log then says what the status says: one line has reported each failure with its
// reason, and another one its end.
func TestLog_SaysWhatTheStatusSaysAfterRandomFaults(t *testing.T) {
	for seed := range uint64(fewer(60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomLog(t, seed) }) })
	}
}

func randomLog(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 99))
	cluster := fakecluster.New(widgetType, blockType)
	opts := []dynamicinformer.Option{dynamicinformer.WithTransform(rejectBad)}
	discovered := r.IntN(3) > 0
	if discovered {
		opts = append(opts, withDiscovery(t, cluster))
	}
	if r.IntN(2) == 0 {
		opts = append(opts, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
	}
	if r.IntN(2) == 0 {
		opts = append(opts, dynamicinformer.WithNamespaces("ns", "other"))
	}
	log := &logReader{T: t, logger: ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0))), fails: map[string][]string{}}
	f := newFactory(t, cluster, opts...)
	f.Start(klog.NewContext(t.Context(), log.logger))
	lease := acquire(t, f, widgets)
	faults := []error{
		apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewNotFound(schema.GroupResource{}, ""), apierrors.NewUnauthorized("x"),
		apierrors.NewTooManyRequests("x", 3), apierrors.NewResourceExpired("x"), apierrors.NewInternalError(errBad), apierrors.NewTimeoutError("x", 1),
		apierrors.NewServiceUnavailable("x"), apierrors.NewGenericServerResponse(405, "watch", schema.GroupResource{}, "", "x", 0, true),
	}
	served, ns := true, cluster.Resource(widgets).Namespace("ns")
	for step := range 60 {
		name := fmt.Sprintf("w%d", r.IntN(6))
		switch r.IntN(12) {
		case 0, 1:
			_, _ = ns.Create(t.Context(), newObject(name, nil), metav1.CreateOptions{})
		case 2, 3:
			if o, err := ns.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
				o.SetLabels(map[string]string{"bad": []string{"", "panic", "error"}[r.IntN(3)]})
				_, _ = ns.Update(t.Context(), o, metav1.UpdateOptions{})
			}
		case 4:
			_ = ns.Delete(t.Context(), name, metav1.DeleteOptions{})
		case 5:
			cluster.CloseWatches(widgets)
		case 6:
			create(t, cluster, blocks, "", fmt.Sprintf("b%d", step))
			cluster.Expire(widgets)
		case 7, 8:
			verb, fault, only := []string{"list", "watch", "discover", ""}[r.IntN(4)], faults[r.IntN(len(faults))], []string{"", "", "ns"}[r.IntN(3)]
			rate, requests := 1+r.Int32N(3), atomic.Int32{}
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				matches := (req.Verb == verb || verb == "" && (req.Verb == "list" || req.Verb == "watch")) && (only == "" || req.Namespace == only)
				if matches && requests.Add(1)%rate == 0 {
					return fault
				}
				return nil
			})
			if r.IntN(2) == 0 {
				cluster.CloseWatches(widgets)
			}
		case 9:
			cluster.Intercept(nil)
		case 10:
			if discovered {
				cluster.Withdraw(widgets)
				served = false
			}
		case 11:
			if !served {
				cluster.Serve(widgetType)
				served = true
			}
		}
		time.Sleep([]time.Duration{0, time.Millisecond, 100 * time.Millisecond, 3 * time.Second, 40 * time.Second, 10 * time.Minute}[r.IntN(6)])
		if log.follow(); log.unclear {
			break
		}
		if log.check(lease.Status()); t.Failed() {
			break
		}
	}
	cluster.Intercept(nil)
	shutdown(t, f)
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// printer prints a line for each event. It is safe for concurrent use.
type printer struct {
	mu  sync.Mutex
	out io.Writer

	watching sync.WaitGroup
}

func newPrinter(out io.Writer) *printer { return &printer{out: out} }

func (p *printer) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// wait waits for the goroutines that print.
func (p *printer) wait() { p.watching.Wait() }

// funcs returns functions that print the start and the stop of types. After the end of ctx, when all
// types stop, they print nothing.
func (p *printer) funcs(ctx context.Context) dynamicinformer.FollowFuncs {
	return dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) {
			ref := discovery.RefOf(l.Status().GVR)
			p.printf("+ %s started", ref)
			p.watching.Go(func() { p.states(ref, l.Watch(ctx)) })
			_, _ = l.AddEventHandler(objects{p, l.Status().GVR.GroupResource()}) // fails only after the end of the lease
		},
		Stopped: func(res discovery.Resource, evidence discovery.Evidence) {
			if ctx.Err() == nil {
				p.printf("- %s stopped (%s)", discovery.RefOf(res.GVR), cmp.Or(string(evidence.Kind), "no longer selected"))
			}
		},
	}
}

// states prints when a type becomes degraded, and when it has synced again. It does not print other
// states.
func (p *printer) states(ref discovery.Ref, states iter.Seq[status.Informer]) {
	var printed status.Reason
	for s := range states {
		switch {
		case s.State == status.StateDegraded && s.Reason != printed:
			printed = s.Reason
			p.printf("! %s %s (%s): %v", ref, s.State, s.Reason, s.Err)
		case s.State == status.StateSynced && printed != "":
			printed = ""
			p.printf("! %s %s", ref, s.State)
		}
	}
}

// objects prints the events of the objects of one type.
type objects struct {
	printer *printer
	of      schema.GroupResource
}

var _ cache.ResourceEventHandler = objects{}

// OnAdd implements cache.ResourceEventHandler.
func (o objects) OnAdd(obj any, _ bool) { o.print("ADDED", obj) }

// OnUpdate implements cache.ResourceEventHandler. It prints only changed objects.
func (o objects) OnUpdate(oldObj, newObj any) {
	before, err := meta.Accessor(oldObj)
	after, failed := meta.Accessor(newObj)
	if err == nil && failed == nil && before.GetResourceVersion() != after.GetResourceVersion() {
		o.print("UPDATED", newObj)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (o objects) OnDelete(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	o.print("DELETED", obj)
}

func (o objects) print(event string, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return // not an object
	}
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	o.printer.printf("%-7s %s %s", event, o.of, name)
}

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

// printer prints a line for each thing that happens. It is safe for concurrent use.
type printer struct {
	mu  sync.Mutex
	out io.Writer

	watching sync.WaitGroup
}

func newPrinter(out io.Writer) *printer { return &printer{out: out} }

func (p *printer) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// wait waits until nothing is printed any more.
func (p *printer) wait() { p.watching.Wait() }

// funcs returns what prints the lives of types, until ctx ends: then all stop, which is not
// worth a line each.
func (p *printer) funcs(ctx context.Context) dynamicinformer.FollowFuncs {
	return dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) {
			ref := discovery.RefOf(l.Status().GVR)
			p.say("+ %s started", ref)
			p.watching.Go(func() { p.states(ref, l.Watch(ctx)) })
			_, _ = l.AddEventHandler(objects{p, l.Status().GVR.GroupResource()}) // unless everything ends
		},
		Stopped: func(res discovery.Resource, evidence discovery.Evidence) {
			if ctx.Err() == nil {
				p.say("- %s stopped (%s)", discovery.RefOf(res.GVR), cmp.Or(string(evidence.Kind), "not selected any more"))
			}
		},
	}
}

// states prints what goes wrong with a type, and that it is well again. What it comes through
// on its way is not worth a line.
func (p *printer) states(ref discovery.Ref, states iter.Seq[status.Informer]) {
	var told status.Reason
	for s := range states {
		switch {
		case s.State == status.StateDegraded && s.Reason != told:
			told = s.Reason
			p.say("! %s %s (%s): %v", ref, s.State, s.Reason, s.Err)
		case s.State == status.StateSynced && told != "":
			told = ""
			p.say("! %s %s", ref, s.State)
		}
	}
}

// objects prints what happens to the objects of one type.
type objects struct {
	printer *printer
	of      schema.GroupResource
}

var _ cache.ResourceEventHandler = objects{}

// OnAdd implements cache.ResourceEventHandler.
func (o objects) OnAdd(obj any, _ bool) { o.print("ADDED", obj) }

// OnUpdate implements cache.ResourceEventHandler. What has not changed is not shown.
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

func (o objects) print(what string, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return // what is no object is not shown
	}
	name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	o.printer.say("%-7s %s %s", what, o.of, name)
}

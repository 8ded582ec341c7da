package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/sharding"
)

var blocks = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

const (
	memberCommand = "member" // the first argument of a process of the group
	reportPeriod  = 200 * time.Millisecond
	leaveTimeout  = 10 * time.Second
	// leaseDuration is shorter than the default, so that a killed process is replaced soon.
	leaseDuration = 5 * time.Second
)

// invitation is the first line on the standard input of a process. The process leaves when standard input ends.
type invitation struct {
	Identity, Host, Token, ServerName string
	CAData                            []byte
}

// report is a line on the standard output of a process.
type report struct {
	Slots                       []int // that the process has
	Pending, LettingGo, Objects int
	Handled                     int64 // calls of the handler
	Reason                      sharding.Reason
	Loading                     bool // the cache does not have all objects of the slots yet
	ByClient                    bool // the server sends all objects
}

// memberProcess runs a process of the group.
func memberProcess(ctx context.Context, in io.Reader, out io.Writer) error {
	// Ctrl-C in a terminal is for the parent, which then closes standard input. A report that no process reads is an error of the write,
	// and does not end this process before it has left the group.
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	lines := json.NewDecoder(in)
	var to invitation
	if err := lines.Decode(&to); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_ = lines.Decode(&struct{}{}) // returns at the end
	}()
	cfg := &rest.Config{
		Host: to.Host, BearerToken: to.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: to.CAData, ServerName: to.ServerName},
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, // the server's leases are custom resources, which have no other format
	}
	reports := json.NewEncoder(out)
	return join(ctx, cfg, to.Identity, func(r report) {
		if reports.Encode(r) != nil {
			cancel() // the parent has ended
		}
	})
}

// join joins the group, and watches its part of the objects until ctx ends, and then returns nil.
func join(ctx context.Context, cfg *rest.Config, identity string, tell func(report)) (err error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	// The end of ctx ends the membership below, after the informers.
	shard, err := sharding.Join(context.WithoutCancel(ctx), client, sharding.Config{
		Namespace: metav1.NamespaceDefault, Name: "ipamblocks", Identity: identity, LeaseDuration: leaseDuration,
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		err = errors.Join(err, shard.Leave(ctx))
	}()
	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithShard(shard))
	if err != nil {
		return err
	}
	factory.Start(ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
		defer cancel()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()
	lease, err := factory.Acquire(ctx, blocks)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	// Handlers are called only for objects that this process owns. A program with a queue asks shard.Owns again.
	var handled atomic.Int64
	count := func() { handled.Add(1) }
	if _, err := lease.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { count() }, UpdateFunc: func(any, any) { count() }, DeleteFunc: func(any) { count() },
	}); err != nil {
		return unlessEnded(ctx, err)
	}
	tick := time.NewTicker(reportPeriod)
	defer tick.Stop()
	for {
		group, informer := shard.Status(), lease.Status()
		tell(report{
			Slots: slices.Collect(group.Held.All()), Pending: group.Pending.Len(), LettingGo: group.LettingGo.Len(), Reason: group.Reason, Loading: len(group.Loading) > 0,
			Objects: informer.Objects, Handled: handled.Load(), ByClient: informer.Shard != nil && informer.Shard.ByClient,
		})
		select {
		case <-tick.C:
		case <-shard.Done(): // for example, its identity is in use
			return shard.Err()
		case <-ctx.Done():
			return nil
		}
	}
}

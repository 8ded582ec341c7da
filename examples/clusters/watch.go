package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// report gets each event and each change of a state in a cluster, and, without a cluster, each step of the demonstration.
// Calls are never concurrent with one another.
type report func(cluster, text string)

// serial returns a report that may be called concurrently. It makes one call of to at a time.
func (to report) serial() report {
	var mu sync.Mutex
	return func(cluster, text string) {
		mu.Lock()
		defer mu.Unlock()
		to(cluster, text)
	}
}

// unlessEnded returns nil after the end of ctx, and otherwise err.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watch watches the objects of gvr in all clusters until ctx ends, and then returns nil, or until one of them fails. Each
// cluster has a factory; the factories share the tables of strings, since objects in several clusters are often similar.
func watch(ctx context.Context, clusters map[string]*rest.Config, gvr schema.GroupVersionResource, to report) error {
	var (
		running sync.WaitGroup
		errs    = make(chan error, len(clusters))
		tables  = dynamicclient.NewTables()
	)
	to = to.serial()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for name, cfg := range clusters {
		running.Go(func() {
			err := watchCluster(ctx, cfg, gvr, tables, func(text string) { to(name, text) })
			if err != nil {
				errs <- fmt.Errorf("cluster %s: %w", name, err)
				cancel()
			}
		})
	}
	running.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// watchCluster watches the objects of gvr in one cluster until ctx ends, and then returns nil.
func watchCluster(ctx context.Context, cfg *rest.Config, gvr schema.GroupVersionResource, tables *dynamicclient.Tables, to func(text string)) (err error) {
	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithClientOptions(dynamicclient.WithTables(tables)))
	if err != nil {
		return err
	}
	factory.Start(ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()
	// The cluster may not be reachable, and the type may not be installed yet.
	lease, err := factory.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent())
	if err != nil {
		return unlessEnded(ctx, err)
	}
	event := func(what string) func(any) {
		return func(obj any) {
			key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj) // objects have metadata
			to(what + " " + key)
		}
	}
	changed := event("changed")
	if _, err := lease.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: event("added"), UpdateFunc: func(_, obj any) { changed(obj) }, DeleteFunc: event("deleted"),
	}); err != nil {
		return unlessEnded(ctx, err)
	}
	last := ""
	for now := range lease.Watch(ctx) {
		state := string(now.State)
		if now.Reason != "" {
			state += " (" + string(now.Reason) + ")"
		}
		if state != last {
			to(state)
		}
		last = state
	}
	return nil
}

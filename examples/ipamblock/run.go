package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

//go:embed crd.yaml
var crdManifest []byte

const (
	askTimeout      = 10 * time.Second // of a question to discovery
	syncTimeout     = 30 * time.Second
	checkInterval   = time.Second // between two checks of the reason while the informer syncs
	eventsTimeout   = 30 * time.Second
	shutdownTimeout = 10 * time.Second
)

// run watches the server that s selects: a cluster, or an embedded server that it starts.
func run(ctx context.Context, s settings, stdout, stderr io.Writer) (err error) {
	if s.real() {
		cfg, err := kubeconfig(s)
		if err != nil {
			return err
		}
		return watch(ctx, cfg, s, stdout, stderr)
	}
	progress(stderr, "starting an API server on this machine")
	server, err := embedded.Start(ctx, embedded.WithProgress(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	crd, err := readCRD()
	if err != nil {
		return err
	}
	progress(stderr, "installing %s", crd.GetName())
	if err := server.InstallCRDs(ctx, crd); err != nil {
		return err
	}
	return watch(ctx, server.Config(), s, stdout, stderr)
}

// kubeconfig returns the configuration of a real cluster.
func kubeconfig(s settings) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: s.context}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg, nil
}

// watch resolves and validates the reference, acquires a lease, starts the factory, and prints the
// events.
func watch(ctx context.Context, cfg *rest.Config, s settings, stdout, stderr io.Writer) (err error) {
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	resolver, err := discovery.NewForConfig(cfg, discovery.WithRequestTimeout(askTimeout))
	if err != nil {
		return err
	}
	progress(stderr, "resolving %s on %s", s.ref, cfg.Host)
	gvr, err := resolve(ctx, resolver, s)
	if err != nil {
		return err
	}
	progress(stderr, "watching %s", discovery.RefOf(gvr))

	factory, err := dynamicinformer.NewForConfig(cfg,
		dynamicinformer.WithDiscovery(resolver),
		dynamicinformer.WithResync(s.resync))
	if err != nil {
		return err
	}
	// Ctrl-C from here on ends the program with the summary.
	acquire, done := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	blocks, err := factory.Acquire(acquire, gvr)
	done()
	if err != nil {
		return err
	}
	if s.http != "" { // the pages end after the factory
		pages, failed := startSite(ctx, s.http, factory, blocks.Lister())
		if failed != nil {
			return failed
		}
		progress(stderr, "informers at %s, blocks at %sblocks", pages.url, pages.url)
		defer func() { err = errors.Join(err, pages.close(ctx)) }()
	}
	view := newViewer(stdout, s.output == "json")
	shown, err := blocks.AddEventHandler(view) // before Start: after Ctrl-C, the informer has stopped, and takes no handlers
	if err != nil {
		return err
	}
	factory.Start(ctx)
	defer func() { err = errors.Join(err, shutdown(ctx, factory)) }()
	var following sync.WaitGroup
	defer following.Wait()
	defer blocks.Release()
	following.Go(func() { view.follow(blocks.Watch(ctx)) })
	err = waitSynced(ctx, blocks, stderr)
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // Ctrl-C is not a failure
		return finish(blocks, view)
	case err != nil:
		return err
	}
	select { // the cache has the list; wait for the viewer
	case <-shown.HasSyncedChecker().Done():
	case <-ctx.Done():
	}
	if err := untilTheEnd(ctx, cfg, s, blocks, view, stderr); err != nil {
		return err
	}
	return finish(blocks, view)
}

// resolve resolves the reference and validates that it can be watched. If Calico's API server runs too, two
// groups have ipamblocks; without a group, the reference means that of the CRD.
func resolve(ctx context.Context, resolver *discovery.Resolver, s settings) (schema.GroupVersionResource, error) {
	if !s.real() { // a busy server serves a new type earlier than its discovery document has it
		installed, done := context.WithTimeout(ctx, syncTimeout)
		defer done()
		if _, err := resolver.Await(installed, blockGVR); err != nil {
			return schema.GroupVersionResource{}, err
		}
	}
	resource, err := resolver.Resolve(ctx, s.ref)
	if several, is := errors.AsType[*discovery.AmbiguousError](err); is {
		for _, candidate := range several.Candidates {
			if candidate.GVR == blockGVR {
				resource, err = candidate, nil
			}
		}
	}
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	resource, err = resolver.Validate(ctx, resource.GVR)
	if err == nil && s.demoWrites && resource.GVR != blockGVR { // a short name or a kind is resolved only now
		err = fmt.Errorf("--demo-writes is only for %s, not for %s; %w", discovery.RefOf(blockGVR), discovery.RefOf(resource.GVR), errUsage)
	}
	return resource.GVR, err
}

// waitSynced waits for the first list and prints each reason to stderr. It returns early for a
// lasting reason.
func waitSynced(ctx context.Context, blocks *dynamicinformer.Lease, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	printed := status.ReasonSyncing
	for {
		check, done := context.WithTimeout(ctx, checkInterval)
		err := blocks.WaitForSync(check, dynamicinformer.WithFailFast())
		ended := check.Err() != nil
		done()
		var why *status.NotSyncedError
		if !errors.As(err, &why) || !ended || ctx.Err() != nil {
			return err
		}
		if printed != why.Reason {
			printed = why.Reason
			progress(stderr, "waiting: %v", err)
		}
	}
}

// untilTheEnd runs the demonstration, if there is one, and waits for the end of the duration or for
// Ctrl-C.
func untilTheEnd(ctx context.Context, cfg *rest.Config, s settings, blocks *dynamicinformer.Lease, view *viewer, stderr io.Writer) error {
	if blocks.Resource().GVR == blockGVR && (!s.real() || s.demoWrites) {
		if err := demonstrate(ctx, cfg, s, blocks, view); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	switch {
	case s.duration > 0:
		progress(stderr, "watching for %v; Ctrl-C ends it", s.duration)
	case s.real():
		progress(stderr, "watching until Ctrl-C")
	default:
		return nil
	}
	<-ctx.Done()
	return nil
}

// demonstrate runs the demonstration, and waits until view has shown its events.
func demonstrate(ctx context.Context, cfg *rest.Config, s settings, blocks *dynamicinformer.Lease, view *viewer) error {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	d := &demo{blocks: client.Resource(blockGVR), cleanUp: s.real()}
	if err := d.run(ctx); err != nil {
		return err
	}
	if err := awaitEvents(ctx, view, d); err != nil || !s.crdChurn {
		return err
	}
	crd, err := readCRD()
	if err != nil {
		return err
	}
	return (&churn{client: client, crd: crd, lease: blocks, view: view}).run(ctx)
}

// readCRD returns the CRD of blocks.
func readCRD() (*unstructured.Unstructured, error) {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crdManifest, &crd.Object); err != nil {
		return nil, err
	}
	return crd, nil
}

// awaitEvents waits until view has shown the events of d.
func awaitEvents(ctx context.Context, view *viewer, d *demo) error {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	if err := view.waitFor(ctx, d.wanted); err != nil {
		return fmt.Errorf("wait for the events of the demonstration: %w", err)
	}
	return nil
}

// unlessEnded returns nil after the end of ctx, by the duration or Ctrl-C, and otherwise err.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func finish(blocks *dynamicinformer.Lease, view *viewer) error {
	if err := view.table(blocks.Lister()); err != nil {
		return err
	}
	view.summary()
	return nil
}

// shutdown waits for the end of the informer, also after the end of ctx.
func shutdown(ctx context.Context, factory *dynamicinformer.Factory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return factory.Shutdown(ctx)
}

// progress prints a line of progress.
func progress(stderr io.Writer, format string, args ...any) {
	fmt.Fprintf(stderr, "ipamblock: "+format+"\n", args...)
}

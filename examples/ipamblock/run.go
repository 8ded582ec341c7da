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
	askTimeout      = 10 * time.Second // one question to discovery
	syncTimeout     = 30 * time.Second
	syncLook        = time.Second // between two looks at why it is not synced
	eventsTimeout   = 30 * time.Second
	shutdownTimeout = 10 * time.Second
)

// run is the whole job on the server that s means.
func run(ctx context.Context, s settings, stdout, stderr io.Writer) (err error) {
	if s.real() {
		cfg, err := kubeconfig(s)
		if err != nil {
			return err
		}
		return watch(ctx, cfg, s, stdout, stderr)
	}
	say(stderr, "starting an API server on this machine")
	server, err := embedded.Start(ctx, embedded.WithProgress(stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	crd, err := readCRD()
	if err != nil {
		return err
	}
	say(stderr, "installing %s", crd.GetName())
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

// watch is the library at work: resolve, validate, ask, start, wait.
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
	say(stderr, "asking %s for %s", cfg.Host, s.ref)
	gvr, err := resolve(ctx, resolver, s.ref)
	if err != nil {
		return err
	}
	say(stderr, "watching %s", discovery.RefOf(gvr))

	factory, err := dynamicinformer.NewForConfig(cfg,
		dynamicinformer.WithDiscovery(resolver),
		dynamicinformer.WithResync(s.resync))
	if err != nil {
		return err
	}
	// Discovery has just said what it is: Ctrl-C is for what comes.
	acquire, done := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	blocks, err := factory.Acquire(acquire, gvr)
	done()
	if err != nil {
		return err
	}
	if s.http != "" { // it ends after the factory, of which it can tell until then
		pages, failed := startSite(ctx, s.http, factory, blocks.Lister())
		if failed != nil {
			return failed
		}
		say(stderr, "informers at %s, blocks at %sblocks", pages.url, pages.url)
		defer func() { err = errors.Join(err, pages.close(ctx)) }()
	}
	factory.Start(ctx)
	defer func() { err = errors.Join(err, shutdown(ctx, factory)) }()
	view := newViewer(stdout, s.output == "json")
	shown, err := blocks.AddEventHandler(view)
	if err != nil {
		return err
	}
	var following sync.WaitGroup
	defer following.Wait()
	defer blocks.Release()
	following.Go(func() { view.follow(blocks.Watch(ctx)) })
	err = waitSynced(ctx, blocks, stderr)
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // Ctrl-C while it waited is no failure
		return finish(blocks, view)
	case err != nil:
		return err
	}
	select { // the cache has all of the list, and the viewer is about to
	case <-shown.HasSyncedChecker().Done():
	case <-ctx.Done():
	}
	if err := untilTheEnd(ctx, cfg, s, blocks, view, stderr); err != nil {
		return err
	}
	return finish(blocks, view)
}

// resolve finds what ref means on this server and whether it can be watched. Where
// Calico's API server runs too, two groups have ipamblocks: the one of the CRD is meant,
// unless ref says which.
func resolve(ctx context.Context, resolver *discovery.Resolver, ref string) (schema.GroupVersionResource, error) {
	resource, err := resolver.Resolve(ctx, ref)
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
	return resource.GVR, err
}

// waitSynced waits for the first list and tells stderr what it waits for. It gives
// up at once on what waiting does not mend.
func waitSynced(ctx context.Context, blocks *dynamicinformer.Lease, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	told := status.ReasonSyncing
	for {
		look, done := context.WithTimeout(ctx, syncLook)
		err := blocks.WaitForSync(look, dynamicinformer.WithFailFast())
		ended := look.Err() != nil
		done()
		var why *status.NotSyncedError
		if !errors.As(err, &why) || !ended || ctx.Err() != nil {
			return err
		}
		if told != why.Reason {
			told = why.Reason
			say(stderr, "waiting: %v", err)
		}
	}
}

// untilTheEnd writes, if there is something to write, and waits for the end: that
// of the demonstration, of the duration, or Ctrl-C.
func untilTheEnd(ctx context.Context, cfg *rest.Config, s settings, blocks *dynamicinformer.Lease, view *viewer, stderr io.Writer) error {
	ofBlocks := blocks.Resource().GVR == blockGVR // the demonstration is
	if ofBlocks && (!s.real() || s.demoWrites) {
		if err := demonstrate(ctx, cfg, s, blocks, view); err != nil {
			return unlessEnded(ctx, err)
		}
	}
	switch {
	case s.duration > 0:
		say(stderr, "watching on until %v have passed; Ctrl-C ends it", s.duration)
	case s.real():
		say(stderr, "watching on until Ctrl-C")
	default:
		return nil
	}
	<-ctx.Done()
	return nil
}

// demonstrate writes, and waits until view has shown it.
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

// awaitEvents waits until view has shown what d has written.
func awaitEvents(ctx context.Context, view *viewer, d *demo) error {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	if err := view.waitFor(ctx, d.wanted); err != nil {
		return fmt.Errorf("not all that was written has been seen: %w", err)
	}
	return nil
}

// unlessEnded drops err if it is only that the time is up, or Ctrl-C.
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

// shutdown waits for the informer to end, also after ctx has.
func shutdown(ctx context.Context, factory *dynamicinformer.Factory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return factory.Shutdown(ctx)
}

// say prints a line of progress.
func say(stderr io.Writer, format string, args ...any) {
	fmt.Fprintf(stderr, "ipamblock: "+format+"\n", args...)
}

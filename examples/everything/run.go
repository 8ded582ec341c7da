package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

const (
	// shutdownTimeout is the timeout of the shutdown.
	shutdownTimeout = 10 * time.Second
	// pluginTimeout replaces answerTimeout if a plugin gets the credentials, which may require a person.
	pluginTimeout = time.Minute
)

// answerTimeout is the timeout of the first response of the server. Tests change it.
var answerTimeout = 1500 * time.Millisecond

// run follows the types that s selects until ctx ends.
func run(ctx context.Context, s settings, stdout io.Writer) (err error) {
	cfg, err := kubeconfig(s)
	if err != nil {
		return err
	}
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return err
	}
	if err := answers(ctx, cfg, resolver); err != nil {
		return err
	}
	if err := maySelect(ctx, cfg, resolver, s.selector); err != nil {
		return err
	}
	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithDiscovery(resolver), dynamicinformer.WithClientOptions(dynamicclient.WithoutManagedFields()))
	if err != nil {
		return err
	}
	factory.Start(ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()
	p := newPrinter(stdout)
	defer p.wait()
	return factory.Follow(ctx, s.selector, p.funcs(ctx), dynamicinformer.WithStartLimit(s.starts),
		dynamicinformer.WithLeaseOptions(dynamicinformer.WithLeaseName("everything")))
}

// answers returns an error if there is no API server at the host of cfg, or if it rejects the
// credentials. A factory would wait in both cases.
func answers(ctx context.Context, cfg *rest.Config, resolver *discovery.Resolver) error {
	timeout := timeoutOf(cfg)
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := resolver.Resolve(asking, "customresourcedefinitions.v1.apiextensions.k8s.io")
	failed, is := errors.AsType[*discovery.InconclusiveError](err)
	switch {
	case !is, ctx.Err() != nil: // a NotServed error is also an answer
		return nil
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return fmt.Errorf("%s rejects the user: %w; check the user in the kubeconfig", cfg.Host, failed.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s has not answered for %v; check the server in the kubeconfig", cfg.Host, timeout)
	}
	first, _, _ := strings.Cut(failed.Err.Error(), "\n") // of several requests
	return fmt.Errorf("%s: %s; check the server in the kubeconfig", cfg.Host, first)
}

// maySelect returns an error if types are selected by their CustomResourceDefinitions, and the user may not list these.
// Follow would wait.
func maySelect(ctx context.Context, cfg *rest.Config, resolver *discovery.Resolver, selector discovery.Selector) error {
	if selector.Backing != discovery.BackingCRD && selector.CRDLabels == nil {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, timeoutOf(cfg))
	defer cancel()
	_, err := resolver.ResolveAll(asking, selector)
	if apierrors.IsForbidden(err) && ctx.Err() == nil {
		return fmt.Errorf("%s: %w; allow get, list and watch for CustomResourceDefinitions, or use --all without --crd-selector", cfg.Host, err)
	}
	return nil // Follow asks again
}

// timeoutOf returns the timeout of a first request.
func timeoutOf(cfg *rest.Config) time.Duration {
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil {
		return pluginTimeout
	}
	return answerTimeout
}

// kubeconfig returns the configuration of the cluster.
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

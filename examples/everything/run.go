package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// shutdownTimeout is how long the end may take.
const shutdownTimeout = 10 * time.Second

// run follows what s selects until ctx ends.
func run(ctx context.Context, s settings, stdout io.Writer) (err error) {
	cfg, err := kubeconfig(s)
	if err != nil {
		return err
	}
	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithClientOptions(dynamicinformer.WithoutManagedFields()))
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

// Command clusters watches one resource in several clusters and prints the events and states of each. A cluster
// that can't be reached does not affect the others; when it can be reached again, the events
// that were missed follow.
//
// Without flags, it needs no cluster: it starts two API servers, stops one of them, and starts it again.
//
//	clusters --kubeconfig ~/.kube/config --contexts prod,staging --resource ipamblocks.v1.crd.projectcalico.org
//
// In each cluster, it needs list and watch for the resource. get, list and watch for
// customresourcedefinitions.apiextensions.k8s.io and apiservices.apiregistration.k8s.io are optional: with them, it notices at
// once that the type was installed or removed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard()) // the printed states have the reasons
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := program(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

// program runs the command until ctx or the demonstration ends.
func program(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("clusters", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of a kubeconfig")
	contexts := flags.String("contexts", "", "contexts of the kubeconfig, separated by commas")
	resource := flags.String("resource", "", "resource to watch, as resource.version.group")
	if err := flags.Parse(args); err != nil {
		return err
	}
	report := func(cluster, text string) { fmt.Fprintf(out, "%-8s %s\n", cluster, text) }
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case flags.NFlag() == 0:
		return demonstrate(ctx, report)
	case *kubeconfig == "":
		return errors.New("--contexts and --resource require --kubeconfig, which must not be empty")
	}
	gvr, _ := schema.ParseResourceArg(*resource)
	if gvr == nil {
		return fmt.Errorf("--resource %q: want resource.version.group", *resource)
	}
	clusters, err := configs(*kubeconfig, strings.Split(*contexts, ","))
	if err != nil {
		return err
	}
	return watch(ctx, clusters, *gvr, report)
}

// configs returns a client configuration for each context.
func configs(kubeconfig string, contexts []string) (map[string]*rest.Config, error) {
	clusters := map[string]*rest.Config{}
	for _, name := range contexts {
		if name == "" {
			return nil, errors.New("--contexts: a name is empty")
		}
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
		cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("context %q: %w", name, err)
		}
		clusters[name] = cfg
	}
	return clusters, nil
}

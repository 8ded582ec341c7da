// Command controller finds addresses of Calico's IPAMBlocks that are allocated on nodes that no longer
// exist, and prints them. It may be started before Calico is installed.
//
// It does not write to the cluster. It needs these rules of a ClusterRole:
//
//   - {apiGroups: [crd.projectcalico.org], resources: [ipamblocks], verbs: [list, watch]}
//   - {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
//   - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
//   - {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [get, list, watch]}
//
// The last two are optional: with them, the controller notices at once that a type was installed or
// removed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := program(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

// program runs the controller until ctx ends.
func program(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("controller", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of a kubeconfig; without it, the service account of the pod")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	return run(ctx, cfg, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, func(block string, addresses []string) {
		if len(addresses) == 0 {
			fmt.Println(block, "ok")
			return
		}
		fmt.Println(block, "node does not exist:", strings.Join(addresses, " "))
	})
}

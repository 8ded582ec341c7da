// Command manager runs controllers of controller-runtime on gvrkit's informers. An Inventory names a resource, and the manager
// counts the objects of that resource:
//
//	apiVersion: example.com/v1
//	kind: Inventory
//	metadata: {name: fleet}
//	spec: {resource: ships.example.com}
//	status: {objects: 2}
//
// The type Inventory may be installed after the start of the manager, deleted, and installed again in another version. Each
// inventory has a controller of its own for its resource, which is added and removed while the manager runs.
//
// Without flags, the command needs no cluster: it starts an API server and shows all that. On a cluster, install the type with
// kubectl apply -f crds/inventories-v1.yaml, before or after the start of
//
//	manager --kubeconfig ~/.kube/config
//
// It needs these rules of a ClusterRole, and list and watch for the resources of the inventories:
//
//   - {apiGroups: [example.com], resources: [inventories], verbs: [list, watch]}
//   - {apiGroups: [example.com], resources: [inventories/status], verbs: [patch]}
//   - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
//   - {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
//   - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
//   - {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [get, list, watch]}
//
// The last two are optional: with them, the manager notices at once that a type was installed or deleted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := program(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// program runs the command until ctx or the demonstration ends.
func program(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "path of the kubeconfig of a cluster; without flags, the command starts an API server")
	namespace := flags.String("namespace", "default", "namespace of the Lease of the leader election")
	address := flags.String("address", "127.0.0.1:0", "address of the pages; port 0 is any free port")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case flags.NFlag() > 0 && *kubeconfig == "":
		return errors.New("--namespace and --address require --kubeconfig, which must not be empty")
	}
	to := func(text string) { fmt.Fprintln(out, text) } // one write, also for concurrent calls
	if *kubeconfig == "" {
		ctrl.SetLogger(logr.Discard()) // the demonstration says what happens
		klog.SetLogger(logr.Discard())
		return demonstrate(ctx, to)
	}
	ctrl.SetLogger(klog.Background())
	cfg, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	return run(ctx, cfg, *namespace, *address, to)
}

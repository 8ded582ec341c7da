package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gvrkit/gvrkit/controllerruntime"
	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metrics"
)

const electionID = "inventories.example.com" // the name of the Lease

// report gets a line of text. Calls may be concurrent.
type report func(text string)

// run runs the manager until ctx ends, and then returns nil. Namespace is that of the Lease of the leader election, and address
// that of the pages.
func run(ctx context.Context, cfg *rest.Config, namespace, address string, to report) error {
	// One resolver for the cache, which runs it, and for the clients.
	resolver, err := discovery.NewForConfig(cfg)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		MapperProvider: controllerruntime.MapperProvider(resolver),
		NewCache: controllerruntime.WithOptions(
			controllerruntime.WithAllowAbsent(), // the type Inventory may be installed later
			controllerruntime.WithFactoryOptions(dynamicinformer.WithDiscovery(resolver)),
		),
		// Unstructured objects, too, are read from the cache.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},

		LeaderElection:                true,
		LeaderElectionID:              electionID,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true, // the process ends after the manager

		Metrics: metricsserver.Options{BindAddress: "0"}, // no server: see addPages
	})
	if err != nil {
		return err
	}
	factory := mgr.GetCache().(*controllerruntime.Cache).Factory() // of NewCache
	if err := addInventories(mgr, factory, to); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(context.Context) error {
		to("the manager is the leader")
		return nil
	})); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	to(fmt.Sprintf("pages: http://%s/informers/, /metrics and /healthz", listener.Addr()))
	if err := addPages(mgr, factory, listener); err != nil {
		return errors.Join(err, listener.Close())
	}
	return mgr.Start(ctx)
}

// addPages adds a server to mgr with the status page of the informers, metrics and health checks. The manager's own servers do the
// same, if their ports are known before: they don't say which port the system has chosen.
func addPages(mgr ctrl.Manager, factory *dynamicinformer.Factory, listener net.Listener) error {
	informers := prometheus.NewRegistry() // not the global registry: another manager of the process has another factory
	if err := informers.Register(metrics.NewCollector(factory)); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/informers/", factory.Handler())
	mux.Handle("/metrics", promhttp.HandlerFor(prometheus.Gatherers{ctrlmetrics.Registry, informers}, promhttp.HandlerOpts{}))
	mux.Handle("/healthz", factory.Healthz(dynamicinformer.WithHandlerTimeout(time.Minute)))
	return mgr.Add(&manager.Server{
		Name:            "pages",
		Server:          &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		Listener:        listener,
		ShutdownTimeout: new(5 * time.Second),
	})
}

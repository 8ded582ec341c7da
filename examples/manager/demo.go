package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

//go:embed crds
var crds embed.FS

// demo is an API server with a manager.
type demo struct {
	server *embedded.Server
	client dynamic.Interface
	to     report
	lines  chan string // of the manager

	stop  context.CancelFunc // ends the manager
	ended chan struct{}      // closes when the manager has ended
	err   error              // of the manager, after that
}

// step is an action of a user, and the lines of the manager that follow.
type step struct {
	text  string
	do    func(context.Context) error
	lines []string
}

// demonstrate runs the demonstration.
func demonstrate(ctx context.Context, to report) (err error) {
	d, err := startDemo(ctx, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	for _, s := range d.steps() {
		if err := d.take(ctx, s); err != nil {
			return err
		}
	}
	to("* stop the manager")
	return nil
}

// steps are the steps of the demonstration, in order.
func (d *demo) steps() []step {
	const added, removed = "fleet: the controller of ships.example.com is added", "fleet: the controller of ships.example.com is removed"
	return []step{
		{
			"install Inventory in version v1alpha1, and create the inventory fleet",
			func(ctx context.Context) error { return d.createFleet(ctx, "v1alpha1") },
			[]string{added, "fleet: status.objects is 1"},
		},
		{
			"create the ship bora",
			func(ctx context.Context) error { return d.create(ctx, "v1", "Ship", "ships", "bora", nil) },
			[]string{"fleet: status.objects is 2"},
		},
		{
			"delete the type Inventory, with its objects",
			func(ctx context.Context) error {
				return d.client.Resource(crdResource).Delete(ctx, "inventories.example.com", metav1.DeleteOptions{})
			},
			[]string{removed},
		},
		{
			"create the ship cora",
			func(ctx context.Context) error { return d.create(ctx, "v1", "Ship", "ships", "cora", nil) },
			nil,
		},
		{
			"install Inventory in version v1, and create the inventory fleet",
			func(ctx context.Context) error { return d.createFleet(ctx, "v1") },
			[]string{added, "fleet: status.objects is 3"},
		},
		{
			"delete the inventory fleet",
			func(ctx context.Context) error {
				return d.client.Resource(inventoriesIn("v1")).Delete(ctx, "fleet", metav1.DeleteOptions{})
			},
			[]string{removed},
		},
	}
}

// startDemo starts a server, which has a ship, and the manager.
func startDemo(ctx context.Context, to report) (*demo, error) {
	to("* start an API server on this machine; the first time takes some minutes to build it")
	server, err := embedded.Start(ctx)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	d := &demo{server: server, to: to, lines: make(chan string, 1000), stop: stop, ended: make(chan struct{})}
	cfg := server.Config()
	cfg.ContentType = runtime.ContentTypeJSON // the server's leases are custom resources, which have no other format
	if d.client, err = dynamic.NewForConfig(cfg); err == nil {
		err = d.install(ctx, "leases", "ships")
	}
	if err == nil {
		err = d.create(ctx, "v1", "Ship", "ships", "anna", nil)
	}
	if err != nil {
		stop()
		return nil, errors.Join(err, server.Stop())
	}
	to("* start the manager")
	go func() {
		defer close(d.ended)
		d.err = run(running, cfg, "default", "127.0.0.1:0", func(text string) {
			to("  " + text)
			d.lines <- text
		})
	}()
	if err := d.await(ctx, "the manager is the leader"); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// close ends the manager and then the server.
func (d *demo) close() error {
	d.stop()
	<-d.ended
	return errors.Join(d.err, d.server.Stop())
}

// take takes a step.
func (d *demo) take(ctx context.Context, s step) error {
	d.to("* " + s.text)
	if err := s.do(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.text, err)
	}
	if err := d.await(ctx, s.lines...); err != nil {
		return fmt.Errorf("%s: %w", s.text, err)
	}
	return nil
}

// await waits until the manager has written lines, in any order.
func (d *demo) await(ctx context.Context, lines ...string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	missing := map[string]bool{}
	for _, line := range lines {
		missing[line] = true
	}
	for len(missing) > 0 {
		select {
		case line := <-d.lines:
			delete(missing, line)
		case <-d.ended:
			return errors.New("the manager has ended")
		case <-ctx.Done():
			return fmt.Errorf("wait for %q: %w", lines, context.Cause(ctx))
		}
	}
	return nil
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func inventoriesIn(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: inventoryKind.Group, Version: version, Resource: "inventories"}
}

// install installs the types of files of crds.
func (d *demo) install(ctx context.Context, files ...string) error {
	for _, file := range files {
		manifest, err := crds.ReadFile("crds/" + file + ".yaml")
		if err != nil {
			return err
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &crd.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := d.server.InstallCRDs(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) createFleet(ctx context.Context, version string) error {
	if err := d.install(ctx, "inventories-"+version); err != nil {
		return err
	}
	return d.create(ctx, version, "Inventory", "inventories", "fleet", map[string]any{"resource": "ships.example.com"})
}

// create creates an object of group example.com.
func (d *demo) create(ctx context.Context, version, kind, resource, name string, spec map[string]any) error {
	gv := schema.GroupVersion{Group: "example.com", Version: version}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(gv.WithKind(kind))
	object.SetName(name)
	_, err := d.client.Resource(gv.WithResource(resource)).Create(ctx, object, metav1.CreateOptions{})
	return err
}

package embedded_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// This example installs the CRDs of a directory, and creates an object.
func Example() {
	ctx := context.Background()
	server, err := embedded.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Stop() }()
	if err := server.InstallCRDFiles(ctx, "testdata"); err != nil {
		fmt.Println(err)
		return
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := client.Resource(widgets).Namespace("any").Create(ctx, widget("a"), metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.GetKind(), created.GetName())
	// Output: Widget a
}

// All specs of a suite can use one server. Each begins without CRDs and objects.
func ExampleServer_Reset() {
	ctx := context.Background()
	server, err := embedded.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Stop() }()

	for range 2 {
		if err := server.Reset(ctx); err != nil { // BeforeEach
			fmt.Println(err)
			return
		}
		if err := server.InstallCRDFiles(ctx, filepath.Join("testdata", "widgets.yaml")); err != nil {
			fmt.Println(err)
			return
		}
		client, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = client.Resource(widgets).Namespace("any").Create(ctx, widget("a"), metav1.CreateOptions{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
}

// All specs of a suite can use the same CRDs. Each begins without objects.
func ExampleServer_ResetObjects() {
	ctx := context.Background()
	server, err := embedded.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Stop() }()
	if err := server.InstallCRDFiles(ctx, "testdata"); err != nil { // BeforeSuite
		fmt.Println(err)
		return
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		if err := server.ResetObjects(ctx); err != nil { // BeforeEach
			fmt.Println(err)
			return
		}
		_, err = client.Resource(widgets).Namespace("any").Create(ctx, widget("a"), metav1.CreateOptions{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
}

// A program with the flag --kubeconfig can use this file.
func ExampleServer_WriteKubeconfig() {
	server, err := embedded.Start(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Stop() }()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	path := filepath.Join(dir, "kubeconfig")
	if err := server.WriteKubeconfig(path); err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Host == server.Config().Host)
	// Output: true
}

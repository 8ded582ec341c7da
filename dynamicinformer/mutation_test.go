package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// writerEnv says which part of a program writes to an object, in the process that TestMutationDetector starts.
const writerEnv = "GVRKIT_TEST_WRITER"

// client-go's mutation detector, which ends the process, finds a write to an object, and names no other object, though the objects
// have equal parts.
func TestMutationDetector_NamesTheObject(t *testing.T) {
	if writer, is := os.LookupEnv(writerEnv); is {
		synctest.Test(t, func(t *testing.T) { writeToAnObject(t, writer) })
		return
	}
	for _, packed := range []string{"false", "true"} {
		for _, writer := range []string{"", "handler", "update handler", "lister", "store", "index"} {
			t.Run(fmt.Sprintf("packed %s, writer %q", packed, writer), func(t *testing.T) {
				program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()[:strings.Index(t.Name(), "/")]+"$", "-test.v")
				program.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=true", "GVRKIT_PACKED_CACHES="+packed, writerEnv+"="+writer)
				out, err := program.CombinedOutput()
				text, reports := string(out), strings.Count(string(out), "ALTERED!")
				switch {
				case writer == "" && (err != nil || reports > 0), writer != "" && (err == nil || reports != 1):
					t.Errorf("error %v, %d reports:\n%.3000s", err, reports, text)
				case writer != "" && (!strings.Contains(text, `"w3"`) || packed == "true" && !strings.Contains(text, "Resource=widgets modified")):
					t.Errorf("the report does not name the object:\n%.3000s", text)
				}
			})
		}
	}
}

// writeToAnObject writes to w3.
func writeToAnObject(t *testing.T, writer string) {
	t.Helper()
	cluster := fakecluster.New(widgetType, blockType)
	client := cluster.Resource(widgets).Namespace("ns")
	for n := range 20 {
		obj := newObject(fmt.Sprint("w", n), map[string]string{"app": "calico-node", "tier": "network"})
		selector := map[string]any{"app": "calico-node", "tier": "network"}
		for label := range 20 { // packed caches share only larger parts
			selector[fmt.Sprint("label-", label)] = fmt.Sprint("value-", label)
		}
		obj.Object["spec"] = map[string]any{"selector": selector, "color": "red"}
		if _, err := client.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	written := false
	write := func(obj any) {
		u := obj.(*unstructured.Unstructured)
		if u.GetName() == "w3" && !written {
			written = true
			u.Object["spec"].(map[string]any)["selector"].(map[string]any)["app"] = "changed"
		}
	}
	f := newFactory(t, cluster, dynamicinformer.WithIndexers(cache.Indexers{"color": func(any) ([]string, error) { return []string{"red"}, nil }}))
	f.Start(t.Context())
	l := acquire(t, f, widgets)
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) {}}
	switch writer {
	case "handler":
		handler.AddFunc = write
	case "update handler":
		handler.UpdateFunc = func(old, _ any) { write(old) }
	}
	if _, err := l.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	paint(t, cluster, "w3", "red")
	synctest.Wait()
	switch writer {
	case "lister":
		obj, err := l.Lister().ByNamespace("ns").Get("w3")
		if err != nil {
			t.Fatal(err)
		}
		write(obj)
	case "store":
		for _, obj := range l.Informer().GetStore().List() {
			write(obj)
		}
	case "index":
		found, err := l.Informer().GetIndexer().ByIndex("color", "red")
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range found {
			write(obj)
		}
	}
	time.Sleep(5 * time.Second)
	shutdown(t, f)
}

// Without the gate, client-go's store does not say which version it has.
func TestGate_AtomicFIFOIsOff(t *testing.T) {
	const gate = "KUBE_FEATURE_AtomicFIFO"
	if os.Getenv(gate) != "false" {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		program.Env = append(os.Environ(), gate+"=false")
		if out, err := program.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%.3000s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		l := syncedLease(t, f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := l.AtLeast(ctx, written(t, cluster, "a")); !errors.Is(err, status.ErrVersion) || ctx.Err() != nil || !strings.Contains(err.Error(), "AtomicFIFO") {
			t.Errorf("AtLeast: %v", err)
		}
		cluster.Withdraw(widgets)
		time.Sleep(5 * time.Minute)
		cluster.Serve(widgetType)
		create(t, cluster, widgets, "ns", "b")
		time.Sleep(5 * time.Minute)
		if err := l.WaitForSync(ctx); err != nil {
			t.Errorf("WaitForSync: %v", err)
		}
		shutdown(t, f)
	})
}

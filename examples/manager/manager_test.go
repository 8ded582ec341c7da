package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	// client-go's recorder of events has no end while it sends an event again.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/client-go/tools/record.recordEvent"))
}

// state is what a test sees of the demonstration. Counts of reconciliations only grow: one too many is an error of all later states.
type state struct {
	fleet                string // the version of the inventory fleet and its status.objects; empty: it does not exist
	watches              int    // of ships, at the server
	informers            int    // on ships, in the metrics of the manager
	inventories, counter int    // reconciliations
}

func TestDemonstration_TypesAndControllersComeAndGo(t *testing.T) {
	d := start(t)
	d.before = d.state()
	leader := d.leader()
	d.expect("at the start", state{})
	states := []state{
		{"v1alpha1: 1", 1, 1, 1, 1},
		{"v1alpha1: 2", 1, 1, 1, 2},
		{"", 0, 0, 2, 2}, // the type is deleted
		{"", 0, 0, 2, 2}, // no controller notices the ship
		{"v1: 3", 1, 1, 3, 3},
		{"", 0, 0, 4, 3},
	}
	steps := d.steps()
	if len(steps) != len(states) {
		t.Fatalf("%d steps, want %d", len(steps), len(states))
	}
	for n, s := range steps {
		if err := d.take(d.Context(), s); err != nil {
			t.Fatal(err)
		}
		d.expect(s.text, states[n])
	}

	d.do(step{
		"create the inventory wrong, whose resource is not a name",
		func(ctx context.Context) error {
			return d.create(ctx, "v1", "Inventory", "inventories", "wrong", map[string]any{"resource": "a b"})
		},
		nil,
	})
	// The resource of an inventory may be absent, and may be changed. This inventory has a controller when the manager ends.
	d.do(step{
		"create the inventory port of a resource that is not installed",
		func(ctx context.Context) error {
			return d.create(ctx, "v1", "Inventory", "inventories", "port", map[string]any{"resource": "boats"})
		},
		[]string{"port: the controller of boats is added", "port: status.objects is 0"},
	})
	d.do(step{
		"change the resource of the inventory port",
		func(ctx context.Context) error {
			_, err := d.client.Resource(inventoriesIn("v1")).Patch(ctx, "port", types.MergePatchType, []byte(`{"spec":{"resource":"ships"}}`), metav1.PatchOptions{})
			return err
		},
		[]string{"port: the controller of boats is removed", "port: the controller of ships is added", "port: status.objects is 3"},
	})
	d.expect("at the end", state{"", 1, 1, 7, 5})
	if now := d.leader(); now != leader {
		t.Errorf("the leader was %s and is %s", leader, now)
	}
	select {
	case <-d.ended:
		t.Error("the manager has ended")
	default:
	}
}

// observed is a demonstration that a test observes.
type observed struct {
	*testing.T
	*demo
	pages string // the pages of the manager, without a path

	before state // counts of an earlier manager: controller-runtime's metrics are those of the process
}

func start(t *testing.T) *observed {
	t.Helper()
	d := &observed{T: t}
	var err error
	d.demo, err = startDemo(t.Context(), func(text string) {
		t.Log(text)
		if _, after, found := strings.Cut(text, "pages: "); found {
			d.pages, _, _ = strings.Cut(after, "/informers/")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *observed) do(s step) {
	d.Helper()
	if err := d.take(d.Context(), s); err != nil {
		d.Fatal(err)
	}
}

// leader returns the holder of the manager's Lease.
func (d *observed) leader() string {
	d.Helper()
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	lease, err := d.client.Resource(leases).Namespace("default").Get(d.Context(), electionID, metav1.GetOptions{})
	if err != nil {
		d.Fatal(err)
	}
	leader, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if leader == "" {
		d.Fatalf("the Lease has no holder: %v", lease)
	}
	return leader
}

// expect waits until the state is want, and checks that the other pages answer.
func (d *observed) expect(when string, want state) {
	d.Helper()
	pause := time.NewTicker(50 * time.Millisecond) // the servers need the processors
	defer pause.Stop()
	var got state
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		got = d.state()
		got.inventories -= d.before.inventories
		got.counter -= d.before.counter
		if got == want {
			break
		}
		<-pause.C
	}
	if got != want {
		d.Fatalf("%s: %+v, want %+v", when, got, want)
	}
	if text := get(d, http.DefaultClient, d.pages+"/healthz"); text != "ok\n" {
		d.Errorf("%s: /healthz: %s", when, text)
	}
	if text := get(d, http.DefaultClient, d.pages+"/informers/"); !strings.HasPrefix(text, "Informers at ") {
		d.Errorf("%s: /informers/: %s", when, text)
	}
}

func (d *observed) state() state {
	d.Helper()
	client, err := rest.HTTPClientFor(d.server.Config())
	if err != nil {
		d.Fatal(err)
	}
	server := get(d, client, d.server.Config().Host+"/metrics")
	manager := get(d, http.DefaultClient, d.pages+"/metrics")
	now := state{
		watches:     sum(d, server, "apiserver_longrunning_requests", `resource="ships"`, `verb="WATCH"`),
		informers:   sum(d, manager, "gvrkit_informer_state", `resource="ships"`, `state="Synced"`),
		inventories: sum(d, manager, "controller_runtime_reconcile_total", `controller="inventory"`),
		counter:     sum(d, manager, "controller_runtime_reconcile_total", `controller="counter"`),
	}
	for _, version := range []string{"v1alpha1", "v1"} {
		fleet, err := d.client.Resource(inventoriesIn(version)).Get(d.Context(), "fleet", metav1.GetOptions{})
		switch {
		case err == nil:
			objects, _, _ := unstructured.NestedInt64(fleet.Object, "status", "objects")
			now.fleet += fmt.Sprintf("%s: %d", version, objects)
		case !apierrors.IsNotFound(err):
			d.Fatal(err)
		}
	}
	return now
}

// get returns a page.
func get(d *observed, client *http.Client, url string) string {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, url, nil)
	if err != nil {
		d.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		d.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
		d.Fatalf("%s: %s, %v: %s", url, response.Status, err, text)
	}
	return string(text)
}

// sum returns the sum of the samples of a metric with labels.
func sum(d *observed, page, name string, labels ...string) (total int) {
	d.Helper()
samples:
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue samples
			}
		}
		value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
		if err != nil {
			d.Fatalf("%s: %v", line, err)
		}
		total += int(value)
	}
	return total
}

// A counter whose resource can't be listed waits for it, and its removal is no error, which would end the manager.
func TestCounter_IsRemovedWhileItsResourceIsForbidden(t *testing.T) {
	ships := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "ships"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{ships: "ShipList"})
	client.PrependReactor("list", "ships", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(ships.GroupResource(), "", nil)
	})
	factory, err := dynamicinformer.New(client)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context())
	for range 20 { // the controller may notice its end in several ways
		lease, err := factory.Acquire(t.Context(), ships)
		if err != nil {
			t.Fatal(err)
		}
		c := &counter{inventory: "fleet", lease: lease, ended: make(chan struct{})}
		result := make(chan error, 1)
		go func() { result <- c.Start(t.Context()) }()
		for now := range lease.Watch(t.Context()) {
			if now.Reason == status.ReasonForbidden && len(now.Handlers) > 0 {
				break
			}
		}
		lease.Release()
		if err := <-result; err != nil {
			t.Errorf("Start: %v", err)
		}
		<-c.ended
	}
	if err := factory.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProgram_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--kubeconfig", "/nowhere"},
		{"--nonsense"},
		{"--kubeconfig", ""},
		{"--address", "127.0.0.1:8080"},
		{"--namespace", "team-a"},
		{"more"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a demonstration would end at once
		var out bytes.Buffer
		if err := program(ctx, args, &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: error %v, output %q", args, err, &out)
		}
	}
}

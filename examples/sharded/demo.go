package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

//go:embed crds
var crds embed.FS

const (
	writePeriod = 50 * time.Millisecond
	// endTimeout is the maximum time for a process to leave the group and end. After it, the process is killed.
	endTimeout = 3 * leaveTimeout
)

// row is what is known of a process.
type row struct {
	name  string
	pid   int
	ended bool
	why   string // it has ended
	last  report
}

// replica is a process of the group.
type replica struct {
	row
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closes after the end of the process
}

// demo is a server, and a group of processes.
type demo struct {
	settings
	server  *embedded.Server
	client  dynamic.Interface
	changed chan struct{} // has an element: a row has changed

	mu       sync.Mutex // guards the rows of replicas
	replicas []*replica
}

// demonstrate runs the demonstration until ctx ends, which is no error, or no process is left. It calls show, from one goroutine, with a row for
// each process when something has changed.
func demonstrate(ctx context.Context, s settings, show func([]row)) (err error) {
	server, err := embedded.Start(ctx, embedded.WithFeatureGates(map[string]bool{"ShardedListAndWatch": true}))
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	d := &demo{settings: s, server: server, changed: make(chan struct{}, 1)}
	if d.client, err = dynamic.NewForConfig(server.Config()); err != nil {
		return err
	}
	if err := d.fill(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	defer func() { err = errors.Join(err, d.end(ctx, endTimeout)) }() // before the server stops
	for n := range s.replicas {
		if err := d.start(ctx, fmt.Sprintf("member-%d", n)); err != nil {
			return err
		}
	}
	return d.watch(ctx, show)
}

// unlessEnded returns nil after the end of ctx, and otherwise err.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// fill installs the types, and creates the objects.
func (d *demo) fill(ctx context.Context) error {
	for _, file := range []string{"ipamblocks", "leases"} {
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
	for n := range d.objects {
		if _, err := d.client.Resource(blocks).Create(ctx, newBlock(n), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// newBlock returns an IPAMBlock of four free addresses.
func newBlock(n int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"cidr": fmt.Sprintf("10.%d.%d.%d/30", n>>14&255, n>>6&255, n<<2&255), "affinity": fmt.Sprintf("host:node-%d", n%100), "strictAffinity": false, "deleted": false,
		"allocations": make([]any, 4), "unallocated": []any{int64(0), int64(1), int64(2), int64(3)}, "attributes": []any{}, "sequenceNumber": int64(0),
	}}}
	obj.SetGroupVersionKind(blocks.GroupVersion().WithKind("IPAMBlock"))
	obj.SetName(blockName(n))
	return obj
}

func blockName(n int) string { return fmt.Sprintf("block-%d", n) }

// start starts a process of the group. It does not end with ctx: end closes its standard input, so that it leaves the group.
func (d *demo) start(ctx context.Context, name string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	r := &replica{row: row{name: name}, cmd: exec.CommandContext(context.WithoutCancel(ctx), program, memberCommand), done: make(chan struct{})}
	r.cmd.Stderr = os.Stderr
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	r.stdin, r.pid = stdin, r.cmd.Process.Pid
	d.mu.Lock()
	d.replicas = append(d.replicas, r)
	d.mu.Unlock()
	go func() {
		defer close(r.done)
		d.read(r, stdout)
	}()
	to := d.server.Config()
	return json.NewEncoder(stdin).Encode(invitation{Identity: name, Host: to.Host, Token: to.BearerToken, ServerName: to.ServerName, CAData: to.CAData})
}

// read reads the reports of a process until its end.
func (d *demo) read(r *replica, stdout io.Reader) {
	lines := json.NewDecoder(stdout)
	for {
		var now report
		if lines.Decode(&now) != nil {
			break
		}
		d.change(func() { r.last = now })
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = r.cmd.Wait() // the state has what there is to say
	d.change(func() { r.ended, r.why, r.last = true, r.cmd.ProcessState.String(), report{Handled: r.last.Handled} })
}

// change changes a row.
func (d *demo) change(do func()) {
	d.mu.Lock()
	do()
	d.mu.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// rows returns the rows, and whether a process is left.
func (d *demo) rows() (rows []row, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.replicas {
		rows = append(rows, r.row)
		left = left || !r.ended
	}
	return rows, left
}

// watch shows the rows and writes to objects, until ctx ends or no process is left.
func (d *demo) watch(ctx context.Context, show func([]row)) error {
	tick := time.NewTicker(writePeriod)
	defer tick.Stop()
	for writes := 0; ; {
		select {
		case <-d.changed:
			rows, left := d.rows()
			show(slices.Clone(rows))
			if !left {
				return errors.New("no process is left")
			}
		case <-tick.C:
			writes++
			patch := fmt.Appendf(nil, `{"spec":{"sequenceNumber":%d}}`, writes)
			_, err := d.client.Resource(blocks).Patch(ctx, blockName(writes%d.objects), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return unlessEnded(ctx, err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// end ends all processes, also after the end of ctx, and waits for them. It kills those that are left after the timeout.
func (d *demo) end(ctx context.Context, timeout time.Duration) error {
	var errs []error
	for _, r := range d.replicas {
		_ = r.stdin.Close() // it may have ended
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for _, r := range d.replicas {
		select {
		case <-r.done:
			continue
		case <-ctx.Done():
		}
		errs = append(errs, fmt.Errorf("%s did not end within %v, and was killed", r.name, timeout))
		_ = r.cmd.Process.Kill() // an error means that it has ended meanwhile
		<-r.done
	}
	return errors.Join(errs...)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// patience is how long each state may take to come.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == memberCommand {
		main()
	}
	goleak.VerifyTestMain(m)
}

// running is a demonstration of a test.
type running struct {
	*testing.T
	shown chan []row
	ended chan error
	stop  func() // ends the demonstration, and waits
}

func start(t *testing.T, s settings) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{T: t, shown: make(chan []row), ended: make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		r.ended <- demonstrate(ctx, s, func(rows []row) {
			select {
			case r.shown <- rows:
			case <-over:
			}
		})
	}()
	r.stop = sync.OnceFunc(func() {
		close(over)
		cancel()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// await waits for a state.
func (r *running) await(what string, is func([]row) bool) []row {
	r.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var last []row
	for {
		select {
		case last = <-r.shown:
			if is(last) {
				return last
			}
		case err := <-r.ended:
			r.ended <- nil
			r.Fatalf("%s: the demonstration has ended: %v", what, err)
		case <-limit.C:
			r.Fatalf("%s: not after %v: %+v", what, patience, last)
		}
	}
}

// shared reports whether the processes that run, of which there are so many, have all slots and objects.
func shared(members, objects int) func([]row) bool {
	return func(rows []row) bool {
		gotMembers, gotObjects := 0, 0
		for _, r := range rows {
			if r.ended {
				continue
			}
			if r.state() != "ready" || len(r.last.Slots) == 0 {
				return false
			}
			gotMembers++
			gotObjects += r.last.Objects
		}
		return gotMembers == members && gotObjects == objects
	}
}

func TestDemonstration_OthersTakeOverTheObjectsOfAKilledProcess(t *testing.T) {
	const objects = 300
	d := start(t, settings{replicas: 3, objects: objects})
	rows := d.await("three processes share the objects", shared(3, objects))
	if err := syscall.Kill(rows[len(rows)-1].pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	rows = d.await("two processes share them", shared(2, objects))
	if ended := slices.IndexFunc(rows, func(r row) bool { return r.ended }); ended < 0 || rows[ended].state() != "ended: signal: killed" {
		t.Errorf("rows = %+v", rows)
	}
	handled := rows[0].last.Handled
	d.await("the others handle objects", func(rows []row) bool { return rows[0].last.Handled > handled })
	d.stop()
	for _, r := range rows {
		if err := syscall.Kill(r.pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s: process %d is left: %v", r.name, r.pid, err)
		}
	}
}

// stoppedReplica returns a process that does not run, so that it does not end when its standard input does.
func stoppedReplica(t *testing.T, d *demo, name string) *replica {
	t.Helper()
	r := &replica{row: row{name: name}, cmd: exec.CommandContext(t.Context(), os.Args[0], memberCommand), done: make(chan struct{})}
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.stdin = stdin
	go func() {
		defer close(r.done)
		d.read(r, stdout)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		<-r.done
	})
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDemo_EndKillsEachProcessThatDoesNotEnd(t *testing.T) {
	d := &demo{changed: make(chan struct{}, 1)}
	d.replicas = []*replica{stoppedReplica(t, d, "member-0"), stoppedReplica(t, d, "member-1")}
	ended := make(chan error, 1)
	go func() { ended <- d.end(t.Context(), 10*time.Millisecond) }()
	select {
	case err := <-ended:
		for _, r := range d.replicas {
			if err == nil || !strings.Contains(err.Error(), r.name+" did not end within 10ms, and was killed") {
				t.Errorf("error: %v", err)
			}
		}
	case <-time.After(patience):
		t.Errorf("end has not returned after %v", patience)
	}
}

// A report that no process reads ends the membership, and not the process before that.
func TestMember_LeavesWhenItsReportsAreNotRead(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.WithFeatureGates(map[string]bool{"ShardedListAndWatch": true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	d := &demo{server: server, settings: settings{objects: 1}}
	if d.client, err = dynamic.NewForConfig(server.Config()); err != nil {
		t.Fatal(err)
	}
	if err := d.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	reports, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], memberCommand)
	cmd.Stdout, cmd.Stderr = out, &printed
	stdin, err := cmd.StdinPipe() // stays open
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	to := server.Config()
	err = json.NewEncoder(stdin).Encode(invitation{Identity: "a", Host: to.Host, Token: to.BearerToken, ServerName: to.ServerName, CAData: to.CAData})
	if err == nil {
		err = errors.Join(out.Close(), json.NewDecoder(reports).Decode(&report{}))
	}
	if err := errors.Join(err, reports.Close(), cmd.Wait()); err != nil {
		t.Errorf("%v: %s", err, &printed)
	}
}

// silentServer returns the address of a server that never responds. It calls asked with each request.
func silentServer(t *testing.T, asked func()) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestJoin_TheEndOfItsContextIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := silentServer(t, cancel)
	if err := join(ctx, &rest.Config{Host: address}, "a", func(report) {}); err != nil {
		t.Error(err)
	}
}

// numbers returns the numbers from first to end, without end.
func numbers(first, end int) (all []int) {
	for n := first; n < end; n++ {
		all = append(all, n)
	}
	return all
}

func TestShow_PlainTextHasALineForEachChange(t *testing.T) {
	var out bytes.Buffer
	p := newPlain(&out)
	rows := []row{
		{name: "member-0", pid: 7, last: report{Slots: numbers(0, 256), Objects: 9, Handled: 9}},
		{name: "member-1", pid: 8, last: report{Pending: 120, Reason: "Joining"}},
	}
	p.show(rows)
	rows[0].last.Handled = 10 // no line
	p.show(rows)
	rows[1].last = report{Slots: numbers(0, 120), Objects: 4}
	p.show(rows)
	rows[0].ended, rows[0].why, rows[0].last = true, "signal: killed", report{}
	p.show(rows)
	want := `member-0 pid 7: 256 slots, ready, 9 objects
member-1 pid 8: 0 slots, Joining, 0 objects
kill one: kill -9 7
member-1 pid 8: 120 slots, ready, 4 objects
member-0 pid 7: 0 slots, ended: signal: killed, 0 objects
kill one: kill -9 8
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestShow_TableReplacesTheLastOne(t *testing.T) {
	var out bytes.Buffer
	shown := newTable(&out)
	rows := []row{
		{name: "member-0", pid: 7, last: report{Slots: numbers(0, 100), Objects: 9, Handled: 11}},
		{name: "member-1", pid: 8, last: report{Slots: numbers(128, 256), Objects: 10, Handled: 12}},
	}
	shown.show(rows)
	want := `MEMBER          PID  SLOTS  OBJECTS  HANDLED  STATE
member-0          7    100        9       11  ready
member-1          8    128       10       12  ready
0000000000000000000000000000000000000000000000000000000000000000
000000000000000000000000000000000000............................
1111111111111111111111111111111111111111111111111111111111111111
1111111111111111111111111111111111111111111111111111111111111111
kill one: kill -9 7
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	shown.show(rows)
	if got := strings.TrimPrefix(out.String(), want); got != "\x1b[8A\x1b[J"+want {
		t.Errorf("the second table: %q", got)
	}
}

// The types are those of the other examples.
func TestCRDs_AreThoseOfTheOtherExamples(t *testing.T) {
	spec := func(file string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(content), "apiVersion:")
		return text
	}
	for copied, from := range map[string]string{"crds/ipamblocks.yaml": "../ipamblock/crd.yaml", "crds/leases.yaml": "../manager/crds/leases.yaml"} {
		if diff := cmp.Diff(spec(from), spec(copied)); diff != "" {
			t.Errorf("%s (-%s +copy):\n%s", copied, from, diff)
		}
	}
}

func TestProgram_RefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{{"--replicas", "0"}, {"--objects", "0"}, {"--duration", "-1s"}, {"more"}, {"--nonsense"}} {
		if err := program(t.Context(), args, os.Stdout); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

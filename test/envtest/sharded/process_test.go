package sharded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// answers is how long a member may take to answer. It is generous: the machine may be slow.
const answers = patience

// group has the processes of members that run, and the ledger of what they do.
type group struct {
	*testing.T
	name   string
	ledger *ledger
	server *upstream

	mu      sync.Mutex
	members []*process // those that run
}

// process is the process of a member.
type process struct {
	group *group
	name  string
	proxy *proxy
	cmd   *exec.Cmd
	log   bytes.Buffer  // standard error; read after done closes
	done  chan struct{} // closes when the process has ended and nothing of it is left to do
	err   error         // of the process; read after done closes

	mu      sync.Mutex // guards the fields below; it is held while a short line is written to the pipe, which has room
	in      io.WriteCloser
	last    int
	waiting map[int]chan message
	checked int // how many handlings are checked: one of them; 0: none
}

// start starts a member.
func (g *group) start(name string) *process {
	g.Helper()
	front := startProxy(g.server)
	content, err := json.Marshal(config{Host: front.url(), Group: g.name, Identity: name, Lease: *lease})
	if err != nil {
		g.Fatal(err)
	}
	p := &process{group: g, name: name, proxy: front, done: make(chan struct{}), waiting: map[int]chan message{}, checked: 50}
	p.cmd = exec.Command(os.Args[0], "-test.run=^$") //nolint:noctx // the test ends it
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(content))
	p.cmd.Stderr = &p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		g.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		g.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		g.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.read(out)
		p.err = p.cmd.Wait()
		p.group.ledger.stopped(p.name)
		p.proxy.close()
	}()
	g.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		if g.Failed() && p.log.Len() > 0 {
			g.Logf("%s: %s", p.name, p.log.String())
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, p)
	return p
}

// others returns the members that run, without p.
func (g *group) others(p *process) []*process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(g.members), func(other *process) bool { return other == p })
}

// running returns the members that run.
func (g *group) running() []*process { return g.others(nil) }

// remove says that p does not run, or not for a while.
func (g *group) remove(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(other *process) bool { return other == p })
}

func (g *group) add(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, p)
}

// read reads the messages of the process until its end.
func (p *process) read(out io.Reader) {
	var handling sync.WaitGroup
	defer handling.Wait()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for id, answer := range p.waiting {
			close(answer)
			delete(p.waiting, id)
		}
	}()
	ended := make(chan struct{})
	defer close(ended)
	in := json.NewDecoder(out)
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) {
				p.group.ledger.violate("%s: %v", p.name, err)
			}
			return
		}
		switch m.Kind {
		case "begin":
			// A goroutine of its own, since it asks other members, and reads of this one must go on.
			handling.Go(func() {
				if hold := p.group.ledger.begin(p.name, m.UID); hold != nil {
					select {
					case <-hold:
					case <-ended:
					}
				} else {
					p.check(m.UID)
				}
				_ = p.write(message{Ask: "go"}) // it may have ended
			})
		case "end":
			p.group.ledger.end(p.name, m.UID, m.Version)
			_ = p.write(message{Ask: "go"}) // it may have ended
		case "deleted":
			p.group.ledger.checkDeleted(p.name, m.UID)
		case "answer":
			p.mu.Lock()
			answer := p.waiting[m.ID]
			delete(p.waiting, m.ID)
			p.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		default:
			p.group.ledger.violate("%s: %s: %s", p.name, m.Kind, m.Err)
		}
	}
}

// check asks the other members whether one of them owns the object that p handles. p does not let its slot go before it has the answer.
func (p *process) check(uid types.UID) {
	p.mu.Lock()
	every := p.checked
	p.mu.Unlock()
	if every == 0 || p.group.ledger.begun(p.name)%every != 0 {
		return
	}
	for _, other := range p.group.others(p) {
		answer, err := other.ask(p.group.Context(), message{Ask: "owns", UID: uid})
		if err == nil && answer.Owns {
			p.group.ledger.violate("%s owns %s while %s handles it", other.name, uid, p.name)
		}
	}
}

// checkEach makes the ledger check one of so many handlings.
func (p *process) checkEach(every int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = every
}

func (p *process) write(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.in.Write(append(line, '\n'))
	return err
}

// ask asks the member a question. Err of its answer is an error.
func (p *process) ask(ctx context.Context, question message) (message, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	answer := make(chan message, 1)
	p.mu.Lock()
	p.last++
	question.ID = p.last
	p.waiting[question.ID] = answer
	p.mu.Unlock()
	if err := p.write(question); err != nil {
		return message{}, fmt.Errorf("%s: %s: %w", p.name, question.Ask, err)
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return m, fmt.Errorf("%s: %s: the process has ended", p.name, question.Ask)
		case m.Err != "":
			return m, fmt.Errorf("%s: %s: %s", p.name, question.Ask, m.Err)
		}
		return m, nil
	case <-p.done:
		return message{}, fmt.Errorf("%s: %s: the process has ended", p.name, question.Ask)
	case <-ctx.Done():
		return message{}, fmt.Errorf("%s: %s: %w", p.name, question.Ask, context.Cause(ctx))
	}
}

// must asks the member a question, which it must answer.
func (p *process) must(ask string) message {
	p.group.Helper()
	answer, err := p.ask(p.group.Context(), message{Ask: ask})
	if err != nil {
		p.group.Fatal(err)
	}
	return answer
}

// kill kills the process.
func (p *process) kill() {
	p.group.Helper()
	p.group.remove(p)
	p.signal(syscall.SIGKILL)
	<-p.done
}

// pause stops the process, and waits until it does not run.
func (p *process) pause() {
	p.group.Helper()
	p.signal(syscall.SIGSTOP)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			p.group.Fatalf("%s has not stopped: %v", p.name, err)
		}
		return
	}
}

func (p *process) signal(s syscall.Signal) {
	p.group.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.group.Fatalf("%s: %v", p.name, err)
	}
}

// leave makes the member leave, and waits for the end of its process.
func (p *process) leave() {
	p.group.Helper()
	p.group.remove(p)
	p.must("leave")
	<-p.done
	if p.err != nil {
		p.group.Errorf("%s: %v: %s", p.name, p.err, p.log.String())
	}
}

// Package child runs this program again as a child process in another role, and lets
// the two talk in JSON: the parent gives the child its orders on standard input, the
// child answers on standard output. A child ends when its parent does.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// roleEnv tells a child its role.
const roleEnv = "GVRKIT_BENCH_ROLE"

// stopTimeout is how long a child gets to end by itself.
const stopTimeout = 20 * time.Second

// Role returns the role of this process, or nothing if it is no child.
func Role() string { return os.Getenv(roleEnv) }

// Process is a child process. It is used by one goroutine.
type Process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	answers *json.Decoder
	log     tail
}

// Start runs this program in a role, with env added to its environment, and gives it
// its orders. ctx kills it.
func Start(ctx context.Context, role string, env []string, orders any) (*Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.CommandContext(ctx, program)}
	p.cmd.Env = append(append(os.Environ(), roleEnv+"="+role), env...)
	p.cmd.Stderr = &p.log
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", role, err)
	}
	p.stdin, p.answers = stdin, json.NewDecoder(stdout)
	if err := json.NewEncoder(stdin).Encode(orders); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Read reads the child's next answer into v. If there is none the child has failed,
// and the error says what it said.
func (p *Process) Read(v any) error {
	if err := p.answers.Decode(v); err != nil {
		return errors.Join(fmt.Errorf("no answer: %w", err), p.Stop())
	}
	return nil
}

// Stop asks the child to end, and waits until it has. The error says what it said if
// it did not end well. It may be called again.
func (p *Process) Stop() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	_ = p.stdin.Close() // closed already, if the child is gone
	late := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, &p.log)
	}
	return nil
}

// Orders reads what the parent of this process wants, into v. The context that it
// returns ends when the parent wants no more, or is gone.
func Orders(ctx context.Context, v any) (context.Context, error) {
	in := json.NewDecoder(os.Stdin)
	if err := in.Decode(v); err != nil {
		return ctx, fmt.Errorf("no orders: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is closed
		cancel(errors.New("the parent process wants no more"))
	}()
	return ctx, nil
}

// Answer sends v to the parent of this process.
func Answer(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

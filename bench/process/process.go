// Package process runs this program again as a child process in another role. Parent and
// child exchange JSON: the parent writes one request to the child's standard input, and the
// child writes its answers to standard output. A child ends when its parent closes the input or
// ends.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// roleEnv names the environment variable with the role of a child process.
	roleEnv = "GVRKIT_BENCH_ROLE"
	// stopTimeout is the time for a child process to end before it is killed.
	stopTimeout = 20 * time.Second
)

// Role returns the role of this process. It is empty in the process that the user started.
func Role() string { return os.Getenv(roleEnv) }

// Process is a child process. It is used by one goroutine at a time.
type Process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	answers *json.Decoder
	log     strings.Builder // standard error
}

// Start starts this program in a role, with env added to its environment, and sends it the
// request. The process is killed when ctx ends.
func Start(ctx context.Context, role string, env []string, request any) (*Process, error) {
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
		return nil, fmt.Errorf("start a process as %s: %w", role, err)
	}
	p.stdin, p.answers = stdin, json.NewDecoder(stdout)
	if err := json.NewEncoder(stdin).Encode(request); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Read decodes the next answer into v. If the process ended without one, Read returns the
// end of its standard error.
func (p *Process) Read(v any) error {
	if err := p.answers.Decode(v); err != nil {
		return errors.Join(fmt.Errorf("no answer: %w", err), p.Stop())
	}
	return nil
}

// Stop closes the standard input of the process and waits until it has ended. Further calls
// do nothing.
func (p *Process) Stop() error {
	if p.cmd.ProcessState != nil {
		return nil
	}
	_ = p.stdin.Close() // fails if the process has ended
	kill := time.AfterFunc(stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(p.log.String()))
	}
	return nil
}

// Request decodes the request of this process's parent into v. The returned context ends when the
// parent closes the standard input of this process.
func Request(ctx context.Context, v any) (context.Context, error) {
	if err := json.NewDecoder(os.Stdin).Decode(v); err != nil {
		return ctx, fmt.Errorf("read the request: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
		cancel(errors.New("the parent process has closed the input"))
	}()
	return ctx, nil
}

// Answer sends v to the parent of this process.
func Answer(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

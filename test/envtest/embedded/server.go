package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/privatedir"
)

// stopTimeout is the maximum time for a server to stop. A stop takes less than a second,
// or about a second if a request is in progress.
const stopTimeout = 20 * time.Second

// Server is an API server that runs as a child process. Its methods are safe for
// concurrent use.
type Server struct {
	config *rest.Config
	cmd    *exec.Cmd
	stdin  io.Closer // the child ends when this is closed
	log    *tail

	tempDir  string       // removed at the end
	dataLock *flock.Flock // of the directory of WithDataDir, or nil

	done chan struct{}
	err  error // the error of the child's end; written before done is closed

	stop    sync.Once
	stopErr error
}

// connection is the line that the child writes when it is ready. The child's command has
// the same struct.
type connection struct {
	Host   string `json:"host"`
	Token  string `json:"token"`
	CAData []byte `json:"caData"`
	Name   string `json:"serverName"`
}

// Prepare builds the server if it has not been built, as Start does, and does not start
// it.
func Prepare(ctx context.Context, opts ...Option) error {
	if _, err := binary(ctx, newOptions(opts).progress); err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	return nil
}

// Start starts a server and returns when it is ready. The first call builds the server, and
// reports progress on standard error. Ctx limits only the start: a running server ends with
// Stop, or with this process. On an error, no process is left.
func Start(ctx context.Context, opts ...Option) (*Server, error) {
	o := newOptions(opts)
	path, err := binary(ctx, o.progress)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s, connected, err := launch(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	select {
	case to, ok := <-connected:
		if ok {
			s.config = to.config()
			return s, nil
		}
		err = errors.New("the API server ended while it started")
	case <-ctx.Done():
		_ = s.Stop() // the error of ctx is returned instead
		return nil, fmt.Errorf("embedded: the API server is not ready: %w", ctx.Err())
	}
	if stopErr := s.Stop(); stopErr != nil {
		return nil, fmt.Errorf("embedded: %w", errors.Join(err, stopErr))
	}
	return nil, fmt.Errorf("embedded: %w: %s", err, s.log)
}

// launch starts the child. The channel gets the connection when the child is ready. It is
// closed if the child ends before that.
func launch(ctx context.Context, path string, o options) (*Server, <-chan connection, error) {
	s := &Server{log: &tail{next: o.log}, done: make(chan struct{})}
	if o.dataDir != "" {
		if err := s.lockData(o.dataDir); err != nil {
			return nil, nil, errors.Join(err, s.clean())
		}
	}
	var err error
	if s.tempDir, err = privatedir.New(); err != nil {
		return nil, nil, errors.Join(err, s.clean())
	}
	// The child removes the temporary directory too, since this process may end first.
	args := []string{"--data-dir", o.dataDir, "--temp-dir", s.tempDir}
	if len(o.gates) > 0 {
		args = append(args, "--feature-gates", gatesFlag(o.gates))
	}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), path, args...)
	s.cmd.Stderr = s.log
	stdout, err := s.begin()
	if err != nil {
		return nil, nil, errors.Join(err, s.clean())
	}
	connected := make(chan connection, 1)
	go func() {
		defer close(s.done)
		defer close(connected)
		lines := bufio.NewReader(stdout)
		var to connection
		if line, err := lines.ReadBytes('\n'); err == nil && json.Unmarshal(line, &to) == nil {
			connected <- to
		}
		_, _ = io.Copy(io.Discard, lines) // reads to the end before Wait closes the pipe
		s.err = s.cmd.Wait()
	}()
	return s, connected, nil
}

// begin starts the child with its pipes.
func (s *Server) begin() (stdout io.Reader, err error) {
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	if stdout, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return stdout, s.cmd.Start()
}

func (c connection) config() *rest.Config {
	return &rest.Config{
		Host:            c.Host,
		BearerToken:     c.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData, ServerName: c.Name},
		QPS:             -1, // no client-side limit: only the test uses this server
	}
}

// gatesFlag returns gates in the format of the child's flag.
func gatesFlag(gates map[string]bool) string {
	var pairs []string
	for name, on := range gates {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// Config returns a copy of the client configuration for the server. It has the server's
// token, which allows every request, and no rate limit.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Done returns a channel that closes when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop stops the server, waits until it has ended, and removes its temporary directory. All
// open watches end at once. Other requests may take up to a second; without them, Stop takes
// less than a second. If the server ends with an error, Stop returns it with the last log
// lines. Later calls wait and return the same error.
func (s *Server) Stop() error {
	s.stop.Do(func() { s.stopErr = s.end() })
	return s.stopErr
}

func (s *Server) end() error {
	_ = s.stdin.Close() // an error means that the child has ended
	grace := time.NewTimer(stopTimeout)
	defer grace.Stop()
	var killed error
	select {
	case <-s.done:
	case <-grace.C:
		killed = fmt.Errorf("embedded: the API server did not end within %v and was killed", stopTimeout)
		_ = s.cmd.Process.Kill() // an error means that the child has ended meanwhile
		<-s.done
	}
	if s.err != nil && killed == nil {
		killed = fmt.Errorf("embedded: the API server failed: %w: %s", s.err, s.log)
	}
	return errors.Join(killed, s.clean())
}

// lockData creates dir and locks it for this server, or fails at once if another server uses
// it: etcd would wait for the other server without a log line.
func (s *Server) lockData(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	s.dataLock = flock.New(filepath.Join(dir, "gvrkit.lock"))
	free, err := s.dataLock.TryLock()
	if err == nil && !free {
		err = fmt.Errorf("another server uses the data directory %s", dir)
	}
	return err
}

// clean removes the temporary directory and unlocks the data directory.
func (s *Server) clean() error {
	var unlocked error
	if s.dataLock != nil {
		unlocked = s.dataLock.Close()
	}
	return errors.Join(unlocked, os.RemoveAll(s.tempDir))
}

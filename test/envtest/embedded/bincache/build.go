package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// serverVersion is the Kubernetes release of the k8s.io modules in go.mod, which
// the server reports as its own.
const serverVersion = "v1.37.2"

// linkFlags leave out what only a debugger wants, and put the version in. They
// must not change how packages are compiled: a plain build of the same packages
// then shares the build cache.
const linkFlags = "-s -w -X k8s.io/component-base/version.gitVersion=" + serverVersion +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

const (
	lockPoll      = 250 * time.Millisecond
	progressEvery = 5 * time.Second
)

// binary returns the path of the server binary in the user's cache. If it is not
// there it is built, by one process at a time.
func binary(ctx context.Context, progress io.Writer) (string, error) {
	toolchain, err := goCommand(ctx, "", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("the Go command, which builds the server, does not run: %w", err)
	}
	key, err := sourceKey(string(toolchain), linkFlags)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place to keep the server binary: %w", err)
	}
	dir := filepath.Join(cache, "gvrkit", "apiserver")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, key)
	if isFile(path) {
		return path, nil
	}
	lock := flock.New(path + ".lock")
	if free, err := lock.TryLock(); err != nil {
		return "", err
	} else if !free {
		fmt.Fprintln(progress, "embedded: waiting for another process that builds the API server")
		if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
			return "", err
		}
	}
	defer func() { _ = lock.Close() }() // the lock ends with the descriptor, whatever Close says
	if isFile(path) {
		return path, nil
	}
	return path, build(ctx, path, progress)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// build makes the server binary at path. It is either whole or not there.
func build(ctx context.Context, path string, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "gvrkit-build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := writeSource(dir); err != nil {
		return err
	}
	partial := fmt.Sprintf("%s.%d.partial", path, os.Getpid())
	defer func() { _ = os.Remove(partial) }() // gone already if all went well
	if err := compile(ctx, dir, partial, progress); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

func compile(ctx context.Context, dir, target string, progress io.Writer) error {
	begun := time.Now()
	fmt.Fprintln(progress, "embedded: building the API server, once: 3 to 8 minutes and a download of some 60 MB, less if Go has built its packages before")
	cmd := goCommand(ctx, dir, "build", "-v", "-ldflags", linkFlags, "-o", target, "./cmd/apiserver")
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the Go command, which builds the server, does not run: %w", err)
	}
	// Read to the end before Wait, which closes the pipe.
	failure := follow(output, progress, begun)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("building the API server: %w\n%s", err, failure)
	}
	fmt.Fprintf(progress, "embedded: API server built in %v, kept as %s\n", time.Since(begun).Round(time.Second), filepath.Dir(target))
	return nil
}

// follow reads the output of go build -v, tells progress about it now and then,
// and returns the lines that are neither packages nor downloads: the complaints.
func follow(output io.Reader, progress io.Writer, begun time.Time) string {
	var complaints []string
	packages, told := 0, begun
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "go: downloading "):
		case strings.ContainsAny(line, " \t:#"):
			complaints = append(complaints, line)
		default:
			packages++
		}
		if time.Since(told) >= progressEvery {
			told = time.Now()
			fmt.Fprintf(progress, "embedded: building, %d packages compiled in %v\n", packages, time.Since(begun).Round(time.Second))
		}
	}
	return strings.Join(complaints, "\n")
}

// goCommand returns a go command that sees its directory's module alone, as if
// nobody had set anything.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its compilers
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	return cmd
}

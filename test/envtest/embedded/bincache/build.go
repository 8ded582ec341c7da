// Package bincache builds Go programs from source into the user's cache directory. It
// builds each version of the source once, in one process at a time, and reports progress.
// It requires the Go command and, for the first build, the module proxy.
package bincache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockPoll      = 250 * time.Millisecond
	progressEvery = 5 * time.Second
)

// Build returns the directory with the recipe's programs. If the cache does not have it,
// Build builds the programs and writes messages to progress. The directory is complete or
// does not exist. Callers must not write to it. The end of ctx ends a build, and also the
// wait for the build of another process.
func Build(ctx context.Context, recipe Recipe, progress io.Writer) (string, error) {
	// The go.mod of the current directory may require another Go version.
	toolchain, err := goCommand(ctx, os.TempDir(), "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil && ctx.Err() != nil { // the end of ctx interrupts the command
		return "", fmt.Errorf("build %s: %w", recipe.Name, context.Cause(ctx))
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("build %s: the Go command fails: %w: %s", recipe.Name, err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("build %s: the Go command does not run: %w", recipe.Name, err)
	}
	key, err := recipe.key(string(toolchain))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", recipe.Name, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build %s: cache directory: %w", recipe.Name, err)
	}
	dir := filepath.Join(cache, "gvrkit", recipe.Name, key)
	if isDir(dir) {
		return dir, nil
	}
	if err := buildLocked(ctx, recipe, dir, progress); err != nil {
		return "", fmt.Errorf("build %s: %w", recipe.Name, err)
	}
	return dir, nil
}

// buildLocked builds dir, unless another process has built it meanwhile.
func buildLocked(ctx context.Context, recipe Recipe, dir string, progress io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock := flock.New(dir + ".lock")
	defer func() { _ = lock.Close() }() // the lock ends with the descriptor, also on an error
	free, err := lock.TryLock()
	if err == nil && !free {
		fmt.Fprintf(progress, "%s: waiting for the build of another process\n", recipe.Name)
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return err
	}
	if isDir(dir) {
		return nil
	}
	return build(ctx, recipe, dir, progress)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// build builds in a directory beside dir and renames it. An earlier build that was killed
// may have left that directory.
func build(ctx context.Context, recipe Recipe, dir string, progress io.Writer) (err error) {
	source, err := os.MkdirTemp("", "gvrkit-build-")
	if err != nil {
		return err
	}
	partial := dir + ".partial"
	defer func() { err = errors.Join(err, os.RemoveAll(source), os.RemoveAll(partial)) }()
	if err := recipe.write(source); err != nil {
		return err
	}
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.Mkdir(partial, 0o755); err != nil {
		return err
	}
	if err := compile(ctx, recipe, source, partial, progress); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

func compile(ctx context.Context, recipe Recipe, source, target string, progress io.Writer) error {
	begun := time.Now()
	fmt.Fprintf(progress, "%s: building for the first time: %s\n", recipe.Name, recipe.Notice)
	args := []string{"build", "-v", "-ldflags", recipe.LinkFlags, "-o", target + string(filepath.Separator)}
	cmd := goCommand(ctx, source, append(args, recipe.Packages...)...)
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Read to the end before Wait, which closes the pipe.
	messages := follow(output, func(packages int) {
		fmt.Fprintf(progress, "%s: %d packages compiled in %v\n", recipe.Name, packages, time.Since(begun).Round(time.Second))
	})
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w\n%s", err, messages)
	}
	fmt.Fprintf(progress, "%s: built in %v in %s\n", recipe.Name, time.Since(begun).Round(time.Second), filepath.Dir(target))
	return nil
}

// follow reads the output of go build -v, reports the number of packages from time to time,
// and returns the lines that are neither packages nor downloads.
func follow(output io.Reader, report func(packages int)) (messages string) {
	var lines []string
	packages, reported := 0, time.Now()
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		switch line := scanner.Text(); {
		case strings.HasPrefix(line, "go: downloading "):
		case strings.ContainsAny(line, " \t:#"):
			lines = append(lines, line)
		default:
			packages++
		}
		if time.Since(reported) >= progressEvery {
			reported = time.Now()
			report(packages)
		}
	}
	_, _ = io.Copy(io.Discard, output) // after an error of the scanner, the writer must not block
	return strings.Join(lines, "\n")
}

// goCommand returns a go command that uses only the module of its directory, and builds for
// this host, also if the caller's environment selects another target.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the go command ends its compilers
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}

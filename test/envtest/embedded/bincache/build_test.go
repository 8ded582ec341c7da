package bincache_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/bincache"
)

// hello is a recipe for a program that prints text.
func hello(t *testing.T, text string) bincache.Recipe {
	t.Helper()
	return bincache.Recipe{
		Name: "hello",
		Source: fstest.MapFS{
			"go.mod":           {Data: []byte("module example.com/hello\n\ngo 1.26.0\n")},
			"cmd/hi/main.go":   {Data: []byte("package main\n\nfunc main() { print(`" + text + "`) }\n")},
			"cmd/hi/x_test.go": {Data: []byte("not Go")},
		},
		Packages: []string{"./cmd/hi"},
		Notice:   "a moment",
	}
}

// useCache gives the test its own user cache. The Go command uses its usual cache.
func useCache(t *testing.T) (dir string) {
	t.Helper()
	goCache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	dir = t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	return dir
}

func run(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "hi")).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestBuild_OnceForEachSource(t *testing.T) {
	useCache(t)
	var first, second, other bytes.Buffer
	dir, err := bincache.Build(t.Context(), hello(t, "one"), &first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := bincache.Build(t.Context(), hello(t, "one"), &second)
	if err != nil || again != dir || second.Len() > 0 {
		t.Errorf("the second time: %q, %v, %q", again, err, second.String())
	}
	if !strings.Contains(first.String(), "building for the first time: a moment") {
		t.Errorf("progress: %q", first.String())
	}
	changed, err := bincache.Build(t.Context(), hello(t, "two"), &other)
	if err != nil || changed == dir {
		t.Fatalf("changed source: %q, %v", changed, err)
	}
	if got := run(t, dir) + run(t, changed); got != "onetwo" {
		t.Errorf("programs print %q", got)
	}
}

func TestBuild_ConcurrentCallsBuildOnce(t *testing.T) {
	useCache(t)
	outs := make([]bytes.Buffer, 4)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() {
			if _, err := bincache.Build(t.Context(), hello(t, "one"), &outs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	builds := 0
	for i := range outs {
		builds += strings.Count(outs[i].String(), "building for the first time")
	}
	if builds != 1 {
		t.Errorf("%d builds, want 1", builds)
	}
}

func TestBuild_ErrorHasTheMessagesOfTheCompilerAndFilesAreRemoved(t *testing.T) {
	cache := useCache(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	recipe := hello(t, "` + nonsense + `")
	if _, err := bincache.Build(t.Context(), recipe, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("error: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "gvrkit", "hello", "*"))
	if err != nil || len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("left in the cache: %q, %v", left, err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestBuild_EndsWithItsContext(t *testing.T) {
	useCache(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bincache.Build(ctx, hello(t, "one"), &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

func TestBuild_ErrorWithoutTheGoCommand(t *testing.T) {
	useCache(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := bincache.Build(t.Context(), hello(t, "one"), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "Go command") {
		t.Errorf("error: %v", err)
	}
}

package controllerruntime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "sigs.k8s.io/controller-runtime"

// changes are those of the release. The cache of each manager and of each test comes from the constructor.
const (
	constructor = "func New(cfg *rest.Config, opts Options) (Cache, error) {\n"
	changed     = `func New(cfg *rest.Config, opts Options) (Cache, error) { return Constructor(cfg, opts) }

var Constructor NewCacheFunc = Stock

func Stock(cfg *rest.Config, opts Options) (Cache, error) {
`
	// choice is one more file of a suite. It is outside of the tested package, which the package controllerruntime may import.
	choice = `package %s_test

import (
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/controllerruntime"
)

func init() {
	constructor := cache.Stock
	if os.Getenv("GVRKIT_STOCK_CACHE") != "true" {
		constructor = controllerruntime.NewCache
	}
	cache.Constructor = func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		if ginkgo.CurrentSpecReport().LeafNodeType == types.NodeTypeIt { // and not a test without ginkgo
			ginkgo.AddReportEntry("cache")
		}
		return constructor(cfg, opts)
	}
}
`
)

// release is controller-runtime's module in the module cache.
type release struct{ dir string }

// build returns the directory of the suites' programs. It takes the module as a directory that exists only in an overlay, since Go allows no
// overlay of the module cache. Its name is always the same, so that Go's build cache keeps the packages.
func (r release) build(t *testing.T, pkgs ...string) string {
	t.Helper()
	dir, copied := t.TempDir(), filepath.Join(goCommand(t, "list", "-f", "{{.Dir}}", "."), "release")
	write := func(name, content string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	files := r.files(t, copied)
	files[filepath.Join(copied, "pkg/cache/cache.go")] = write("cache.go", r.changed(t, "pkg/cache/cache.go"))
	args := make([]string, 0, len(pkgs))
	for _, pkg := range pkgs {
		files[filepath.Join(copied, "pkg", pkg, "gvrkit_test.go")] = write(pkg+"_test.go", fmt.Sprintf(choice, pkg))
		args = append(args, path.Join(module, "pkg", pkg))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	// The versions of all dependencies stay those of the workspace.
	modules := strings.ReplaceAll(goCommand(t, "list", "-m", "-f", "{{.Dir}}"), "\n", "\n\t")
	work := write("go.work", fmt.Sprintf("go %s\n\nuse (\n\t%s\n)\n\nreplace %s => %s\n",
		goCommand(t, "list", "-m", "-f", "{{.GoVersion}}", "github.com/gvrkit/gvrkit"), modules, module, copied))
	if sums, err := os.ReadFile(goCommand(t, "env", "GOWORK") + ".sum"); err == nil {
		write("go.work.sum", string(sums))
	}
	args = append([]string{"test", "-c", "-race", "-vet=off", "-ldflags=-s -w", "-overlay", write("overlay.json", string(overlay)), "-o", dir + "/"}, args...)
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Env = append(os.Environ(), "GOWORK="+work)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// files returns the files of the module, by their names under dir.
func (r release) files(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(r.dir, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[dir+strings.TrimPrefix(file, r.dir)] = file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// changed returns the file name with our changes.
func (r release) changed(t *testing.T, name string) string {
	t.Helper()
	original, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(original), constructor); n != 1 {
		t.Fatalf("%s has the constructor %d times, want once", name, n)
	}
	return strings.Replace(string(original), constructor, changed, 1)
}

const report = "report.json"

// command returns a run of the tests of pkg in a directory of its own, with the package's test data. It writes ginkgo's report there.
func (r release) command(t *testing.T, program, pkg string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS(filepath.Join(r.dir, "pkg", pkg, "testdata")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	tests := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=30m", "-ginkgo.no-color", "-ginkgo.json-report="+report)
	tests.Dir = dir
	return tests
}

// goCommand returns the output of the Go command.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatalf("go %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

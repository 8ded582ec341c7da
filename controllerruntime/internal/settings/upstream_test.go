package settings_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/google/gofuzz" // the tests of controller-runtime import it
)

// shim gives the names of controller-runtime's package to its tests.
const shim = `package cache

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/controllerruntime/internal/settings"
)

type (
	Options  = cache.Options
	ByObject = cache.ByObject
	Config   = cache.Config
)

func defaultOpts(cfg *rest.Config, opts Options) (Options, error) { return settings.Default(cfg, opts, false) }

func defaultConfig(config, from Config) Config { return settings.Merge(config, from) }
`

// controller-runtime's own tests of its defaults pass. Those of the caches of single kinds and namespaces, which follow in the same file, are
// left out: there is one factory instead of these caches.
func TestControllerRuntimesOwnTestsPass(t *testing.T) {
	from, here := goList(t, "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"), goList(t, "-f", "{{.Dir}}", ".")
	original, err := os.ReadFile(filepath.Join(from, "pkg", "cache", "defaulting_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests, _, found := strings.Cut(string(original), "\n// mockCache is")
	if !found {
		t.Fatal("the file has no tests of other caches")
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for name, source := range map[string]string{"defaulting_test.go": withoutUnused(tests), "shim_test.go": shim} {
		replaced[filepath.Join(here, "upstream", name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "upstream.test")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", file, "-o", binary, "./upstream").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary, "-test.v")
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestDefaultOpts", "TestDefaultOptsRace", "TestDefaultConfigConsidersAllFields"} {
		if !regexp.MustCompile(`(?m)^--- PASS: ` + name + ` `).Match(out) {
			t.Errorf("%s did not pass:\n%s", name, out)
		}
	}
}

// withoutUnused removes the imports that source does not use.
func withoutUnused(source string) string {
	lines := strings.SplitAfter(source, "\n")
	imported := regexp.MustCompile(`^\t(\w+ |\. )?"([\w./]+/)?(\w+)"\n$`)
	kept := lines[:0:0]
	for _, line := range lines {
		if m := imported.FindStringSubmatch(line); m != nil {
			name := strings.TrimSpace(m[1])
			if name == "" {
				name = m[3]
			}
			if name == "." || !strings.Contains(source, name+".") {
				continue
			}
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "")
}

// goList returns the output of go list.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

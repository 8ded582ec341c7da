package controllerruntime_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	"go.uber.org/goleak"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/controllertest" // the tests of controller-runtime import it
	_ "sigs.k8s.io/controller-runtime/pkg/log/zap"                   // as above

	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files are those of controller-runtime's package cache whose tests are outside of the package.
var files = []string{"cache_suite_test.go", "cache_test.go", "informer_cache_test.go"}

var (
	constructor = regexp.MustCompile(`\bcache\.New\b`)
	imported    = "\t\"sigs.k8s.io/controller-runtime/pkg/cache\"\n"
)

// changed returns the source of a test with our constructor. It reports false if the source has none.
func changed(source string) (string, bool) {
	if !constructor.MatchString(source) {
		return source, false
	}
	source = constructor.ReplaceAllString(source, "gvrkit.NewCache")
	return strings.Replace(source, imported, imported+"\tgvrkit \"github.com/gvrkit/gvrkit/controllerruntime\"\n", 1), true
}

func TestControllerRuntimesOwnTestsPass(t *testing.T) {
	assets, err := controlplane.Assets(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	binary := build(t)
	for _, mode := range []struct {
		name, packed string
		exceptions   []exception
		least        int // the number of tests that must pass
	}{
		{"plain", "false", nil, 270},
		{"packed", "true", ifPacked, 265},
	} {
		t.Run(mode.name, func(t *testing.T) {
			run(t, binary, assets, "GVRKIT_PACKED_CACHES="+mode.packed, mode.exceptions, mode.least)
		})
	}
}

// build returns the path of the tests. Their package is only in an overlay, so that no file is written to the source tree.
func build(t *testing.T) string {
	t.Helper()
	from, here := goList(t, "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime"), goList(t, "-f", "{{.Dir}}", ".")
	dir, replaced, constructors := t.TempDir(), map[string]string{}, 0
	for _, name := range files {
		original, err := os.ReadFile(filepath.Join(from, "pkg", "cache", name))
		if err != nil {
			t.Fatal(err)
		}
		source, has := changed(string(original))
		if has {
			constructors++
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(here, "cache", name)] = file
	}
	if constructors < 2 {
		t.Fatalf("%d of %v call the constructor", constructors, files)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "cache.test")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-race", "-vet=off", "-overlay", file, "-o", binary, "./cache")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// run runs the tests, and checks that all pass except the exceptions, which are skipped.
func run(t *testing.T, binary, assets, env string, exceptions []exception, least int) {
	t.Helper()
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	args := []string{"-test.v", "-test.timeout=30m", "-ginkgo.json-report=" + report}
	for _, e := range exceptions {
		args = append(args, "-ginkgo.skip="+regexp.QuoteMeta(e.spec)+"$")
	}
	tests := exec.CommandContext(t.Context(), binary, args...)
	tests.Dir, tests.Env = dir, append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, env)
	out, failed := tests.CombinedOutput()
	content, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v, %v\n%s", err, failed, out)
	}
	var reports []types.Report
	if err := json.Unmarshal(content, &reports); err != nil {
		t.Fatal(err)
	}
	passed, skipped := 0, map[string]bool{}
	for _, spec := range reports[0].SpecReports {
		switch spec.State {
		case types.SpecStatePassed:
			passed++
		case types.SpecStateSkipped:
			skipped[spec.FullText()] = true
		default:
			t.Errorf("%s: %s: %s", spec.FullText(), spec.State, spec.Failure.Message)
		}
	}
	if failed != nil && !t.Failed() {
		t.Errorf("%v\n%s", failed, out)
	}
	for _, e := range exceptions {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(skipped)), func(name string) bool { return strings.HasSuffix(name, e.spec) }) {
			t.Errorf("no test has the name of the exception %q", e.spec)
		}
	}
	if t.Logf("%d tests passed, %d are exceptions", passed, len(skipped)); passed < least {
		t.Errorf("%d tests passed, want at least %d", passed, least)
	}
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

package controllerruntime_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
)

var stock = flag.Bool("stock", false, "run the suites on controller-runtime's cache, to compare")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// suite is the suite of a package of controller-runtime. docs/controller-runtime.md has its counts.
type suite struct {
	pkg    string
	packed string // the value of GVRKIT_PACKED_CACHES, unless it is empty
	specs  int
	cached int // specs that create a cache
}

// suites has two rows that run at once. The suites of a row run one after the other. In short mode, only the quick suite runs.
var suites = [][]suite{{
	{"cache", "false", 276, 270},
	{"cache", "true", 276, 270},
}, {
	{"manager", "", 107, 60},
	{"builder", "", 72, 72},
	quick,
	{"client", "", 311, 13},
}}

// quick is the suite that make test runs.
var quick = suite{"controller", "", 32, 32}

func TestDocsHaveTheCounts(t *testing.T) {
	docs, err := os.ReadFile("../../../docs/controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(suites...) {
		if row := fmt.Sprintf("| `pkg/%s` | %d | %d | %[2]d | %[2]d |", s.pkg, s.specs, s.cached); !strings.Contains(string(docs), row) {
			t.Errorf("docs/controller-runtime.md lacks %q", row)
		}
	}
}

func TestControllerRuntimesOwnTestsPass(t *testing.T) {
	t.Parallel()
	assets, err := controlplane.Assets(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	release := release{goCommand(t, "list", "-m", "-f", "{{.Dir}}", module)}
	rows, pkgs := suites, []string{"cache", "manager", "builder", "controller", "client"}
	if testing.Short() {
		rows, pkgs = [][]suite{{quick}}, []string{quick.pkg}
	}
	programs := release.build(t, pkgs...)
	for _, row := range rows {
		t.Run(row[0].pkg, func(t *testing.T) {
			t.Parallel()
			for _, s := range row {
				packed := cmp.Or(s.packed, os.Getenv("GVRKIT_PACKED_CACHES"), "false")
				if *stock && s.packed == "true" {
					continue
				}
				t.Run(s.pkg+" packed="+packed, func(t *testing.T) {
					tests := release.command(t, filepath.Join(programs, s.pkg+".test"), s.pkg)
					tests.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "GVRKIT_PACKED_CACHES="+packed, "GVRKIT_STOCK_CACHE="+strconv.FormatBool(*stock),
						// The suites share the processors: the default limits, 20 s and 1 s, are too short.
						"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=5m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m", "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=30s")
					s.check(t, tests, exceptionsOf(s.pkg, packed == "true" && !*stock))
				})
			}
		})
	}
}

// check runs the tests. All must pass except the exceptions.
func (s suite) check(t *testing.T, tests *exec.Cmd, exceptions []exception) {
	t.Helper()
	out, failed := tests.CombinedOutput()
	content, err := os.ReadFile(filepath.Join(tests.Dir, report))
	if err != nil {
		t.Fatalf("%v, %v\n%s", err, failed, out)
	}
	var reports []types.Report
	if err := json.Unmarshal(content, &reports); err != nil {
		t.Fatal(err)
	}
	got, failing, found := suite{pkg: s.pkg, packed: s.packed}, 0, map[exception]bool{}
	for _, spec := range reports[0].SpecReports {
		passes := spec.State.Is(types.SpecStatePassed)
		if spec.State.Is(types.SpecStatePending) || passes && !spec.LeafNodeType.Is(types.NodeTypeIt) {
			continue
		}
		got.specs++
		if slices.ContainsFunc(spec.ReportEntries, func(e types.ReportEntry) bool { return e.Name == "cache" }) {
			got.cached++
		}
		if !passes {
			failing++
		}
		n := slices.IndexFunc(exceptions, func(e exception) bool { return strings.HasSuffix(spec.FullText(), e.spec) })
		if n < 0 && !passes {
			t.Errorf("%s: %s: %s", spec.FullText(), spec.State, spec.Failure.Message)
		}
		if n >= 0 {
			found[exceptions[n]] = true
			if passes && !slices.Contains(unreliable, exceptions[n]) {
				t.Errorf("%s: the exception passes", spec.FullText())
			}
		}
	}
	for _, e := range exceptions {
		if !found[e] {
			t.Errorf("no test has the name of the exception %q", e.spec)
		}
	}
	// The specs are one of the program's tests. Others may fail too.
	if n := strings.Count(string(out), "--- FAIL: "); n > min(failing, 1) || failed != nil && failing == 0 || bytes.Contains(out, []byte("DATA RACE")) {
		t.Errorf("%d tests fail, %v\n%s", n, failed, out)
	}
	if t.Logf("%d specs, %d fail, %d create a cache", got.specs, failing, got.cached); got != s {
		t.Errorf("%d specs of which %d create a cache, want %d and %d", got.specs, got.cached, s.specs, s.cached)
	}
}

package upstream_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// imports replaces the imports of client-go's packages by ours.
var imports = strings.NewReplacer(
	`	"k8s.io/client-go/dynamic/dynamicinformer"`, `	"github.com/gvrkit/gvrkit/dynamicinformer"`,
	`	"k8s.io/client-go/dynamic/dynamiclister"`, `	dynamiclister "github.com/gvrkit/gvrkit/lister"`,
	// The tests of these packages are inside them: they import ours instead.
	"package metadatainformer\n\nimport (\n", "package metadatainformer_test\n\nimport (\n\t. \"github.com/gvrkit/gvrkit/metadatainformer\"\n",
	"package metadatalister\n\nimport (\n", "package metadatalister_test\n\nimport (\n\t. \"github.com/gvrkit/gvrkit/metadatalister\"\n",
)

// goList returns the output of go list.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func TestClientGosOwnTestsPass(t *testing.T) {
	clientGo := goList(t, "-m", "-f", "{{.Dir}}", "k8s.io/client-go")
	here := goList(t, "-f", "{{.Dir}}", ".")
	for _, tc := range []struct {
		file string
		want []string // some of its tests, which must have run
	}{
		{"dynamic/dynamicinformer/informer_test.go", []string{"TestDynamicSharedInformerFactory", "TestFilteredDynamicSharedInformerFactory", "TestWatchListSemanticsSimple"}},
		{"dynamic/dynamiclister/lister_test.go", []string{"TestNamespaceGetMethod", "TestListerListMethod"}},
		{"metadata/metadatainformer/informer_test.go", []string{"TestMetadataSharedInformerFactory", "TestWatchListSemanticsSimple"}},
		{"metadata/metadatalister/lister_test.go", []string{"TestNamespaceGetMethod", "TestListerListMethod"}},
	} {
		t.Run(tc.file, func(t *testing.T) {
			original, err := os.ReadFile(filepath.Join(clientGo, filepath.FromSlash(tc.file)))
			if err != nil {
				t.Fatal(err)
			}
			changed := imports.Replace(string(original))
			if changed == string(original) {
				t.Fatal("the file has none of the imports to replace")
			}
			// The package is only in the overlay, so that no file is written to the source tree.
			// The tests run in another directory, as its own does not exist.
			folder := filepath.Dir(tc.file)
			overlay := overlayWith(t, filepath.Join(here, folder, "upstream_test.go"), changed)
			binary := filepath.Join(t.TempDir(), "upstream.test")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+folder)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			tests := exec.CommandContext(t.Context(), binary, "-test.v")
			tests.Dir = t.TempDir()
			out, err := tests.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, name := range tc.want {
				if !regexp.MustCompile(`(?m)^--- PASS: ` + name + ` `).Match(out) {
					t.Errorf("%s did not pass:\n%s", name, out)
				}
			}
		})
	}
}

// overlayWith returns the path of an overlay that has content at path.
func overlayWith(t *testing.T, path, content string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "source.go")
	if err := os.WriteFile(source, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: source}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

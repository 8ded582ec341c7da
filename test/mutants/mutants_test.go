package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

func TestMutants_FitTheSource(t *testing.T) {
	names := map[string]bool{}
	for _, table := range tables {
		files, err := load(filepath.Join(root, table.dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range table.mutants {
			if names[m.name] {
				t.Errorf("%s: the name is not unique", m.name)
			}
			names[m.name] = true
			if _, err := schemata(files, []mutant{m}); err != nil {
				t.Errorf("%s.%s: %v", table.dir, m.fn, err)
			}
		}
	}
}

// The page has a row for each bug that the churn model must find, with the invariant that finds it.
func TestMutants_OfChurnAreInTheReadme(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Planted bugs\n")
	section, _, ends := strings.Cut(section, "\n## ")
	if !found || !ends {
		t.Fatal("there is no section on planted bugs")
	}
	var rows, planted []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || cells[1] == " planted bug " {
			continue
		}
		if strings.TrimSpace(cells[2]) == "" {
			t.Errorf("%s: no invariant", cells[1])
		}
		rows = append(rows, strings.TrimSpace(cells[1]))
	}
	for _, table := range ofChurn {
		for _, m := range table.mutants {
			planted = append(planted, strings.TrimPrefix(m.name, "churn: "))
		}
	}
	slices.Sort(rows)
	slices.Sort(planted)
	if diff := cmp.Diff(planted, rows); diff != "" {
		t.Errorf("test/README.md has other bugs (-planted +page):\n%s", diff)
	}
}

// It compiles the library without the race detector, so it is not part of make test, but of make test-long.
func TestMutants_Compile(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long runs it")
	}
	t.Chdir(root)
	imports := compiled(t)
	for _, packages := range selected(nil) {
		for dir, mutants := range packages {
			files, err := load(dir)
			if err != nil {
				t.Fatal(err)
			}
			sources, err := schemata(files, mutants)
			if err != nil {
				continue // TestMutants_FitTheSource reports it
			}
			for _, f := range files {
				if sources[f.path] == nil {
					sources[f.path] = f.src
				}
			}
			for _, err := range check(imports, dir, sources) {
				t.Error(err)
			}
		}
	}
}

// compiled returns an importer of the compiled packages.
func compiled(t *testing.T) types.Importer {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...", "./controllerruntime/...", "./metrics/...")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

// check returns the errors of a package.
func check(imports types.Importer, pkg string, sources map[string][]byte) (errs []error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for path, src := range sources {
		file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		parsed = append(parsed, file)
	}
	cfg := types.Config{Importer: imports, Error: func(err error) { errs = append(errs, err) }}
	_, _ = cfg.Check(pkg, fset, parsed, nil)
	return errs
}

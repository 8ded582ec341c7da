package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
			if _, _, err := m.apply(files); err != nil {
				t.Errorf("%s: %s.%s: %v", m.name, table.dir, m.decl, err)
			}
		}
	}
}

// A mutant must compile. Mutants of different declarations are compiled together. If that fails, each
// is compiled alone.
func TestMutants_Compile(t *testing.T) {
	c := newChecker(t)
	rounds := map[string][][]mutant{} // by package; a round has at most one mutant of each declaration
	for _, table := range tables {
		for _, m := range table.mutants {
			all := rounds[table.dir]
			i := slices.IndexFunc(all, func(round []mutant) bool {
				return !slices.ContainsFunc(round, func(other mutant) bool { return other.decl == m.decl })
			})
			if i < 0 {
				i, all = len(all), append(all, nil)
			}
			all[i] = append(all[i], m)
			rounds[table.dir] = all
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(rounds)) {
		files, err := load(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, round := range rounds[dir] {
			round = slices.DeleteFunc(round, func(m mutant) bool { _, _, err := m.edits(files); return err != nil }) // TestMutants_FitTheSource reports it
			if c.check(files, round...) == nil {
				continue
			}
			for _, m := range round {
				if err := c.check(files, m); err != nil {
					t.Errorf("%s: %v", m.name, err)
				}
			}
		}
	}
}

// checker type-checks packages. It imports compiled packages.
type checker struct {
	fset    *token.FileSet
	imports types.Importer
}

func newChecker(t *testing.T) checker {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...", "./metrics/...")
	list.Dir = root
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	fset := token.NewFileSet()
	return checker{fset, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })}
}

// check type-checks the files of a package with mutants of different declarations.
func (c checker) check(files []file, mutants ...mutant) error {
	edits := map[string][]edit{}
	for _, m := range mutants {
		p, made, err := m.edits(files)
		if err != nil {
			return err
		}
		edits[p.file] = append(edits[p.file], made...)
	}
	var parsed []*ast.File
	for _, f := range files {
		src, err := applied(f.src, edits[f.path])
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(c.fset, f.path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	cfg := types.Config{Importer: c.imports}
	_, err := cfg.Check(files[0].parsed.Name.Name, c.fset, parsed, nil)
	return err
}

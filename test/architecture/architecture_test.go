package architecture

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/gvrkit/gvrkit/"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// section returns the lines of ARCHITECTURE.md under a heading.
func section(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("ARCHITECTURE.md has no section %q", heading)
	}
	inside, _, _ := strings.Cut(after, "\n## ")
	return strings.Split(inside, "\n")
}

// packages returns the directories with Go files, except tests, of all modules, and for each the packages of
// this repository that it imports.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".git") || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		imports[dir] = append(imports[dir], []string{}...) // also without imports
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if own, is := strings.CutPrefix(name, module); is {
				imports[dir] = append(imports[dir], own)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

func TestPackages_AreInTheTableAndImportDownward(t *testing.T) {
	row := map[string]int{}
	may := map[string]string{} // the last cell of a package's row
	for i, line := range section(t, "Packages") {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
				row[name[1]] = i
				may[name[1]] = cells[3]
			}
		}
	}
	// rowOf returns the row of dir, or of the directory above it that the table has: it has some modules as one
	// package.
	rowOf := func(dir string) (name string, at int) {
		for name = dir; name != "."; name = filepath.Dir(name) {
			if at, listed := row[name]; listed {
				return name, at
			}
		}
		return "", 0
	}
	for dir, imports := range packages(t) {
		name, at := rowOf(dir)
		if name == "" || name != dir && !hasModule(name) {
			t.Errorf("the table has no package %s", dir)
			continue
		}
		for _, other := range imports {
			there, below := rowOf(other)
			switch {
			case there == name:
			case below <= at:
				t.Errorf("%s imports %s, which is not below it in the table", dir, other)
			case !strings.Contains(may[name], "anything") && !strings.Contains(may[name], "packages below") && !strings.Contains(may[name], "`"+other+"`"):
				t.Errorf("%s imports %s, which is not in its row of the table", dir, other)
			}
		}
	}
}

// hasModule reports whether dir is the directory of a module.
func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil
}

// A package that grows beyond these limits has more than one idea.
func TestPackages_AreSmall(t *testing.T) {
	for _, limit := range []struct {
		dir          string
		files, lines int // 0: any number of files
	}{
		{"dynamicinformer", 20, 3200},
		{"bench", 0, 4750},
	} {
		files, lines := 0, 0
		err := filepath.WalkDir(filepath.Join(root, limit.dir), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "clustertest": // a test kit
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			source, err := os.ReadFile(path)
			files++
			lines += strings.Count(string(source), "\n")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if files == 0 || limit.files > 0 && files > limit.files || lines > limit.lines {
			t.Errorf("%s has %d files and %d lines, want at most %d and %d", limit.dir, files, lines, limit.files, limit.lines)
		}
	}
}

// A walk is a line with its limits, and the table after it.
func TestWalks_AreShort(t *testing.T) {
	bounds := regexp.MustCompile(`at most (\d+) files and ([\d,]+) lines:$`)
	row := regexp.MustCompile("^\\| `([^`]+)` \\| (.+) \\|$")
	var files, lines, maxFiles, maxLines, walks int
	check := func() {
		if walks > 0 && (files == 0 || files > maxFiles || lines > maxLines) {
			t.Errorf("walk %d has %d files and %d lines, want at most %d and %d", walks, files, lines, maxFiles, maxLines)
		}
		files, lines = 0, 0
	}
	for _, line := range section(t, "Walks") {
		if b := bounds.FindStringSubmatch(line); b != nil {
			check()
			walks++
			maxFiles, _ = strconv.Atoi(b[1])
			maxLines, _ = strconv.Atoi(strings.ReplaceAll(b[2], ",", ""))
		}
		r := row.FindStringSubmatch(line)
		if r == nil {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, r[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		files++
		lines += strings.Count(string(source), "\n")
		for _, name := range quoted.FindAllStringSubmatch(r[2], -1) {
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name[1] + `\(`).Match(source) {
				t.Errorf("%s has no function %s", r[1], name[1])
			}
		}
	}
	check()
	if walks == 0 {
		t.Error("ARCHITECTURE.md has no walks")
	}
}

// client-go compiles with 32 bits, and programs run on such machines. A constant that an int of 32 bits can't hold does not compile there.
func TestPackages_CompileWith32Bits(t *testing.T) {
	t.Chdir(root)
	// make test has compiled the packages with the race detector.
	list := exec.CommandContext(t.Context(), "go", "list", "-race", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles,DepOnly", "./...", "./controllerruntime/...", "./metrics/...")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	type compiled struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
		DepOnly                 bool
	}
	var own []compiled
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var pkg compiled
		if err := decoder.Decode(&pkg); err != nil {
			t.Fatal(err)
		}
		exports[pkg.ImportPath] = pkg.Export
		if !pkg.DepOnly {
			own = append(own, pkg)
		}
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, pkg := range own {
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range pkg.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		report := func(err error) {
			if !strings.Contains(err.Error(), "math.MaxInt (") { // the imported packages are those of this machine
				t.Error(err)
			}
		}
		cfg := types.Config{Importer: imports, Sizes: types.SizesFor("gc", "386"), Error: report}
		_, _ = cfg.Check(pkg.ImportPath, files, parsed, nil)
	}
	if len(own) < 20 {
		t.Errorf("only %d packages", len(own))
	}
}

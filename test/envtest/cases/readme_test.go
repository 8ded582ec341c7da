package cases

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	readme = root + "/test/README.md"
	header = "| case | tests | gvrkit | client-go v0.37.2 |\n|---|---|---|---|\n"
)

var write = flag.Bool("write", false, "write the table of test/README.md")

// table is the table of test/README.md.
func table() string {
	text := &strings.Builder{}
	text.WriteString(header)
	for _, r := range rows {
		tests := append([]string(nil), r.tests...)
		if r.run != nil {
			tests = append([]string{fmt.Sprintf("test/envtest/cases: TestCases/%d", r.number)}, tests...)
		}
		for i, test := range tests {
			dir, name, _ := strings.Cut(test, ": ")
			if strings.HasPrefix(name, "Test") {
				name = "`" + name + "`"
			}
			tests[i] = fmt.Sprintf("`%s`: %s", dir, name)
		}
		gvrkit := r.gvrkit
		if r.more != "" {
			gvrkit += ". Also: " + r.more
		}
		fmt.Fprintf(text, "| %d. %s | %s | %s | %s |\n", r.number, r.title, strings.Join(tests, " · "), gvrkit, r.clientGo)
	}
	return text.String()
}

func TestReadme_HasTheTable(t *testing.T) {
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), header)
	if !found {
		t.Fatal("test/README.md has no table of cases")
	}
	lines := strings.SplitAfter(rest, "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "|") {
		lines = lines[1:]
	}
	want := before + table() + strings.Join(lines, "")
	switch {
	case string(page) == want:
	case *write:
		if err := os.WriteFile(readme, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the table of test/README.md is not that of rows; run go test ./test/envtest/cases -run TestReadme -write")
	}
}

// A row names at least one test, which exists.
func TestRows_TestsExist(t *testing.T) {
	known := map[string]map[string]bool{} // the tests of a directory
	last := 0
	for _, r := range rows {
		if r.number <= last {
			t.Errorf("case %d follows case %d", r.number, last)
		}
		last = r.number
		if len(r.tests) == 0 && r.run == nil || r.gvrkit == "" || r.clientGo == "" {
			t.Errorf("case %d is not complete", r.number)
		}
		for _, test := range r.tests {
			dir, name, _ := strings.Cut(test, ": ")
			if known[dir] == nil {
				known[dir] = testsOf(t, dir)
			}
			if !known[dir][name] {
				t.Errorf("case %d: %s has no test %q", r.number, dir, name)
			}
		}
		measured := r.clientGo != noFeature && !strings.HasPrefix(r.clientGo, longTest)
		if measured != (r.run != nil) {
			t.Errorf("case %d: client-go is measured here if and only if there is a scenario", r.number)
		}
	}
}

// testsOf returns the names of the Go tests in a directory of the repository, and the texts of its ginkgo specs.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d files with tests, %v", dir, len(files), err)
	}
	names := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") {
					names[n.Name.Name] = true
				}
			case *ast.CallExpr:
				if spec, is := n.Fun.(*ast.Ident); is && len(n.Args) > 0 && (spec.Name == "It" || spec.Name == "DescribeTable") {
					names[textOf(n.Args[0])] = true
				}
			}
			return true
		})
	}
	return names
}

// textOf returns the constant parts of the text of a spec.
func textOf(text ast.Expr) string {
	var parts string
	ast.Inspect(text, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if part, err := strconv.Unquote(literal.Value); err == nil {
				parts += part
			}
		}
		return true
	})
	return strings.TrimSpace(parts)
}

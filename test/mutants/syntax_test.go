package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = `package p

func (t *T[K]) f(a, b bool) int {
	if a && b { // a comment
		g(0,
			a)
		return 1
	}
	select {
	case <-t.done:
		return 2
	case v := <-t.more:
		g(v, b)
	}
	switch {
	case a, b:
		return 3
	}
	return 1
}
`

func TestChange_EachKind(t *testing.T) {
	for name, test := range map[string]struct {
		change   change
		from, to string // the change of the sample
	}{
		"drop a statement":        {drop("g(0, a)"), "g(0,\n\t\t\ta)", "if false {\ng(0,\n\t\t\ta)\n}"},
		"drop statements":         {drop("g(0, a); return 1"), "g(0,\n\t\t\ta)\n\t\treturn 1", "if false {\ng(0,\n\t\t\ta)\n\t\treturn 1\n}"},
		"drop a case":             {drop("case <-t.done: return 2"), "case <-t.done:\n\t\treturn 2", ""},
		"drop a first argument":   {drop("0"), "0,\n\t\t\ta", "\n\t\t\ta"},
		"drop a last argument":    {within("g(v, b)", drop("b")), "v, b", "v"},
		"drop a case's condition": {within("case a, b: return 3", drop("b")), "a, b:", "a:"},
		"never":                   {never("a && b"), "a && b", "(false && (a && b))"},
		"never receive":           {never("<-t.done"), "<-t.done", "<-func() chan struct{} { _ = t.done; return nil }()"},
		"always":                  {within("a && b", always("b")), "b {", "(true || (b)) {"},
		"replace":                 {replace("t.more", "t.less"), "t.more", "t.less"},
		"before":                  {before("g(v, b)", "h()"), "g(v, b)", "h()\ng(v, b)"},
		"after":                   {after("if a && b { g(0, a); return 1 }", "h()"), "return 1\n\t}", "return 1\n\t}\nh()"},
		"after a case":            {after("case <-t.done: return 2", "default:"), "return 2", "return 2\ndefault:"},
		"within a block":          {within("a && b", replace("1", "4")), "return 1\n\t}", "return 4\n\t}"},
		"returns":                 {returns("4"), "int {", "int {if true {\nreturn 4\n}\n"},
		"all":                     {all(replace("t.done", "t.less"), replace("2", "4")), "<-t.done:\n\t\treturn 2", "<-t.less:\n\t\treturn 4"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mutate(t, test.change)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Replace(sample, test.from, test.to, 1), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChange_FailsIfItDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		change change
		want   string
	}{
		"missing":             {drop("h()"), "0 matches"},
		"twice":               {drop("return 1"), "2 matches"},
		"part of a statement": {replace("b { g", "x"), "0 matches"},
		"drop a condition":    {drop("a && b"), "can't be dropped"},
		"before a condition":  {before("a && b", "h()"), "not a statement"},
		"outside the block":   {within("a && b", replace("2", "4")), "0 matches"},
		"two in one place":    {all(drop("g(v, b)"), replace("v", "w")), "2 matches"},
		"outside the body":    {replace("a, b bool", "b, a bool"), "not in the body"},
		"overlapping":         {all(drop("g(v, b)"), within("g(v, b)", drop("b"))), "overlap"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mutate(t, test.change); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q", err, test.want)
			}
		})
	}
}

// A call of recover in a function literal within the function is that of the literal, also in a mutant.
func TestFind_RefusesFunctionsThatRecover(t *testing.T) {
	files := []file{parse(t, `package p

func deferred() { f(recover()) }

func other() { defer func() { recover() }() }
`)}
	if _, err := find(files, "deferred"); err == nil || !strings.Contains(err.Error(), "recover") {
		t.Errorf("error = %v", err)
	}
	if _, err := find(files, "other"); err != nil {
		t.Error(err)
	}
}

func mutate(t *testing.T, c change) (string, error) {
	t.Helper()
	p, edits, err := mutant{fn: "T.f", change: c}.edits([]file{parse(t, sample)})
	if err != nil {
		return "", err
	}
	src, err := applied(p.src, edits)
	return string(src), err
}

func parse(t *testing.T, src string) file {
	t.Helper()
	f := file{path: "sample.go", src: []byte(src), fset: token.NewFileSet()}
	var err error
	if f.parsed, err = parser.ParseFile(f.fset, f.path, f.src, parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	return f
}

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// place is a function that a mutant changes.
type place struct {
	file    string
	src     []byte
	results string        // the types, with names if it has them
	body    span          // without the braces
	words   []word        // the tokens of the function
	nodes   map[span]kind // the parts that can be changed
	blocks  []span        // the blocks for within
}

// span is a part of a file, as byte offsets.
type span struct{ from, to int }

// kind is the kind of a part of the source.
type kind int

const (
	part      kind = iota // another part, such as an expression
	element               // an element of a literal, an argument, or a condition of a case
	statement             // one statement, or consecutive statements
	receive               // the receive operation of a case of a select, without a variable
	clause                // a case of a switch or select
)

// word is a token of the source.
type word struct {
	span
	text string
}

// edit is a change of a file's text.
type edit struct {
	span
	text string
}

// change changes a function.
type change func(place) ([]edit, error)

// drop skips the statements that match code, or removes a case, an argument or an element of a
// literal.
//
// A part of the source matches code if it has the same tokens; comments and layout do not count. The
// part is an expression, a case, or one or more statements, and must occur once in the function.
func drop(code string) change {
	return at(code, func(p place, s span, k kind) (edit, error) {
		switch k {
		case part:
			return edit{}, fmt.Errorf("a part of an expression can't be dropped: %s", code)
		case statement: // keeps variables and imports in use
			return edit{s, "if false {\n" + p.text(s) + "\n}"}, nil
		case element:
			before := strings.TrimRight(string(p.src[:s.from]), " \t\n")
			after := strings.TrimLeft(string(p.src[s.to:]), " \t\n")
			if cut, found := strings.CutSuffix(before, ","); found {
				s.from = len(cut)
			} else if cut, found := strings.CutPrefix(after, ","); found {
				s.to = len(p.src) - len(cut)
			}
		}
		return edit{s, ""}, nil
	})
}

// never makes the condition that matches code false. If code is the receive operation of a case of a
// select, that case waits for ever.
func never(code string) change {
	return at(code, func(p place, s span, k kind) (edit, error) {
		if k == receive {
			return edit{s, "<-func() chan struct{} { _ = " + p.text(s)[len("<-"):] + "; return nil }()"}, nil
		}
		return edit{s, "(false && (" + p.text(s) + "))"}, nil
	})
}

// always makes the condition that matches code true.
func always(code string) change {
	return at(code, func(p place, s span, _ kind) (edit, error) {
		return edit{s, "(true || (" + p.text(s) + "))"}, nil
	})
}

// replace replaces code by text.
func replace(code, text string) change {
	return at(code, func(_ place, s span, _ kind) (edit, error) { return edit{s, text}, nil })
}

// before inserts text before the statements that match code.
func before(code, text string) change {
	return at(code, func(_ place, s span, k kind) (edit, error) {
		return edit{span{s.from, s.from}, text + "\n"}, stands(k, code)
	})
}

// after inserts text after the statements that match code.
func after(code, text string) change {
	return at(code, func(_ place, s span, k kind) (edit, error) {
		return edit{span{s.to, s.to}, "\n" + text}, stands(k, code)
	})
}

// within makes a change in the smallest block that contains code: an if, for, switch, select or case,
// or a function literal.
func within(code string, c change) change {
	return func(p place) ([]edit, error) {
		s, _, err := p.find(code)
		if err != nil {
			return nil, err
		}
		block := p.words[0].span
		block.to = p.words[len(p.words)-1].to
		for _, b := range p.blocks {
			if b.from <= s.from && s.to <= b.to && b.to-b.from < block.to-block.from {
				block = b
			}
		}
		p.words = slices.DeleteFunc(slices.Clone(p.words), func(w word) bool { return w.from < block.from || w.to > block.to })
		return c(p)
	}
}

// returns makes a function return values at once.
func returns(values string) change {
	return func(p place) ([]edit, error) {
		return []edit{{span{p.body.from, p.body.from}, "if true {\nreturn " + values + "\n}\n"}}, nil
	}
}

// all makes several changes.
func all(changes ...change) change {
	return func(p place) (edits []edit, err error) {
		for _, c := range changes {
			more, err := c(p)
			if err != nil {
				return nil, err
			}
			edits = append(edits, more...)
		}
		return edits, nil
	}
}

// at makes the change how to the part of the function that matches code.
func at(code string, how func(place, span, kind) (edit, error)) change {
	return func(p place) ([]edit, error) {
		s, k, err := p.find(code)
		if err != nil {
			return nil, err
		}
		e, err := how(p, s, k)
		return []edit{e}, err
	}
}

func stands(k kind, code string) error {
	if k != statement && k != clause {
		return fmt.Errorf("not a statement: %s", code)
	}
	return nil
}

// find returns the part of the place that matches code, which must occur once.
func (p place) find(code string) (found span, is kind, err error) {
	want, times := scan([]byte(code)), 0
	for i := range max(0, len(p.words)-len(want)+1) {
		words := p.words[i : i+len(want)]
		whole := span{words[0].from, words[len(words)-1].to}
		k, node := p.nodes[whole]
		if node && slices.EqualFunc(words, want, func(a, b word) bool { return a.text == b.text }) {
			found, is = whole, k
			times++
		}
	}
	if times != 1 {
		return span{}, part, fmt.Errorf("%s has %d matches, want 1: %s", p.file, times, code)
	}
	return found, is, nil
}

// edits returns the function that m changes, and the changes of its body.
func (m mutant) edits(files []file) (place, []edit, error) {
	p, err := find(files, m.fn)
	if err != nil {
		return place{}, nil, err
	}
	edits, err := m.change(p)
	if err == nil && slices.ContainsFunc(edits, func(e edit) bool { return e.from < p.body.from || e.to > p.body.to }) {
		err = errors.New("the change is not in the body")
	}
	return p, edits, err
}

// applied returns src with edits.
func applied(src []byte, edits []edit) ([]byte, error) {
	src, next := slices.Clone(src), len(src)
	for _, e := range slices.SortedStableFunc(slices.Values(edits), func(a, b edit) int { return b.from - a.from }) {
		if e.to > next {
			return nil, errors.New("two changes overlap")
		}
		src, next = slices.Replace(src, e.from, e.to, []byte(e.text)...), e.from
	}
	return src, nil
}

func (p place) text(s span) string { return string(p.src[s.from:s.to]) }

// file is a parsed file of a package.
type file struct {
	path   string
	src    []byte
	fset   *token.FileSet
	parsed *ast.File
}

// load returns the files of the package in dir, without its tests.
func load(dir string) (files []file, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := file{path: path, fset: token.NewFileSet()}
		if f.src, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		if f.parsed, err = parser.ParseFile(f.fset, path, f.src, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// find returns the function of that name: "function" or "Type.Method".
func find(files []file, name string) (place, error) {
	for _, f := range files {
		for _, decl := range f.parsed.Decls {
			fn, is := decl.(*ast.FuncDecl)
			if !is || nameOf(fn) != name {
				continue
			}
			if recovers(fn) {
				return place{}, fmt.Errorf("%s calls recover: in the function literal of a mutant, that returns nil", name)
			}
			return newPlace(f, fn), nil
		}
	}
	return place{}, fmt.Errorf("no function %s", name)
}

// recovers reports whether f calls recover, not only in function literals.
func recovers(f *ast.FuncDecl) (is bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			of, named := n.Fun.(*ast.Ident)
			is = is || named && of.Name == "recover"
		}
		return true
	})
	return is
}

// nameOf returns "Function" or "Type.Method".
func nameOf(f *ast.FuncDecl) string {
	name := f.Name.Name
	if f.Recv == nil {
		return name
	}
	for of := f.Recv.List[0].Type; ; {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr: // generic
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + name
		}
	}
}

func newPlace(f file, fn *ast.FuncDecl) place {
	offset := func(from, to token.Pos) span { return span{f.fset.Position(from).Offset, f.fset.Position(to).Offset} }
	p := place{file: f.path, src: f.src, body: offset(fn.Body.Lbrace+1, fn.Body.Rbrace), nodes: map[span]kind{}}
	if results := fn.Type.Results; results != nil {
		p.results = p.text(offset(results.Pos(), results.End()))
	}
	all := offset(fn.Pos(), fn.End())
	for _, w := range scan(f.src) {
		if w.from >= all.from && w.to <= all.to {
			p.words = append(p.words, w)
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		whole := offset(n.Pos(), n.End())
		switch n.(type) {
		case *ast.CaseClause, *ast.CommClause:
			p.nodes[whole] = clause
			p.blocks = append(p.blocks, whole)
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.FuncLit:
			p.blocks = append(p.blocks, whole)
		}
		if _, known := p.nodes[whole]; !known {
			p.nodes[whole] = part
		}
		statements, elements := children(n)
		for i, first := range statements {
			for _, last := range statements[i:] {
				p.nodes[offset(first.Pos(), last.End())] = statement
			}
		}
		for _, e := range elements {
			p.nodes[offset(e.Pos(), e.End())] = element
		}
		if comm, is := n.(*ast.CommClause); is {
			if received, is := comm.Comm.(*ast.ExprStmt); is {
				p.nodes[offset(received.Pos(), received.End())] = receive
			}
		}
		return true
	})
	return p
}

// children returns the statements of a block or case, and the elements of a list.
func children(n ast.Node) ([]ast.Stmt, []ast.Expr) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List, nil
	case *ast.CallExpr:
		return nil, n.Args
	case *ast.CompositeLit:
		return nil, n.Elts
	case *ast.CaseClause:
		return n.Body, n.List
	case *ast.CommClause:
		return n.Body, nil
	}
	return nil, nil
}

// scan returns the tokens of src, without those that depend on the layout: a semicolon
// at the end, and a semicolon or comma before a closing bracket.
func scan(src []byte) (words []word) {
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	for {
		pos, tok, text := s.Scan()
		closes := tok == token.EOF || tok == token.RBRACE || tok == token.RPAREN
		if last := len(words) - 1; closes && last >= 0 && strings.Contains(";,", words[last].text) {
			words = words[:last]
		}
		if tok == token.EOF {
			return words
		}
		if text == "" || tok == token.SEMICOLON {
			text = tok.String()
		}
		from := file.Offset(pos)
		words = append(words, word{span{from, from + len(text)}, text})
	}
}

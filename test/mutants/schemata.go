package main

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// variable is the environment variable with the name of the active mutant.
const variable = "GVRKIT_MUTANT"

// selector is the source of a file that schemata adds to a package.
const selector = `package %s

import "os"

var activeMutant = os.Getenv(%q)
`

// schemata returns the source of the files of a package that change, by path, with all mutants. A
// function that they change begins with a statement for each of its mutants:
//
//	if activeMutant == "the mutant's name" {
//		return func() (results) { the mutated body }()
//	}
//
// A function literal has labels, named results and deferred calls of its own, as the mutated function
// would have.
func schemata(files []file, mutants []mutant) (map[string][]byte, error) {
	statements := map[string][]edit{}
	for _, m := range mutants {
		p, edits, err := m.edits(files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		src, err := applied(p.src[:p.body.to], edits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		// In errors of the compiler, the name of the mutant stands for the file.
		body := fmt.Sprintf("/*line mutant %q:1:1*/ %s", m.name, bytes.TrimSpace(src[p.body.from:]))
		call := fmt.Sprintf("return func() %s {%s\n}()", p.results, body)
		if p.results == "" {
			call = fmt.Sprintf("func() {%s\n}()\nreturn", body)
		}
		begin := span{p.body.from, p.body.from}
		statements[p.file] = append(statements[p.file], edit{begin, fmt.Sprintf("\nif activeMutant == %q {\n%s\n}\n", m.name, call)})
	}
	sources := map[string][]byte{}
	for _, f := range files {
		if len(statements[f.path]) == 0 {
			continue
		}
		src, err := applied(f.src, statements[f.path])
		if err != nil {
			return nil, err
		}
		sources[f.path] = src
	}
	dir, name := filepath.Dir(files[0].path), files[0].parsed.Name.Name
	sources[filepath.Join(dir, "active_mutant.go")] = fmt.Appendf(nil, selector, name, variable)
	return sources, nil
}

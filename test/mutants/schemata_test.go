package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const functions = `package p

func f(a, b bool) (n int, err error) {
	if a && b {
		n = 1
	}
	return
}

func g() { panic("g") }
`

func TestSchemata_HaveEachMutantBesideTheFunction(t *testing.T) {
	sources, err := schemata([]file{parse(t, functions)}, []mutant{
		{"or", "f", replace("a && b", "a || b")},
		{"quiet", "g", drop(`panic("g")`)},
		{"two", "f", replace("1", "2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if errs := check(nil, "p", map[string][]byte{"sample.go": sources["sample.go"], "x.go": []byte("package p; var activeMutant string")}); errs != nil {
		t.Error(errs)
	}
	want := `package p

func f(a, b bool) (n int, err error) {
if activeMutant == "two" {
return func() (n int, err error) {/*line mutant "two":1:1*/ if a && b {
		n = 2
	}
	return
}()
}

if activeMutant == "or" {
return func() (n int, err error) {/*line mutant "or":1:1*/ if a || b {
		n = 1
	}
	return
}()
}

	if a && b {
		n = 1
	}
	return
}

func g() {
if activeMutant == "quiet" {
func() {/*line mutant "quiet":1:1*/ if false {
panic("g")
}
}()
return
}
 panic("g") }
`
	if diff := cmp.Diff(want, string(sources["sample.go"])); diff != "" {
		t.Error(diff)
	}
}

func TestSchemata_ErrorsOfTheCompilerNameTheMutant(t *testing.T) {
	sources, err := schemata([]file{parse(t, functions)}, []mutant{
		{"right", "f", replace("a && b", "a || b")},
		{"wrong", "f", replace("a && b", "n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	sources["active_mutant.go"] = []byte("package p; var activeMutant string")
	if errs := check(nil, "p", sources); len(errs) != 1 || !strings.Contains(errs[0].Error(), `mutant "wrong":1:5`) {
		t.Errorf("errors = %v, want one of the mutant that is wrong", errs)
	}
}

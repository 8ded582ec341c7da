package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

const (
	typedPackage    = "k8s.io/client-go/informers"
	dynamicPackage  = "k8s.io/client-go/dynamic/dynamicinformer"
	metadataPackage = "k8s.io/client-go/metadata/metadatainformer"
	runtimePackage  = "sigs.k8s.io/controller-runtime/pkg/cache"
	ownPackage      = "github.com/gvrkit/gvrkit/dynamicinformer"
	listerPackage   = "github.com/gvrkit/gvrkit/lister"
)

// names is a set of names in source code.
type names map[string]bool

func setOf(list ...string) names {
	set := names{}
	for _, name := range list {
		set[name] = true
	}
	return set
}

// and returns the names in any of the sets.
func (n names) and(others ...names) names {
	all := maps.Clone(n)
	for _, other := range others {
		maps.Copy(all, other)
	}
	return all
}

// options returns the names of options.
func (n names) options() names {
	options := maps.Clone(n)
	maps.DeleteFunc(options, func(name string, _ bool) bool { return !strings.HasPrefix(name, "With") })
	return options
}

// The README's table has each option of the other factories and of gvrkit, and no name that does not exist.
func TestReadme_TableHasEveryOption(t *testing.T) {
	handler, shared := members[clientcache.HandlerOptions](), members[clientcache.SharedIndexInformer]()
	for i, column := range []struct {
		of               string
		required, others names
	}{
		{
			of:       typedPackage,
			required: functions(t, typedPackage).options().and(parameters(t, typedPackage, "NewSharedInformerFactoryWithOptions")),
			others:   members[informers.SharedInformerFactory]().and(shared, handler),
		},
		{
			of: dynamicPackage,
			required: functions(t, metadataPackage).options().and(
				parameters(t, dynamicPackage, "NewFilteredDynamicSharedInformerFactory", "NewFilteredDynamicInformer"),
				parameters(t, metadataPackage, "NewSharedInformerFactoryWithOptions", "NewFilteredMetadataInformer")),
			others: setOf("metadatainformer").and(members[upstream.DynamicSharedInformerFactory](), shared, handler),
		},
		{
			of:       runtimePackage,
			required: members[cache.Options]().and(members[cache.ByObject](), members[cache.Config]()),
			others:   functions(t, runtimePackage).and(members[cache.Cache](), members[cache.Informer](), setOf(reflect.TypeFor[metav1.PartialObjectMetadata]().Name())),
		},
		{
			of:       ownPackage,
			required: functions(t, ownPackage).options(),
			others: functions(t, ownPackage).and(functions(t, listerPackage).options(), handler,
				members[*dynamicinformer.Factory](), members[*dynamicinformer.Lease]()),
		},
	} {
		inTable, exists := cells(t, i+1), column.required.and(column.others)
		for name := range column.required {
			if !inTable[name] {
				t.Errorf("the table has no %s of %s", name, column.of)
			}
		}
		for name := range inTable {
			if !exists[name] {
				t.Errorf("the table has %s, which %s does not have", name, column.of)
			}
		}
	}
}

// cells returns the names in a column of the table.
func cells(t *testing.T, column int) names {
	t.Helper()
	_, rest, found := strings.Cut(read(t, root+"/README.md"), "\n## Options of client-go and controller-runtime\n")
	section, _, more := strings.Cut(rest, "\n## ")
	if !found || !more {
		t.Fatal("the README has no section with that table")
	}
	inTable, quoted, rows := names{}, regexp.MustCompile("`([^`]+)`"), 0
	for line := range strings.Lines(section) {
		row := strings.Split(strings.TrimSpace(line), " | ")
		if len(row) != 5 || strings.HasPrefix(line, "| | ") {
			continue
		}
		rows++
		for _, name := range quoted.FindAllStringSubmatch(row[column], -1) {
			inTable[name[1]] = true
		}
	}
	if rows < 30 {
		t.Fatalf("the table has %d rows", rows)
	}
	return inTable
}

// members returns the fields and methods of T.
func members[T any]() names {
	all, of := names{}, reflect.TypeFor[T]()
	for method := range of.Methods() {
		all[method.Name] = true
	}
	if of.Kind() == reflect.Struct {
		for field := range of.Fields() {
			all[field.Name] = true
		}
	}
	return all
}

// functions returns the exported functions of a package.
func functions(t *testing.T, path string) names {
	t.Helper()
	all := names{}
	for _, f := range declared(t, path) {
		if f.Recv == nil && f.Name.IsExported() {
			all[f.Name.Name] = true
		}
	}
	return all
}

// parameters returns the names of the parameters of functions that are settings.
func parameters(t *testing.T, path string, of ...string) names {
	t.Helper()
	all := names{}
	for _, f := range declared(t, path) {
		if f.Recv != nil || !slices.Contains(of, f.Name.Name) {
			continue
		}
		for _, parameter := range f.Type.Params.List {
			for _, name := range parameter.Names {
				if name.Name != "gvr" && name.Name != "options" {
					all[name.Name] = true
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no parameters of %q", path, of)
	}
	return all
}

// declared returns the functions and methods of a package.
func declared(t *testing.T, path string) []*ast.FuncDecl {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(strings.TrimSpace(string(dir)) + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", path, len(files), err)
	}
	var all []*ast.FuncDecl
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if f, is := declaration.(*ast.FuncDecl); is {
				all = append(all, f)
			}
		}
	}
	return all
}

package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// manifest returns a CRD called plural.example.com, as YAML.
func manifest(plural, kind string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: ` + plural + `, kind: ` + kind + `}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
}

func jsonManifest(plural, kind string) string {
	return `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "` + plural + `.example.com", "resourceVersion": "1", "uid": "of-another-server"},
	"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "` + plural + `", "kind": "` + kind + `"},
	"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInstallCRDFiles_ReadsFilesDirectoriesDocumentsAndLists(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "two.yaml", "# a comment\n---\n"+manifest("apples", "Apple")+"---\n---\n"+manifest("pears", "Pear"))
	write(t, dir, "one.json", jsonManifest("plums", "Plum"))
	write(t, dir, "list.yml", "apiVersion: v1\nkind: List\nitems:\n"+indented(manifest("figs", "Fig")))
	write(t, dir, "kustomization.yaml", "resources: [two.yaml]\n")
	write(t, dir, "notes.txt", "not: {a manifest")
	write(t, dir, "below/other.yaml", manifest("nuts", "Nut"))
	program := write(t, t.TempDir(), "program.yaml",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\n"+manifest("grapes", "Grape"))

	server := start(t)
	if err := server.InstallCRDFiles(t.Context(), dir, program, filepath.Join(dir, "two.yaml")); err != nil {
		t.Fatalf("InstallCRDFiles: %v", err)
	}
	objects, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	client(t, server.Config()) // closes the connections of this configuration at the end
	for plural, want := range map[string]bool{
		"apples": true, "pears": true, "plums": true, "figs": true, "grapes": true, "nuts": false,
	} {
		// An installed type can be listed without a retry.
		_, err := objects.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}).List(t.Context(), metav1.ListOptions{})
		if got := err == nil; got != want || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("list %s: %v, want served: %t", plural, err, want)
		}
	}
}

// indented returns manifest as the only item of a YAML list.
func indented(manifest string) string {
	return "- " + strings.ReplaceAll(strings.TrimSpace(manifest), "\n", "\n  ") + "\n"
}

func TestInstallCRDFiles_ErrorsNameFileAndCRD(t *testing.T) {
	dir := t.TempDir()
	unreachable := &rest.Config{Host: "https://127.0.0.1:1"} // files are read before the first request
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"no such file": {nil, []string{"no such file"}},
		"no CRD":       {map[string]string{"a.yaml": "kind: Deployment\n"}, []string{"no CustomResourceDefinition"}},
		"invalid YAML": {
			map[string]string{"a.yaml": manifest("apples", "Apple") + "---\n\tx: {\n"},
			[]string{"a.yaml, document 2"},
		},
		"old version": {
			map[string]string{"a.yaml": strings.ReplaceAll(manifest("apples", "Apple"), "k8s.io/v1", "k8s.io/v1beta1")},
			[]string{"a.yaml, document 1", "apples.example.com", "v1beta1"},
		},
		"no name": {
			map[string]string{"a.yaml": strings.ReplaceAll(manifest("apples", "Apple"), "name: apples.example.com", "labels: {}")},
			[]string{"a.yaml, document 1", "metadata.name"},
		},
		"two different CRDs": {
			map[string]string{"a.yaml": manifest("apples", "Apple"), "b.yaml": manifest("apples", "Other")},
			[]string{"apples.example.com", "a.yaml, document 1", "b.yaml, document 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sub := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			for file, content := range test.files {
				write(t, sub, file, content)
			}
			err := embedded.InstallCRDFiles(t.Context(), unreachable, sub)
			for _, want := range append(test.want, filepath.Base(sub)) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestInstallCRDFiles_ErrorsOfTheServerNameFileAndCRD(t *testing.T) {
	path := write(t, t.TempDir(), "crds.yaml",
		manifest("apples", "Apple")+"---\n"+strings.ReplaceAll(manifest("pears", "Pear"), "group: example.com", "group: example.org"))
	server := start(t)
	err := server.InstallCRDFiles(t.Context(), path)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("InstallCRDFiles: %v, want Invalid", err)
	}
	for _, want := range []string{path + ", document 2", "pears.example.com"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// An API server delays creations for two seconds after a CRD is Established.
func TestInstallCRDs_ObjectsCanBeCreatedAtOnce(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	installed, err := definitions(t, server.Config()).Get(t.Context(), "widgets.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if wait := untilCreatable(t, installed); wait > 0 {
		t.Errorf("creations are delayed for another %v", wait)
	}
}

package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// InstallCRDFiles installs the CRDs in files, as [Server.InstallCRDs] does. A path is a
// file or a directory. In a directory, it reads files with the extensions .yaml, .yml
// and .json, but no subdirectories. A file may have several documents, and lists of CRDs.
// Documents of other kinds are skipped, so that a path may be the manifest of a whole
// program. A path without CRDs is an error, and so are two different CRDs with the same
// name. Errors name the file, the document and the CRD.
//
// All files are read before the first CRD is installed.
func (s *Server) InstallCRDFiles(ctx context.Context, paths ...string) error {
	crds, err := readCRDs(paths)
	if err != nil {
		return err
	}
	return install(ctx, s.config, crds, (*installer).dateBack)
}

// InstallCRDFiles is [Server.InstallCRDFiles] for the API server of cfg, with the limits
// of the function [InstallCRDs].
func InstallCRDFiles(ctx context.Context, cfg *rest.Config, paths ...string) error {
	crds, err := readCRDs(paths)
	if err != nil {
		return err
	}
	return install(ctx, cfg, crds)
}

// readCRDs returns the CRDs in files and directories, in the order of paths, of file
// names and of documents.
func readCRDs(paths []string) ([]definition, error) {
	var all []definition
	for _, path := range paths {
		files, err := crdFiles(path)
		if err != nil {
			return nil, fmt.Errorf("embedded: CRD files: %w", err)
		}
		found := false
		for _, file := range files {
			crds, err := readFile(file)
			if err != nil {
				return nil, fmt.Errorf("embedded: %w", err)
			}
			found = found || len(crds) > 0
			for _, crd := range crds {
				if all, err = add(all, crd); err != nil {
					return nil, fmt.Errorf("embedded: %w", err)
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("embedded: %s has no CustomResourceDefinition", path)
		}
	}
	return all, nil
}

// crdFiles returns path if it is a file, or the manifests in it if it is a directory.
func crdFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		ending := strings.ToLower(filepath.Ext(entry.Name()))
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ending) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// readFile returns the CRDs in a file.
func readFile(path string) ([]definition, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []definition
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
	for number := 1; ; number++ {
		origin := fmt.Sprintf("%s, document %d", path, number)
		var document json.RawMessage
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		crds, err := crdsOf(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		for _, crd := range crds {
			all = append(all, definition{crd: crd, origin: origin})
		}
	}
}

// crdsOf returns the CRDs of a document: one CRD, the CRDs of a list, or none.
func crdsOf(document json.RawMessage) ([]*unstructured.Unstructured, error) {
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	// A document that is not an object, or has other types in these fields, is not a CRD.
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, nil //nolint:nilerr // skipped like other documents
	}
	if head.Kind == "List" || head.Kind == "CustomResourceDefinitionList" {
		var all []*unstructured.Unstructured
		for _, item := range head.Items {
			crds, err := crdsOf(item)
			if err != nil {
				return nil, err
			}
			all = append(all, crds...)
		}
		return all, nil
	}
	group, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil || group.Group != crdResource.Group || head.Kind != "CustomResourceDefinition" {
		return nil, nil //nolint:nilerr // skipped like other documents
	}
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON(document); err != nil {
		return nil, err
	}
	if group.Version != crdResource.Version {
		return nil, fmt.Errorf("CRD %s has apiVersion %s; API servers accept %s only", crd.GetName(), head.APIVersion, crdResource.GroupVersion())
	}
	if crd.GetName() == "" {
		return nil, errors.New("a CustomResourceDefinition has no metadata.name")
	}
	// The server writes these; a manifest that was read from a server has them.
	unstructured.RemoveNestedField(crd.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(crd.Object, "metadata", field)
	}
	return []*unstructured.Unstructured{crd}, nil
}

// add adds crd to all, unless all has an equal CRD. A different CRD with the same name is
// an error.
func add(all []definition, crd definition) ([]definition, error) {
	for _, other := range all {
		if other.crd.GetName() != crd.crd.GetName() {
			continue
		}
		if !reflect.DeepEqual(other.crd.Object, crd.crd.Object) {
			return nil, fmt.Errorf("CRD %s is in %s and differs in %s", crd.crd.GetName(), other.origin, crd.origin)
		}
		return all, nil
	}
	return append(all, crd), nil
}

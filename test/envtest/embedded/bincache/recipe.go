package embedded

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// source is the server's source: enough of this module to build its command. The
// launcher carries it, and needs no checkout or module cache to be found.
//
//go:embed go.mod go.sum cmd/apiserver/*.go inprocess/*.go
var source embed.FS

// sourceFiles returns the paths in source that the server is built from, sorted.
func sourceFiles() ([]string, error) {
	var paths []string
	err := fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, "_test.go") {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// sourceKey names what a build gives: it differs if the source or anything in
// salt does.
func sourceKey(salt ...string) (string, error) {
	paths, err := sourceFiles()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, s := range salt {
		fmt.Fprintf(sum, "%q\n", s)
	}
	for _, path := range paths {
		content, err := source.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %x\n", path, sha256.Sum256(content))
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// writeSource writes the source below dir.
func writeSource(dir string) error {
	paths, err := sourceFiles()
	if err != nil {
		return err
	}
	for _, path := range paths {
		content, err := source.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

package bincache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Recipe says what to build.
type Recipe struct {
	// Name is what the programs are called in messages, and their directory in
	// the cache.
	Name string
	// Source is a Go module: go.mod, go.sum and all that the packages need of it.
	// Tests are left out.
	Source fs.FS
	// Packages are the main packages, relative to the module's root: "./cmd/x".
	Packages []string
	// LinkFlags go to the linker. They should not change how packages are
	// compiled: a plain build of the same packages then shares the build cache.
	LinkFlags string
	// Notice is said before a build begins: how long it takes, for one.
	Notice string
}

// files returns the paths in the source that count, sorted.
func (r Recipe) files() ([]string, error) {
	var paths []string
	err := fs.WalkDir(r.Source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, "_test.go") {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// key names what a build by toolchain gives: it differs if the source or anything
// else that goes into it does.
func (r Recipe) key(toolchain string) (string, error) {
	paths, err := r.files()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", toolchain, r.LinkFlags, r.Packages)
	for _, path := range paths {
		content, err := fs.ReadFile(r.Source, path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %x\n", path, sha256.Sum256(content))
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// write writes the source below dir.
func (r Recipe) write(dir string) error {
	paths, err := r.files()
	if err != nil {
		return err
	}
	for _, path := range paths {
		content, err := fs.ReadFile(r.Source, path)
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

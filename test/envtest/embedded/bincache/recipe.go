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

// Recipe describes a build.
type Recipe struct {
	// Name is the name of the programs in messages, and of their directory in the
	// cache.
	Name string
	// Source is a Go module: go.mod, go.sum and the source of the packages. Tests are
	// left out.
	Source fs.FS
	// Packages are the main packages, relative to the module's root: "./cmd/x".
	Packages []string
	// LinkFlags are passed to the linker. They should not affect the compilation of
	// packages, so that other builds of the same packages share the build cache.
	LinkFlags string
	// Notice is printed before a build, for example its usual time.
	Notice string
}

// files returns the paths of the source without tests, sorted.
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

// key returns a hash of all inputs of a build with toolchain.
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

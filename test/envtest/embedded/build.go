package embedded

import (
	"context"
	"embed"
	"io"
	"path/filepath"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/bincache"
)

// source is the server's source: enough of this module to build its command. The
// launcher carries it, and needs no checkout or module cache to find it in.
//
//go:embed go.mod go.sum cmd/apiserver/*.go inprocess/*.go privatedir/*.go
var source embed.FS

// linkFlags leave out what only a debugger wants, and put in the Kubernetes release
// of the k8s.io modules in go.mod, which the server reports as its own.
const linkFlags = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// binary returns the path of the server binary, which it builds if need be.
func binary(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := bincache.Build(ctx, bincache.Recipe{
		Name:      "apiserver",
		Source:    source,
		Packages:  []string{"./cmd/apiserver"},
		LinkFlags: linkFlags,
		Notice:    "3 to 8 minutes and a download of some 60 MB, less if Go has compiled its packages before",
	}, progress)
	return filepath.Join(dir, "apiserver"), err
}

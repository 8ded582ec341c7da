package embedded

import (
	"context"
	"embed"
	"io"
	"path/filepath"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/bincache"
)

// source is the part of this module that is required to build the server's command. It
// is embedded in the launcher, so that a build needs no checkout or module cache.
//
//go:embed go.mod go.sum cmd/apiserver/*.go inprocess/*.go privatedir/*.go
var source embed.FS

// linkFlags omit debug information, and set the version that the server reports: the
// Kubernetes release of the k8s.io modules in go.mod.
const linkFlags = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// binary returns the path of the server binary. It builds the binary if necessary.
func binary(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := bincache.Build(ctx, bincache.Recipe{
		Name:      "apiserver",
		Source:    source,
		Packages:  []string{"./cmd/apiserver"},
		LinkFlags: linkFlags,
		Notice:    "3 to 8 minutes and a download of about 60 MB, less if Go has compiled its packages before",
	}, progress)
	return filepath.Join(dir, "apiserver"), err
}

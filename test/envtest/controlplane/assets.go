// Package controlplane finds the two programs that controller-runtime's envtest runs,
// kube-apiserver and etcd, and starts them. If no release binaries are available, it builds
// them from their Go modules. It is for tests that need built-in types, namespaces as objects,
// RBAC or admission; for CRDs and their objects, package embedded needs less time and memory.
//
//	environment, err := controlplane.Start(ctx, os.Stderr)
//	if err != nil { … }
//	defer environment.Stop()
//	err = embedded.InstallCRDFiles(ctx, environment.Config, "../config/crd")
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/bincache"
)

const (
	// DefaultVersion is the Kubernetes release of the suites. Only this release can be
	// built here, since the modules are pinned to it.
	DefaultVersion = "1.36.3"

	// envVersion selects another release, and envAssets a directory with programs.
	envVersion = "ENVTEST_K8S_VERSION"
	envAssets  = "KUBEBUILDER_ASSETS"

	setupEnvtest = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1"
	setupTimeout = 5 * time.Minute
)

// programs are the programs that envtest requires. It does not require kubectl.
var programs = []string{"kube-apiserver", "etcd"}

// Version returns the Kubernetes release of the suites: that of ENVTEST_K8S_VERSION, or
// [DefaultVersion].
func Version() string {
	if version := os.Getenv(envVersion); version != "" {
		return strings.TrimPrefix(version, "v")
	}
	return DefaultVersion
}

// Assets returns the directory with the programs, and writes their origin to progress. It
// uses the directory that KUBEBUILDER_ASSETS names. Otherwise it uses the programs that
// setup-envtest has or downloads. Otherwise it builds them once, in some minutes, from the
// Go modules in test/envtest/assets. A suite must not be skipped if Assets returns an
// error.
func Assets(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv(envAssets); dir != "" {
		fmt.Fprintf(progress, "controlplane: using %s=%s\n", envAssets, dir)
		return dir, complete(dir)
	}
	dir, err := fromSetupEnvtest(ctx)
	if err == nil {
		fmt.Fprintf(progress, "controlplane: using %s from setup-envtest\n", dir)
		return dir, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if Version() != DefaultVersion {
		return "", fmt.Errorf("controlplane: Kubernetes %s: setup-envtest does not have it, and only %s can be built here: %w", Version(), DefaultVersion, err)
	}
	return fromModules(ctx, progress)
}

// complete returns an error if dir lacks one of the programs.
func complete(dir string) error {
	var missing []error
	for _, program := range programs {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			missing = append(missing, fmt.Errorf("controlplane: %w", err))
		}
	}
	return errors.Join(missing...)
}

// fromSetupEnvtest runs controller-runtime's tool, which downloads release binaries if it
// can reach their index.
func fromSetupEnvtest(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", setupEnvtest, "use", Version(), "--print", "path")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("setup-envtest: %w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("setup-envtest: %w", err)
	}
	dir := strings.TrimSpace(string(out))
	return dir, complete(dir)
}

// linkFlags set the version, which a build from modules does not have.
const linkFlags = "-s -w -X k8s.io/component-base/version.gitVersion=v" + DefaultVersion +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"

func fromModules(ctx context.Context, progress io.Writer) (string, error) {
	source, err := assetsModule()
	if err != nil {
		return "", err
	}
	dir, err := bincache.Build(ctx, bincache.Recipe{
		Name:      "kube-apiserver",
		Source:    os.DirFS(source),
		Packages:  []string{"./kube-apiserver", "./etcd"},
		LinkFlags: linkFlags,
		Notice:    "with etcd, from Go modules, since setup-envtest can't reach its index; 4 to 10 minutes and a download of about 130 MB",
	}, progress)
	if err != nil {
		return "", fmt.Errorf("controlplane: %w", err)
	}
	return dir, nil
}

// assetsModule returns the directory of the module that requires the programs. It is beside
// this file in the checkout; it can't be embedded, since it is another module.
func assetsModule() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "assets")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); !ok || err != nil {
		return "", fmt.Errorf("controlplane: the checkout's test/envtest/assets is not at %s", dir)
	}
	return dir, nil
}

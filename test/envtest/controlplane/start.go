package controlplane

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Start starts kube-apiserver and etcd, with the programs of [Assets]. The caller must call
// Stop of the environment, unless there is an error. Its Config has no rate limit. Flags,
// such as feature-gates=AllAlpha=true, are added to those of kube-apiserver.
func Start(ctx context.Context, progress io.Writer, flags ...string) (*envtest.Environment, error) {
	assets, err := Assets(ctx, progress)
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		ControlPlaneStartTimeout: 5 * time.Minute, // of a machine that also runs other tests
		ControlPlaneStopTimeout:  time.Minute,
	}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		environment.ControlPlane.GetAPIServer().Configure().Append(name, value)
	}
	if _, err := environment.Start(); err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	environment.Config.QPS = -1
	return environment, nil
}

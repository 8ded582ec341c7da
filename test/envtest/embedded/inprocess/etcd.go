package inprocess

import (
	"context"
	"errors"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// quotaBytes is the size limit of etcd. The default of 2 GiB is too small for a benchmark
// with large objects.
const quotaBytes = 8 << 30

// startEtcd starts a member that stores its files in dir, and serves clients only on the Unix
// domain socket at path. etcd requires no credentials; the mode of the socket's directory
// excludes other users. ctx limits the start.
func startEtcd(ctx context.Context, dir, path string) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	socket := []url.URL{socketURL(path)}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = socket, socket
	// A single member has no peers. Its peer URL is its identity, which must be the same in
	// every run on the same files.
	cfg.ListenPeerUrls = nil
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name) // derived from the peer URLs: set after them
	cfg.EnableGRPCGateway = false                             // no HTTP
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.QuotaBackendBytes = quotaBytes

	// The data of tests need not survive a power failure, so that fsync is not necessary. A
	// single member elects itself, so that a tenth of a second is enough.
	cfg.UnsafeNoFsync = true
	cfg.TickMs, cfg.ElectionMs = 10, 100

	member, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-member.Server.ReadyNotify():
		return member, nil
	case err = <-member.Err():
	case <-member.Server.StopNotify():
		err = errors.New("the member stopped while it started")
	case <-ctx.Done():
		err = ctx.Err()
	}
	member.Close()
	return nil, err
}

// socketURL returns the URL of the Unix domain socket at path for etcd's server and client.
func socketURL(path string) url.URL { return url.URL{Scheme: "unix", Path: path} }

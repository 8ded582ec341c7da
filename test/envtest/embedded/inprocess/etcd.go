package inprocess

import (
	"context"
	"errors"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// quotaBytes is etcd's size limit here: its own default of 2 GiB is too small
// for a benchmark with large objects.
const quotaBytes = 8 << 30

// startEtcd returns a member that serves on loopback ports. ctx bounds the start.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anyPort, anyPort
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name) // derived from the peer URLs: set after them
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.QuotaBackendBytes = quotaBytes

	// One member, data that nobody will miss: no fsync, and an election that
	// ends in a tenth of a second.
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

// clientURL is where member serves clients, with the port it really got.
func clientURL(member *embed.Etcd) string {
	return "http://" + member.Clients[0].Addr().String()
}

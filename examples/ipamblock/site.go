package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// patience is how long browsers have to take what they asked for when the program ends.
const patience = 2 * time.Second

// site shows the informers at / and /informers/, and the blocks at /blocks.
type site struct {
	server *http.Server
	url    string
	ended  chan error
}

// startSite serves on address, which is one that siteAddress has returned, until close.
func startSite(ctx context.Context, address string, factory *dynamicinformer.Factory, blocks cache.GenericLister) (*site, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	page := factory.Handler()
	mux.Handle("/{$}", page)
	mux.Handle("/informers/", page)
	mux.Handle("GET /blocks", &utilisation{blocks})
	s := &site{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute},
		url:    "http://" + listener.Addr().String() + "/",
		ended:  make(chan error, 1),
	}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

// close ends the site, also after ctx has ended, and waits for it.
func (s *site) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close() // whoever still reads has had his time
	}
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// siteAddress returns where to listen for what --http says: a port alone, with or without
// a colon, is one of this machine's own.
func siteAddress(given string) (string, error) {
	if !strings.Contains(given, ":") {
		given = ":" + given
	}
	host, port, err := net.SplitHostPort(given)
	if err != nil {
		return "", err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("the port is a number up to 65535")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

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

// closeTimeout is the time for responses that are in progress when the program ends.
const closeTimeout = 2 * time.Second

// site shows the informers at / and /informers/, and the blocks at /blocks.
type site struct {
	server *http.Server
	url    string
	ended  chan error
}

// startSite serves the site on address, a result of siteAddress, until close.
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close() // ends the remaining responses
	}
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// siteAddress returns the address to listen on for the value of --http. A port without a host, with
// or without a colon, is on localhost.
func siteAddress(given string) (string, error) {
	if !strings.Contains(given, ":") {
		given = ":" + given
	}
	host, port, err := net.SplitHostPort(given)
	if err != nil {
		return "", err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("the port must be a number up to 65535")
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

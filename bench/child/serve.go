package child

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Serve makes this process serve handler on a loopback port until ctx ends, once it has
// answered its parent; answer is told where it serves.
func Serve(ctx context.Context, handler http.Handler, answer func(host string) any) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends next
	if err := Answer(answer("http://" + listener.Addr().String())); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

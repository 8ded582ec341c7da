package stub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/process"
)

// Client is a client of a [Server]: a connection, and requests for changes.
type Client struct {
	Host string `json:"host"`
}

// Config returns a config without a rate limit.
func (c Client) Config() *rest.Config { return &rest.Config{Host: c.Host, QPS: -1} }

// Change makes the server change n objects, one after another. It returns after the last change.
func (c Client) Change(ctx context.Context, n int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s%s%d", c.Host, eventsPath, n), http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("change %d objects: %s: %s", n, res.Status, text))
	}
	return errors.Join(err, res.Body.Close())
}

// Start starts a server in a process of its own, which is killed when ctx ends.
func Start(ctx context.Context, config Config) (c Client, stop func() error, err error) {
	child, err := process.Start(ctx, Role, nil, config)
	if err == nil {
		stop, err = child.Stop, child.Read(&c)
	}
	return c, stop, err
}

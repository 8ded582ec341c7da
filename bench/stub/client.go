package stub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/process"
)

// Client reaches the server at a base URL.
type Client struct {
	Host string `json:"host"`
}

// Config returns a config without a limit on the rate of requests.
func (c Client) Config() *rest.Config { return &rest.Config{Host: c.Host, QPS: -1} }

// Change makes the server change n objects, one after the other, as fast as its watches read.
// It waits for a watch if there is none, and returns after the last change.
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

// Start starts a server in a process of its own. The end of ctx kills it. A [Client] reaches it.
func Start(ctx context.Context, config Config) (*harness.Servers, error) {
	child, err := process.Start(ctx, Role, nil, config)
	if err != nil {
		return nil, err
	}
	var c Client
	return &harness.Servers{Reached: &c, Stop: child.Stop}, child.Read(&c)
}

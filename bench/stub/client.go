package stub

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gvrkit/gvrkit/bench/process"
)

// Client changes what the server at a base URL serves.
type Client struct{ Host string }

// Create makes the server create the i-th [Newcomer]. It returns when the CRD was established.
func (c Client) Create(ctx context.Context, i int) (at time.Time, err error) {
	return at, c.do(ctx, http.MethodPut, newcomersPath+strconv.Itoa(i), &at)
}

// Delete makes the server delete the newcomer.
func (c Client) Delete(ctx context.Context, i int) error {
	return c.do(ctx, http.MethodDelete, newcomersPath+strconv.Itoa(i), new(time.Time))
}

// Change makes the server change n objects, one after the other, as fast as its watches read.
// It waits for a watch if there is none, and returns after the last change.
func (c Client) Change(ctx context.Context, n int) error {
	return c.do(ctx, http.MethodPost, eventsPath+strconv.Itoa(n), new(time.Time))
}

func (c Client) do(ctx context.Context, method, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.Host+path, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return json.Unmarshal(text, answer)
}

// Process is a server in a process of its own.
type Process struct {
	Client

	process *process.Process
}

// Start starts a server in a process of its own. The end of ctx kills it.
func Start(ctx context.Context, config Config) (*Process, error) {
	child, err := process.Start(ctx, Role, nil, config)
	if err != nil {
		return nil, err
	}
	p := &Process{process: child}
	return p, child.Read(&p.Host)
}

// Stop ends the process.
func (p *Process) Stop() error { return p.process.Stop() }

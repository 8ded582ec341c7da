package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The paths of an [Admin], which are not counted.
const (
	countsPath    = "/bench/counts"
	newcomersPath = "/bench/newcomers/"
)

// Admin reads the counts of the cluster at an address, and changes what it has.
type Admin struct{ Host string }

// Counts returns what the cluster has been asked and has sent so far.
func (a Admin) Counts(ctx context.Context) (counts Counts, err error) {
	return counts, a.do(ctx, http.MethodGet, countsPath, &counts)
}

// Create makes the cluster create the i-th [Newcomer], and returns when it was
// established.
func (a Admin) Create(ctx context.Context, i int) (at time.Time, err error) {
	return at, a.do(ctx, http.MethodPut, newcomersPath+strconv.Itoa(i), &at)
}

// Delete makes it delete the newcomer again.
func (a Admin) Delete(ctx context.Context, i int) error {
	var at time.Time
	return a.do(ctx, http.MethodDelete, newcomersPath+strconv.Itoa(i), &at)
}

func (a Admin) do(ctx context.Context, method, path string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, a.Host+path, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return json.Unmarshal(text, answer)
}

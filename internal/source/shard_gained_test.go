package source_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// A list of all slots may replace the failed one: the failure ends when that list succeeds.
func TestShard_FailureOfAListStaysUntilAListSucceeds(t *testing.T) {
	for name, modify := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 20, modify)
				w.cluster.Intercept(failing("list", errors.New("down"), 0))
				shard.set(part(0, 1))
				time.Sleep(9 * time.Second)
				failed := w.observer.reports()
				w.cluster.Expire(widgets)
				w.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if req.Verb == "list" {
						<-ctx.Done()
						return ctx.Err()
					}
					return apierrors.NewResourceExpired("too old")
				})
				w.cluster.CloseWatches(widgets)
				time.Sleep(20 * time.Second)
				if reports := w.observer.reports(); failed[len(failed)-1] != "list failed" || slices.Contains(reports[len(failed):], "list succeeded") {
					t.Errorf("reports = %v, and then %v", failed, reports[len(failed):])
				}
				w.cluster.Intercept(nil)
				w.cluster.CloseWatches(widgets)
				time.Sleep(20 * time.Minute)
				w.checkStore(part(0, 1))
				if reports := w.observer.reports(); !slices.Contains(reports[len(failed):], "list succeeded") {
					t.Errorf("reports = %v after a list", reports[len(failed):])
				}
			})
		})
	}
}

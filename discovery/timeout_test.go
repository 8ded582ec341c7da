package discovery_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// everyQuestion is each question whose answer hangs at some request of a
// resolver, and that request.
var everyQuestion = []struct {
	name string
	at   schema.GroupVersion
	ask  func(ctx context.Context, r *discovery.Resolver) error
}{
	{"Resolve", schema.GroupVersion{}, func(ctx context.Context, r *discovery.Resolver) error {
		_, err := r.Resolve(ctx, "widgets.v1.example.com")
		return err
	}},
	{"Resolve of one group version", widgets.GroupVersion(), func(ctx context.Context, r *discovery.Resolver) error {
		_, err := r.Resolve(ctx, "widgets.v1.example.com")
		return err
	}},
	{"Validate", widgets.GroupVersion(), func(ctx context.Context, r *discovery.Resolver) error {
		_, err := r.Validate(ctx, widgets)
		return err
	}},
}

func TestRequestTimeout_EndsEachQuestion(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []discovery.Option
		want time.Duration
	}{
		{"default", nil, 30 * time.Second},
		{"given", []discovery.Option{discovery.WithRequestTimeout(5 * time.Second)}, 5 * time.Second},
		{"longer", []discovery.Option{discovery.WithRequestTimeout(time.Hour)}, time.Hour},
		{"zero leaves the default", []discovery.Option{discovery.WithRequestTimeout(0)}, 30 * time.Second},
		{"less than zero leaves the default", []discovery.Option{discovery.WithRequestTimeout(-time.Second)}, 30 * time.Second},
		{"nil option", []discovery.Option{nil, discovery.WithRequestTimeout(time.Minute), nil}, time.Minute},
	} {
		for _, question := range everyQuestion {
			t.Run(tc.name+" "+question.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cluster := fakecluster.New(widgetType)
					hangAt(cluster, question.at)
					r := fromCluster(t, cluster, tc.opts...)
					begun := time.Now()
					err := question.ask(t.Context(), r)
					if took := time.Since(begun); took != tc.want {
						t.Errorf("took %v, want %v", took, tc.want)
					}
					checkInconclusive(t, err, "widgets.v1.example.com", func(err error) bool {
						return errors.Is(err, context.DeadlineExceeded)
					})
				})
			})
		}
	}
}

func TestRequestTimeout_TheCallersContextMayEndEarlier(t *testing.T) {
	for _, question := range everyQuestion {
		t.Run(question.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				hangAt(cluster, question.at)
				r := fromCluster(t, cluster)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				begun := time.Now()
				err := question.ask(ctx, r)
				if took := time.Since(begun); took != time.Second {
					t.Errorf("took %v, want %v", took, time.Second)
				}
				checkInconclusive(t, err, "widgets.v1.example.com", func(err error) bool {
					return errors.Is(err, context.Canceled)
				})
			})
		})
	}
}

func TestRequestTimeout_AGroupVersionThatHangsDoesNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(podType, widgetType)
		hangAt(cluster, widgets.GroupVersion())
		if got, err := fromCluster(t, cluster).Resolve(t.Context(), "pods"); err != nil || got.GVR != pods {
			t.Errorf("Resolve = %v, %v", got.GVR, err)
		}
	})
}

// The response for the group version is in time, and does not list the resource. Only the documents for
// suggestions hang.
func TestRequestTimeout_ARefusalStaysIfDocumentsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		hangAt(cluster, schema.GroupVersion{})
		begun := time.Now()
		_, err := fromCluster(t, cluster).Validate(t.Context(), widgets.GroupVersion().WithResource("flanges"))
		checkNotServed(t, err, "flanges.v1.example.com", notServed{
			"", "", "flanges.v1.example.com: not served by the API server; is its CustomResourceDefinition installed?",
		})
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("took %v, want %v", took, 30*time.Second)
		}
	})
}

// A bubble can't show that errors of net/http match the deadline.
func TestRequestTimeout_EndsHTTPRequests(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			s.answer("*", hang)
			r := s.resolver(t, discovery.WithRequestTimeout(20*time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Second, cancel) // so that a missing deadline is not waited for
			for _, err := range ask(ctx, r) {
				checkInconclusive(t, err, "widgets.v1.example.com", func(err error) bool {
					return errors.Is(err, context.DeadlineExceeded)
				})
			}
		})
	}
}

func TestResolver_EndedContextSendsNoRequest(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, err := range ask(ctx, s.resolver(t)) {
				checkInconclusive(t, err, "widgets.v1.example.com", func(err error) bool {
					return errors.Is(err, context.Canceled)
				})
			}
			if got := s.paths(); got != nil {
				t.Errorf("requests = %v, want none", got)
			}
		})
	}
}

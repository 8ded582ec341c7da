package source_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/gvrkit/gvrkit/internal/source"
)

// ask sends one request with verb, and stops a watch that it opens.
func ask(t *testing.T, cfg source.Config, verb string, opts metav1.ListOptions) {
	t.Helper()
	lw := newLW(cfg)
	if verb == "list" {
		if _, err := lw.ListWithContext(t.Context(), opts); err != nil {
			t.Errorf("list: %v", err)
		}
		return
	}
	w, err := lw.WatchWithContext(t.Context(), opts)
	if err != nil {
		t.Errorf("watch: %v", err)
		return
	}
	w.Stop()
}

func TestClient_RequestHasTheOptions(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				opts := metav1.ListOptions{ResourceVersion: "7", TimeoutSeconds: new(int64(300)), AllowWatchBookmarks: true}
				ask(t, source.Config{Client: source.Unstructured(client), GVR: widgets}, verb, opts)
				want := []request{{Verb: verb, GVR: widgets, Options: opts}}
				if diff := cmp.Diff(want, client.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestClient_NamespaceAppliesToEachVerb(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				ask(t, source.Config{Client: source.Unstructured(client), GVR: widgets, Namespace: "ns"}, verb, metav1.ListOptions{})
				want := []request{{Verb: verb, GVR: widgets, Namespace: "ns"}}
				if diff := cmp.Diff(want, client.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The tweak changes options, and other options are kept.
func TestClient_TweakAppliesToEachVerb(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				cfg := source.Config{Client: source.Unstructured(client), GVR: widgets, Tweak: func(o *metav1.ListOptions) {
					o.LabelSelector += "color=red" // called twice, it would repeat the selector
				}}
				ask(t, cfg, verb, metav1.ListOptions{ResourceVersion: "7"})
				want := []request{{Verb: verb, GVR: widgets, Options: metav1.ListOptions{ResourceVersion: "7", LabelSelector: "color=red"}}}
				if diff := cmp.Diff(want, client.requests()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A nil pointer in an interface is not nil, and reflectors compare with nil.
func TestClient_ErrorComesWithALiteralNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		client := &script{
			list: func(context.Context) (*unstructured.UnstructuredList, error) { return nil, broken },
			watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return (*watch.FakeWatcher)(nil), broken
			},
		}
		lw := newLW(source.Config{Client: source.Unstructured(client), GVR: widgets})
		if list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); list != nil || !errors.Is(err, broken) {
			t.Errorf("list = %#v, %v; want a literal nil and the client's error", list, err)
		}
		for _, opts := range []metav1.ListOptions{{}, watchList()} {
			w, err := lw.WatchWithContext(t.Context(), opts)
			if w != nil || err == nil {
				t.Errorf("watch = %#v, %v; want a literal nil and an error", w, err)
			}
		}
	})
}

// A Status or a single object has no items: read as a list, it would empty the cache.
func TestClient_ResponseThatIsNotAListIsAnError(t *testing.T) {
	for kind, isList := range map[string]bool{"Status": false, "Widget": false, "WidgetList": true, "List": true, "": true} {
		t.Run("kind="+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer := &observer{}
				lw := newLW(source.Config{GVR: widgets, Observer: observer, Client: source.Unstructured(&script{
					list: func(context.Context) (*unstructured.UnstructuredList, error) {
						answer := &unstructured.UnstructuredList{Object: map[string]any{}}
						answer.SetKind(kind)
						return answer, nil
					},
				})})
				list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
				if isList {
					if err != nil || list == nil {
						t.Errorf("list = %v, %v; want the server's list", list, err)
					}
					return
				}
				if !errors.Is(err, source.ErrNotAList) || list != nil {
					t.Errorf("list = %v, %v; want ErrNotAList and a literal nil", list, err)
				}
				checkErrors(t, observer, source.ErrNotAList)
			})
		})
	}
}

// An invalid configuration is reported once, and no request is retried.
func TestSource_WithoutAClientReportsOnce(t *testing.T) {
	for name, cfg := range map[string]source.Config{
		"no client": {}, "invalid": {Invalid: source.ErrInvalid, Client: source.Unstructured(&script{})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer := &observer{}
				var reported []error
				cfg.GVR, cfg.Observer = widgets, observer
				cfg.Report = func(_ context.Context, err error) { reported = append(reported, err) }
				lw := source.New(cfg).ListerWatcher().(cache.ListerWatcherWithContext)
				if _, err := lw.WatchWithContext(t.Context(), watchList()); err == nil {
					t.Error("a watch-list has no error")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the list ended with %v", err)
				}
				if diff := cmp.Diff([]string{"list failed"}, observer.reports()); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				list := (*source.ListError)(nil)
				if len(reported) != 1 || !errors.Is(reported[0], source.ErrInvalid) || !errors.As(reported[0], &list) {
					t.Errorf("reported: %v", reported)
				}
			})
		})
	}
}

// marked is a client with the marker for watch-list.
type marked struct {
	dynamic.Interface
	cannot bool
}

func (m marked) IsWatchListSemanticsUnSupported() bool { return m.cannot }

func TestListerWatcher_HasTheWatchListMarkerOfTheClient(t *testing.T) {
	for _, tc := range []struct {
		name   string
		client dynamic.Interface
		want   bool
	}{
		{"client that cannot", marked{&script{}, true}, true},
		{"client that can", marked{&script{}, false}, false},
		{"client that does not say", &script{}, false},
		{"no client", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lw := source.New(source.Config{Client: source.Unstructured(tc.client), GVR: widgets}).ListerWatcher()
			if got := watchlist.DoesClientNotSupportWatchListSemantics(lw); got != tc.want {
				t.Errorf("marker = %v, want %v", got, tc.want)
			}
		})
	}
}

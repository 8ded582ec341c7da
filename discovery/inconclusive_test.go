package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// troubles are the ways in which a whole server, or a part of it, can't be asked.
// Cause reports whether an error has the cause; nil: there is no rule for it.
var troubles = []struct {
	name   string
	answer http.HandlerFunc
	cause  func(error) bool
}{
	{"503", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), apierrors.IsServiceUnavailable},
	{"500", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError), apierrors.IsInternalError},
	{"429", refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), apierrors.IsTooManyRequests},
	{"403", refuse(http.StatusForbidden, metav1.StatusReasonForbidden), apierrors.IsForbidden},
	{"401", refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), apierrors.IsUnauthorized},
	{"502 from a proxy", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway)
	}, nil},
	{"HTML", say("text/html", "<html><body>Please log in</body></html>"), nil},
	{"HTML that says it is JSON", say("application/json", "<html><body>Please log in</body></html>"), nil},
	{"truncated JSON", say("application/json", `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"exa`), nil},
	{"JSON of another shape", say("application/json", `["kind"]`), nil},
	{"empty body", say("application/json", ""), nil},
}

// ask asks the same of Resolve and Validate, and returns their errors.
func ask(ctx context.Context, r *discovery.Resolver) map[string]error {
	_, resolve := r.Resolve(ctx, "widgets.v1.example.com")
	_, validate := r.Validate(ctx, widgets)
	return map[string]error{"Resolve": resolve, "Validate": validate}
}

func TestInconclusive_TheServerRespondsWithAnError(t *testing.T) {
	for _, tc := range troubles {
		t.Run(tc.name, func(t *testing.T) {
			for _, f := range formats {
				t.Run(string(f), func(t *testing.T) {
					s := newServer(t, f, everything()...)
					s.answer("*", tc.answer)
					for name, err := range ask(t.Context(), s.resolver(t)) {
						failed := checkInconclusive(t, err, "widgets.v1.example.com", tc.cause)
						if name == "Resolve" && failed != nil {
							t.Errorf("Resolve: failed = %v, want none: it is the whole server", failed)
						}
					}
				})
			}
		})
	}
}

func TestInconclusive_TheServerDoesNotExist(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	s.Close()
	for _, err := range ask(t.Context(), r) {
		checkInconclusive(t, err, "widgets.v1.example.com", func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) })
	}
}

// A proxy without a backend responds with 404 to all requests. An API server has /apis.
func TestResolve_404OfEverythingIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated)
	s.answer("*", http.NotFound)
	_, err := s.resolver(t).Resolve(t.Context(), "widgets")
	checkInconclusive(t, err, "widgets", nil)
}

func TestResolve_OneRootAloneIsInconclusive(t *testing.T) {
	for _, path := range []string{"/api", "/apis"} {
		for _, f := range formats {
			t.Run(string(f), func(t *testing.T) {
				s := newServer(t, f, everything()...)
				s.answer(path, refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
				_, err := s.resolver(t).Resolve(t.Context(), "unicorns")
				checkInconclusive(t, err, "unicorns", apierrors.IsServiceUnavailable)
			})
		}
	}
}

func TestResolve_ARootIsConclusiveAboutItsOwnGroups(t *testing.T) {
	for _, tc := range []struct {
		down                string
		absent, unknowable  []string
		groups, otherGroups []string
	}{
		{
			down:       "/api",
			absent:     []string{"unicorns.example.com", "unicorns.v1.example.com", "unicorns.unheard.example", "example.com/v1, Kind=Unicorn"},
			unknowable: []string{"unicorns", "unicorns.v1", "v1/unicorns"},
			groups:     []string{"example.com"}, otherGroups: []string{"", "example.com"},
		},
		{
			down:       "/apis",
			absent:     []string{"v1/unicorns", "/v1, Kind=Unicorn"},
			unknowable: []string{"unicorns", "unicorns.v1" /* a group may begin so */, "unicorns.example.com", "unicorns.v1.example.com"},
			groups:     []string{""}, otherGroups: []string{"", "example.com"},
		},
	} {
		for _, f := range formats {
			t.Run(tc.down+" "+string(f), func(t *testing.T) {
				s := newServer(t, f, everything()...)
				s.answer(tc.down, refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
				for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
					for _, ref := range tc.absent {
						_, err := r.Resolve(t.Context(), ref)
						if !errors.Is(err, discovery.ErrNotServed) {
							t.Errorf("%s: Resolve(%s): %v, want not served", name, ref, err)
						}
					}
					for _, ref := range tc.unknowable {
						_, err := r.Resolve(t.Context(), ref)
						if !errors.Is(err, discovery.ErrInconclusive) {
							t.Errorf("%s: Resolve(%s): %v, want inconclusive", name, ref, err)
						}
					}
					if _, err := r.ResolveAll(t.Context(), discovery.Selector{Groups: tc.groups}); err != nil {
						t.Errorf("%s: all of %q: %v", name, tc.groups, err)
					}
					if _, err := r.ResolveAll(t.Context(), discovery.Selector{Groups: tc.otherGroups}); !errors.Is(err, discovery.ErrInconclusive) {
						t.Errorf("%s: all of %q: %v", name, tc.otherGroups, err)
					}
				}
			})
		}
	}
}

// checkInconclusive checks that err says that ref can't be told, for cause, and
// returns the group versions that failed.
func checkInconclusive(t *testing.T, err error, ref string, cause func(error) bool) []schema.GroupVersion {
	t.Helper()
	inconclusive := asType[*discovery.InconclusiveError](t, err, discovery.ErrInconclusive)
	if meta.IsNoMatchError(err) {
		t.Errorf("to apimachinery it is a resource that matches nothing: %v", err)
	}
	if want, err := discovery.ParseRef(ref); err != nil || inconclusive.Ref != want {
		t.Errorf("reference = %+v, want %+v, %v", inconclusive.Ref, want, err)
	}
	if inconclusive.Err == nil {
		t.Fatal("no cause")
	}
	if cause != nil && !cause(err) {
		t.Errorf("it does not unwrap to the cause: %v", err)
	}
	if !strings.HasPrefix(err.Error(), ref+": discovery can't tell whether it is served") ||
		!strings.Contains(err.Error(), ": "+inconclusive.Err.Error()) {
		t.Errorf("text = %q", err)
	}
	return inconclusive.Failed
}

// If the server of one group fails, only questions that may be about this group are inconclusive.
func TestResolve_OneStaleGroupVersionIsInconclusiveForItselfOnly(t *testing.T) {
	groups := []group{
		coreGroup, stale(exampleGroup, "v1beta1"), stale(acmeGroup, "stable"), stale(calicoGroup, "v3"), stale(v1AcmeGroup, "v2"),
	}
	const (
		healthy = "" // found
		absent  = "not served"
	)
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, groups...)
			r := s.resolver(t)
			for _, tc := range []struct{ ref, want string }{
				{"pods", healthy},
				{"pods.v1", healthy},
				{"widgets", healthy},
				{"widgets.v1.example.com", healthy},
				{"unicorns.v1.example.com", absent}, // v1 was asked
				{"unicorns.v1.nobody.com", absent},
				{"unicorns.nobody.com", absent},
				{"pods.v2", absent},
				{"widgets.v1beta1.example.com", "example.com/v1beta1"},
				{"unicorns.example.com", "example.com/v1beta1"},
				{"ipamblocks.projectcalico.org", "projectcalico.org/v3"},
				{"ipamblocks.v3.projectcalico.org", "projectcalico.org/v3"},
				{"ipamblocks.v1.projectcalico.org", absent},
				// In each of its readings.
				{"gizmos.stable.acme.io", "acme.io/stable"},
				{"gizmos.acme.io", "acme.io/stable"},
				{"sprockets.v1.acme.io", "v1.acme.io/v2"},
				{"sprockets.v2.v1.acme.io", "v1.acme.io/v2"},
				// It may be anywhere.
				{"unicorns", "acme.io/stable, example.com/v1beta1, projectcalico.org/v3, v1.acme.io/v2"},
			} {
				t.Run(tc.ref, func(t *testing.T) {
					got, err := r.Resolve(t.Context(), tc.ref)
					switch tc.want {
					case healthy:
						if err != nil || got.GVR.Resource == "" {
							t.Errorf("Resolve = %v, %v", got.GVR, err)
						}
					case absent:
						checkKind(t, err, discovery.ErrNotServed)
					default:
						failed := make([]string, 0, 4)
						for _, gv := range checkInconclusive(t, err, tc.ref, nil) {
							failed = append(failed, gv.String())
						}
						if got := strings.Join(failed, ", "); got != tc.want {
							t.Errorf("failed = %s, want %s", got, tc.want)
						}
					}
				})
			}
		})
	}
}

func TestInconclusiveError_TextHasTheServersMessageAndAdvice(t *testing.T) {
	const (
		blocks = "ipamblocks.projectcalico.org: discovery can't tell whether it is served: could not read the resources of projectcalico.org/v3: "
		path   = "/apis/projectcalico.org/v3"
	)
	for _, tc := range []struct {
		name, ref string
		fail      func(s *apiServer)
		want      string
	}{
		{
			"a stale group version", "ipamblocks.projectcalico.org",
			func(s *apiServer) {
				s.answer(path, refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
			},
			blocks + "ServiceUnavailable says the server",
		},
		{
			"401 is an answer", "ipamblocks.projectcalico.org",
			func(s *apiServer) {
				s.answer(path, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusUnauthorized)
					writeJSON(w, "application/json", metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status"}, Status: metav1.StatusFailure, Code: 401, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"})
				})
			},
			blocks + "the server has asked for the client to provide credentials; check the token or the certificate",
		},
		{
			"403", "ipamblocks.projectcalico.org",
			func(s *apiServer) { s.answer(path, refuse(http.StatusForbidden, metav1.StatusReasonForbidden)) },
			blocks + "Forbidden says the server; bind the ClusterRole system:discovery to the user",
		},
		{
			"all of the server, once", "unicorns",
			func(s *apiServer) { s.answer("*", refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)) },
			"unicorns: discovery can't tell whether it is served: Unauthorized says the server; check the token or the certificate",
		},
		{
			"several causes in one line", "unicorns",
			func(s *apiServer) {
				s.answer("/api", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
				s.answer("/apis", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
			},
			"unicorns: discovery can't tell whether it is served: ServiceUnavailable says the server; InternalError says the server",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, legacy, everything()...)
			tc.fail(s)
			_, err := s.resolver(t).Resolve(t.Context(), tc.ref)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error = %v\nwant    %s", err, tc.want)
			}
		})
	}
	s := newServer(t, aggregated, coreGroup, stale(calicoGroup, "v3"))
	_, err := s.resolver(t).ResolveAll(t.Context(), discovery.Selector{})
	const want = "*: discovery can't tell whether there are more resources: could not read the resources of projectcalico.org/v3: " +
		"the server marks its response as stale: the API server behind this group version does not respond"
	if err == nil || err.Error() != want {
		t.Errorf("of all: %v\nwant    %s", err, want)
	}
}

// In legacy discovery, each group version is a request, and may fail with another error.
func TestResolve_OneFailingGroupVersionUnwrapsToItsCause(t *testing.T) {
	const path = "/apis/projectcalico.org/v3"
	for _, tc := range troubles {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, legacy, everything()...)
			s.answer(path, tc.answer)
			r := s.resolver(t)
			_, err := r.Resolve(t.Context(), "ipamblocks.projectcalico.org")
			checkInconclusive(t, err, "ipamblocks.projectcalico.org", tc.cause)
			if got, err := r.Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
				t.Errorf("Resolve in a healthy group = %v, %v", got.GVR, err)
			}
		})
	}
}

// A group that is listed and not found is being added or removed.
func TestResolve_GroupVersionThatIsRemovedMeanwhileIsInconclusive(t *testing.T) {
	s := newServer(t, legacy, everything()...)
	s.answer("/apis/projectcalico.org/v3", http.NotFound)
	_, err := s.resolver(t).Resolve(t.Context(), "ipamblocks.v3.projectcalico.org")
	checkInconclusive(t, err, "ipamblocks.v3.projectcalico.org", nil)
}

func TestInconclusiveError_UnwrapsToAllCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, gizmoType, podType)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			switch req.GVR.GroupVersion() {
			case widgets.GroupVersion():
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not for you"))
			case gizmos.GroupVersion():
				<-ctx.Done()
			}
			return ctx.Err()
		})
		_, err := fromCluster(t, cluster).Resolve(t.Context(), "unicorns")
		failed := checkInconclusive(t, err, "unicorns", func(err error) bool {
			return apierrors.IsForbidden(err) && errors.Is(err, context.DeadlineExceeded)
		})
		want := []schema.GroupVersion{gizmos.GroupVersion(), widgets.GroupVersion()}
		if diff := cmp.Diff(want, failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
	})
}

// Contradictory responses, and responses that no API server sends, are inconclusive.

func TestInconclusive_JSONThatIsNotADocument(t *testing.T) {
	for name, body := range map[string]string{
		"a portal's":   `{"message":"please log in"}`,
		"null":         `null`,
		"a Status":     `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`,
		"another kind": `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"no kind":      `{"groups":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, legacy, everything()...)
			s.answer("*", say("application/json", body))
			for question, err := range ask(t.Context(), s.resolver(t)) {
				if !errors.Is(err, discovery.ErrInconclusive) || errors.Is(err, discovery.ErrNotServed) {
					t.Errorf("%s: %v, want inconclusive", question, err)
				}
			}
		})
	}
}

func TestValidate_ListOfAnotherGroupVersionIsInconclusive(t *testing.T) {
	s := newServer(t, legacy, everything()...)
	s.answer("/apis/example.com/v1", say("application/json",
		`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"other.com/v1","resources":[{"name":"widgets","kind":"Widget","verbs":["list","watch"]}]}`))
	_, err := s.resolver(t).Validate(t.Context(), widgets)
	checkInconclusive(t, err, "widgets.v1.example.com", nil)
}

// One of several API servers does not know the type yet.
func TestValidate_404ThatDocumentsContradictIsInconclusive(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			first := true
			s.answer("/apis/example.com/v1", func(w http.ResponseWriter, r *http.Request) {
				if first {
					first = false
					http.NotFound(w, r)
					return
				}
				writeJSON(w, "application/json", versionDoc(exampleGroup, exampleGroup.versions[1]))
			})
			_, err := s.resolver(t).Validate(t.Context(), widgets)
			checkInconclusive(t, err, "widgets.v1.example.com", nil)
		})
	}
}

func TestValidate_404OfAStaleGroupVersionIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, stale(calicoGroup, "v3"))
	s.answer("/apis/projectcalico.org/v3", http.NotFound)
	_, err := s.resolver(t).Validate(t.Context(), calicoBlocks)
	checkInconclusive(t, err, "ipamblocks.v3.projectcalico.org", nil)
}

// The address is wrong, or an ingress has no backend.
func TestValidate_404OfEverythingIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated)
	s.answer("*", http.NotFound)
	_, err := s.resolver(t).Validate(t.Context(), widgets)
	checkInconclusive(t, err, "widgets.v1.example.com", nil)
}

func TestResolve_CoreGroupVersionThatIsRemovedMeanwhileIsInconclusive(t *testing.T) {
	s := newServer(t, legacy, everything()...)
	s.answer("/api/v1", http.NotFound)
	_, err := s.resolver(t).Resolve(t.Context(), "pods")
	checkInconclusive(t, err, "pods", nil)
}

// Without /api, client-go ignores the stale group versions of /apis.
func TestResolve_StaleGroupWithoutACoreGroupIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, exampleGroup, stale(calicoGroup, "v3"))
	s.answer("/api", http.NotFound)
	_, err := s.resolver(t).Resolve(t.Context(), "ipamblocks.projectcalico.org")
	checkInconclusive(t, err, "ipamblocks.projectcalico.org", nil)
}

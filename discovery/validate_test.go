package discovery_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

func TestValidate_AServedResourceNeedsOneRequest(t *testing.T) {
	for _, tc := range []struct {
		gvr  schema.GroupVersionResource
		path string
	}{
		{pods, "/api/v1"},
		{deployments, "/apis/apps/v1"},
		{widgets, "/apis/example.com/v1"},
		{widgetsBeta, "/apis/example.com/v1beta1"}, // not the preferred version
		{gizmos, "/apis/acme.io/stable"},
		{sprockets, "/apis/v1.acme.io/v2"},
		{crdBlocks, "/apis/crd.projectcalico.org/v1"}, // the other group does not matter
	} {
		for _, f := range formats {
			t.Run(string(f), func(t *testing.T) {
				s := newServer(t, f, everything()...)
				got, err := s.resolver(t).Validate(t.Context(), tc.gvr)
				if err != nil {
					t.Fatalf("Validate(%v): %v", tc.gvr, err)
				}
				if got.GVR != tc.gvr {
					t.Errorf("Validate = %v, want %v", got.GVR, tc.gvr)
				}
				if diff := cmp.Diff([]string{tc.path}, s.paths()); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestValidate_ReturnsWhatResolveReturns(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			r := s.resolver(t)
			for _, gvr := range []schema.GroupVersionResource{pods, deployments, gizmos, crdBlocks} {
				resolved, err := r.Resolve(t.Context(), discovery.RefOf(gvr).String())
				if err != nil {
					t.Fatalf("Resolve(%v): %v", gvr, err)
				}
				validated, err := r.Validate(t.Context(), gvr)
				if err != nil {
					t.Fatalf("Validate(%v): %v", gvr, err)
				}
				resolved.Versions = nil // it asks about one
				if diff := cmp.Diff(resolved, validated); diff != "" {
					t.Errorf("%v (-resolved +validated):\n%s", gvr, diff)
				}
			}
		})
	}
}

func TestValidate_MissingVerbs(t *testing.T) {
	componentStatuses := schema.GroupVersionResource{Version: "v1", Resource: "componentstatuses"}
	mute := schema.GroupVersionResource{Group: "mute.io", Version: "v1", Resource: "stones"}
	s := newServer(t, aggregated, append(everything(), group{name: "mute.io", versions: []version{{
		name: "v1", resources: []metav1.APIResource{{Name: "stones", Kind: "Stone"}},
	}}})...)
	r := s.resolver(t)
	for _, tc := range []struct {
		gvr  schema.GroupVersionResource
		ask  []string
		want *discovery.VerbError // nil: all are there
		text string
	}{
		{pods, nil, nil, ""},
		{pods, []string{"get"}, nil, ""},
		{reviews, []string{"create"}, nil, ""},
		{
			componentStatuses, nil,
			&discovery.VerbError{GVR: componentStatuses, Missing: []string{"watch"}, Verbs: []string{"get", "list"}},
			"componentstatuses.v1: the resource does not support watch; it supports get, list",
		},
		{
			reviews, nil,
			&discovery.VerbError{GVR: reviews, Missing: []string{"list", "watch"}, Verbs: []string{"create"}},
			"tokenreviews.v1.authentication.k8s.io: the resource does not support list and watch; it supports create",
		},
		{ // missing in the order of the question, there in the alphabet's
			pods,
			[]string{"patch", "list", "delete"},
			&discovery.VerbError{GVR: pods, Missing: []string{"patch", "delete"}, Verbs: []string{"create", "get", "list", "watch"}},
			"pods.v1: the resource does not support patch and delete; it supports create, get, list, watch",
		},
		{
			mute, nil,
			&discovery.VerbError{GVR: mute, Missing: []string{"list", "watch"}},
			"stones.v1.mute.io: the resource does not support list and watch; it supports no verbs",
		},
	} {
		_, err := r.Validate(t.Context(), tc.gvr, tc.ask...)
		if got := len(s.paths()); got != 1 {
			t.Errorf("Validate(%v, %v): requests = %d, want 1", tc.gvr, tc.ask, got)
		}
		if tc.want == nil {
			if err != nil {
				t.Errorf("Validate(%v, %v): %v", tc.gvr, tc.ask, err)
			}
			continue
		}
		got := asType[*discovery.VerbError](t, err, discovery.ErrVerbNotSupported)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("Validate(%v, %v) (-want +got):\n%s", tc.gvr, tc.ask, diff)
		}
		if err.Error() != tc.text {
			t.Errorf("error = %q, want %q", err, tc.text)
		}
		if meta.IsNoMatchError(err) {
			t.Error("to apimachinery a served resource matches nothing")
		}
	}
}

func TestValidate_InvalidGVRSendsNoRequest(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	for _, tc := range []struct {
		gvr          schema.GroupVersionResource
		ref, problem string
	}{
		{schema.GroupVersionResource{}, "(no name)", "the resource name is empty"},
		{schema.GroupVersionResource{Group: "apps", Version: "v1"}, "(no name).v1.apps", "the resource name is empty"},
		{schema.GroupVersionResource{Group: "apps", Resource: "deployments"}, "deployments.apps", "the version is empty"},
		{schema.GroupVersionResource{Version: "v1", Resource: "pods/log"}, "pods/log.v1", "a subresource can't be listed or watched"},
		{schema.GroupVersionResource{Version: "v1", Resource: "pods.apps"}, "pods.apps.v1", "the resource name is not a DNS label"},
		{schema.GroupVersionResource{Version: "v1", Resource: "../pods"}, "../pods.v1", "a subresource can't be listed or watched"},
		{schema.GroupVersionResource{Version: "v1/x", Resource: "pods"}, "pods.v1/x", "the version is not a DNS label"},
		{schema.GroupVersionResource{Version: "..", Resource: "pods"}, "pods...", "the version is not a DNS label"},
		{schema.GroupVersionResource{Version: "V1", Resource: "pods"}, "pods.V1", "the version is not a DNS label"},
		{schema.GroupVersionResource{Group: "apps/v1", Version: "v1", Resource: "pods"}, "pods.v1.apps/v1", "the group is not a DNS name"},
		{schema.GroupVersionResource{Group: "..", Version: "v1", Resource: "pods"}, "pods.v1...", "the group is not a DNS name"},
		{schema.GroupVersionResource{Group: "Apps", Version: "v1", Resource: "pods"}, "pods.v1.Apps", "the group is not a DNS name"},
	} {
		_, err := r.Validate(t.Context(), tc.gvr)
		got := asType[*discovery.RefError](t, err, discovery.ErrInvalidRef)
		if got.Ref != tc.ref || !strings.HasPrefix(got.Problem, tc.problem) {
			t.Errorf("Validate(%#v): error is about %q: %q; want %q: %q", tc.gvr, got.Ref, got.Problem, tc.ref, tc.problem)
		}
	}
	if got := s.paths(); got != nil {
		t.Errorf("requests = %v, want none", got)
	}
}

func TestValidate_NotServedErrorHasVersionsAndSuggestions(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			r := s.resolver(t)
			for _, tc := range []struct {
				why  string
				gvr  schema.GroupVersionResource
				want notServed
			}{
				{"no such version", schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}, notServed{
					"v1 v1beta1", "widgets.example.com",
					"widgets.v2.example.com: not served by the API server in version v2; it is served in v1, v1beta1",
				}},
				{"no such group", schema.GroupVersionResource{Group: "extensions", Version: "v1beta1", Resource: "deployments"}, notServed{
					"", "deployments.apps", "deployments.v1beta1.extensions: not served by the API server; did you mean deployments.apps?",
				}},
				{"not in this version", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "flanges"}, notServed{
					"v1beta1", "flanges.example.com", "flanges.v1.example.com: not served by the API server in version v1; it is served in v1beta1",
				}},
				{"no such resource", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "unicorns"}, notServed{
					"", "", "unicorns.v1.apps: not served by the API server; is its CustomResourceDefinition installed?",
				}},
				{"a kind", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "Deployment"}, notServed{
					"", "deployments.apps", "Deployment.v1.apps: not served by the API server; did you mean deployments.apps?",
				}},
				{"no such version of the core group", schema.GroupVersionResource{Version: "v2", Resource: "pods"}, notServed{
					"v1", "pods", "pods.v2: not served by the API server in version v2; it is served in v1",
				}},
			} {
				t.Run(tc.why, func(t *testing.T) {
					got, err := r.Validate(t.Context(), tc.gvr)
					checkNotServed(t, err, discovery.RefOf(tc.gvr).String(), tc.want)
					if diff := cmp.Diff(discovery.Resource{}, got); diff != "" {
						t.Errorf("Validate returned something besides the error:\n%s", diff)
					}
				})
			}
		})
	}
}

// For example an aggregated API server without kube-apiserver.
func TestValidate_AbsentCoreGroupIsNotServed(t *testing.T) {
	s := newServer(t, legacy, exampleGroup)
	_, err := s.resolver(t).Validate(t.Context(), pods)
	checkNotServed(t, err, "pods.v1", notServed{
		"", "", "pods.v1: not served by the API server; is its CustomResourceDefinition installed?",
	})
}

// The response for the group version is conclusive. The documents only have suggestions.
func TestValidate_ARefusalNeedsNoSuggestions(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	s.answer("/apis", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	_, err := s.resolver(t).Validate(t.Context(), schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "flanges"})
	checkNotServed(t, err, "flanges.v1.example.com", notServed{
		"", "", "flanges.v1.example.com: not served by the API server; is its CustomResourceDefinition installed?",
	})
}

// The other group versions do not matter.
func TestValidate_FailedGroupVersionIsInconclusive(t *testing.T) {
	for _, tc := range troubles {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			s.answer("/apis/example.com/v1", tc.answer)
			r := s.resolver(t)
			got, err := r.Validate(t.Context(), widgets)
			failed := checkInconclusive(t, err, "widgets.v1.example.com", tc.cause)
			if diff := cmp.Diff([]schema.GroupVersion{widgets.GroupVersion()}, failed); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(discovery.Resource{}, got); diff != "" {
				t.Errorf("Validate returned something besides the error:\n%s", diff)
			}
			if _, err := r.Validate(t.Context(), widgetsBeta); err != nil {
				t.Errorf("Validate in a healthy version: %v", err)
			}
		})
	}
}

func TestValidate_FailedCoreGroupIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	s.answer("/api/v1", refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	_, err := s.resolver(t).Validate(t.Context(), pods)
	checkInconclusive(t, err, "pods.v1", apierrors.IsForbidden)
}

func TestValidate_VerbErrorComesWithoutResource(t *testing.T) {
	got, err := newServer(t, aggregated, everything()...).resolver(t).Validate(t.Context(), reviews)
	if err != nil && got.GVR.Resource != "" {
		t.Errorf("Validate = %v beside %v", got.GVR, err)
	}
}

// A run answers questions about known types from memory, without the context.
func TestResolver_ANilContextIsAnError(t *testing.T) {
	unknown := widgets.GroupVersion().WithResource("unicorns")
	kind := widgets.GroupVersion().WithKind("Unicorn")
	var none context.Context
	for name, resolver := range map[string]func(s *apiServer) *discovery.Resolver{
		"without a run": func(s *apiServer) *discovery.Resolver { return s.resolver(t) },
		"with a run":    func(s *apiServer) *discovery.Resolver { return run(t, s, never()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			r := resolver(s)
			s.paths()
			_, resolved := r.Resolve(none, "unicorns")
			_, ofResource := r.ResolveGVR(none, unknown)
			_, ofKind := r.ResolveGVK(none, kind)
			_, all := r.ResolveAll(none, discovery.Selector{})
			_, valid := r.Validate(none, unknown)
			_, exact := r.ValidateVersion(none, unknown, discovery.Exact())
			_, preferred := r.ValidateVersion(none, unknown, discovery.FollowPreferred())
			_, awaited := r.Await(none, unknown)
			_, named := r.AwaitRef(none, "unicorns")
			_, mapping := r.RESTMapper().(meta.RESTMapperWithContext).RESTMappingWithContext(none, kind.GroupKind())
			for name, err := range map[string]error{
				"Resolve": resolved, "ResolveGVR": ofResource, "ResolveGVK": ofKind, "ResolveAll": all, "Validate": valid,
				"ValidateVersion, exact": exact, "ValidateVersion, preferred": preferred,
				"Await": awaited, "AwaitRef": named, "RESTMapping": mapping, "Run": r.Run(none),
			} {
				if err == nil || !strings.HasSuffix(err.Error(), ": the context is nil") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := s.paths(); got != nil {
				t.Errorf("requests = %v, want none", got)
			}
		})
	}
}

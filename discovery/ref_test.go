package discovery_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

func TestParseRef_Reads(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, tc := range []struct {
		ref    string
		want   discovery.Ref
		String string // empty: as it was
	}{
		{ref: "pods", want: discovery.Ref{Resource: "pods"}},
		{ref: "p", want: discovery.Ref{Resource: "p"}},
		{ref: "pods.v1", want: discovery.Ref{Resource: "pods", Version: "v1"}},
		{ref: "pods.v1.", want: discovery.Ref{Resource: "pods", Version: "v1"}, String: "pods.v1"},
		{ref: "pods.metrics.k8s.io", want: discovery.Ref{Resource: "pods", Group: "metrics.k8s.io"}},
		{ref: "deployments.apps", want: discovery.Ref{Resource: "deployments", Group: "apps"}},
		{ref: "deployments.v1.apps", want: discovery.Ref{Resource: "deployments", Version: "v1", Group: "apps"}},
		{ref: "widgets.v2alpha1.example.com", want: discovery.Ref{Resource: "widgets", Version: "v2alpha1", Group: "example.com"}},
		{ref: "widgets.v10.example.com", want: discovery.Ref{Resource: "widgets", Version: "v10", Group: "example.com"}},
		{ref: "widgets.v1beta10.example.com", want: discovery.Ref{Resource: "widgets", Version: "v1beta10", Group: "example.com"}},
		{ref: "ipamblocks.v1.crd.projectcalico.org", want: discovery.Ref{Resource: "ipamblocks", Version: "v1", Group: "crd.projectcalico.org"}},
		// Only the forms that Kubernetes recommends are taken for versions.
		{ref: "gizmos.stable.acme.io", want: discovery.Ref{Resource: "gizmos", Group: "stable.acme.io"}},
		{ref: "widgets.v1alpha.example.com", want: discovery.Ref{Resource: "widgets", Group: "v1alpha.example.com"}},
		{ref: "widgets.v.example.com", want: discovery.Ref{Resource: "widgets", Group: "v.example.com"}},
		{ref: "widgets.xv1.example.com", want: discovery.Ref{Resource: "widgets", Group: "xv1.example.com"}},
		{ref: "widgets.v1gamma1.example.com", want: discovery.Ref{Resource: "widgets", Group: "v1gamma1.example.com"}},
		{ref: "sprockets.v2.v1.acme.io", want: discovery.Ref{Resource: "sprockets", Version: "v2", Group: "v1.acme.io"}},
		{ref: "crd.projectcalico.org/v1/ipamblocks", want: discovery.Ref{Resource: "ipamblocks", Version: "v1", Group: "crd.projectcalico.org"}, String: "ipamblocks.v1.crd.projectcalico.org"},
		{ref: "crd.projectcalico.org/v1, Kind=IPAMBlock", want: discovery.Ref{Resource: "IPAMBlock", Version: "v1", Group: "crd.projectcalico.org"}, String: "IPAMBlock.v1.crd.projectcalico.org"},
		{ref: crdBlocks.String(), want: discovery.RefOf(crdBlocks), String: "ipamblocks.v1.crd.projectcalico.org"},
		{ref: "v1/pods", want: discovery.Ref{Resource: "pods", Version: "v1"}, String: "pods.v1"},
		{ref: "/v1/pods", want: discovery.Ref{Resource: "pods", Version: "v1"}, String: "pods.v1"},
		{ref: pods.String(), want: discovery.RefOf(pods), String: "pods.v1"},
		{ref: "v1, Kind=Pod", want: discovery.Ref{Resource: "Pod", Version: "v1"}, String: "Pod.v1"},
		{ref: pods.GroupVersion().WithKind("Pod").String(), want: discovery.Ref{Resource: "Pod", Version: "v1"}, String: "Pod.v1"},
		{ref: "acme.io/stable/gizmos", want: discovery.RefOf(gizmos), String: "gizmos.stable.acme.io"},
		{ref: "v1.acme.io/v2/sprockets", want: discovery.RefOf(sprockets), String: "sprockets.v2.v1.acme.io"},
		{ref: "v1/v2/sprockets", want: discovery.Ref{Resource: "sprockets", Version: "v2", Group: "v1"}, String: "sprockets.v2.v1"},
		// A kind is no plural, but it deserves a suggestion.
		{ref: "IPAMBlock", want: discovery.Ref{Resource: "IPAMBlock"}},
		{ref: "ip-pools2.example.com", want: discovery.Ref{Resource: "ip-pools2", Group: "example.com"}},
		{ref: long, want: discovery.Ref{Resource: long}},
	} {
		t.Run(tc.ref, func(t *testing.T) {
			got, err := discovery.ParseRef(tc.ref)
			if err != nil {
				t.Fatalf("ParseRef: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ParseRef (-want +got):\n%s", diff)
			}
			want := tc.String
			if want == "" {
				want = tc.ref
			}
			if got := got.String(); got != want {
				t.Errorf("String = %q, want %q", got, want)
			}
		})
	}
}

func TestParseRef_RefusesWithAReason(t *testing.T) {
	const (
		emptyName   = "the resource name is empty"
		badName     = "the resource name is not a DNS label"
		subresource = "a subresource can't be listed or watched"
		badGroup    = "the group is not a DNS name"
		badVersion  = "the version is not a DNS label"
		noVersion   = "the version is empty"
		noResource  = "the resource is missing"
		noType      = `after the version there must be ", Kind=" or ", Resource="`
	)
	for _, tc := range []struct{ ref, problem string }{
		{"", emptyName},
		{".", emptyName},
		{".v1.example.com", emptyName},
		{"pods/log", subresource},
		{"/", subresource},
		{"pods/log.v1.example.com", subresource},
		{"pods ", badName},
		{" pods", badName},
		{"po_ds", badName},
		{"-pods", badName},
		{"pods-", badName},
		{"pöds", badName},
		{"pods\x00", badName},
		{"\xff", badName},
		{"*", badName},
		{strings.Repeat("a", 64), badName},
		{"pods.", badGroup},
		{"pods..", badGroup},
		{"pods..apps", badGroup},
		{"pods.v1..", badGroup},
		{"pods.v1.example.com.", badGroup},
		{"deployments.Apps", badGroup},
		{"deployments.V1.apps", badGroup},
		{"deployments.apps/v1", noResource},
		{"apps/v1", noResource},
		{"apps/v1/", emptyName},
		{"apps//deployments", noVersion},
		{"Apps/v1/deployments", badGroup},
		{"apps/V1/deployments", badVersion},
		{"apps/v1/deploy ments", badName},
		{"apps/v1/deployments/scale", subresource},
		{"v1/pods/log", subresource},
		{"apps/v1, deployments", noType},
		{"apps/v1, kind=Deployment", noType},
		{"apps/v1, Kind=", emptyName},
		{"apps/, Kind=Deployment", noVersion},
		{", Kind=Deployment", noVersion},
		{"apps/v1/deployments, Kind=Deployment", badVersion},
		{"apps/v1, Kind=Deployment, Kind=Pod", badName},
		{"apps/v1,Kind=Deployment", noType},
		{"deployments.v1.ap ps", badGroup},
		{"deployments.-apps", badGroup},
		{"deployments." + strings.Repeat("a.", 127) + "a", badGroup},
	} {
		t.Run(tc.ref, func(t *testing.T) {
			got, err := discovery.ParseRef(tc.ref)
			refErr := asType[*discovery.RefError](t, err, discovery.ErrInvalidRef)
			if refErr.Ref != tc.ref || !strings.HasPrefix(refErr.Problem, tc.problem) {
				t.Errorf("error is about %q: %q; want %q: %q", refErr.Ref, refErr.Problem, tc.ref, tc.problem)
			}
			if got != (discovery.Ref{}) {
				t.Errorf("ParseRef = %+v, want nothing", got)
			}
		})
	}
}

func TestRefError_TextSaysWhatIsWrongAndWhatIsWanted(t *testing.T) {
	_, err := discovery.ParseRef("pods/log")
	want := `resource reference "pods/log": a subresource can't be listed or watched: remove the part after the resource; ` +
		`want plural, plural.group, plural.version.group or group/version/plural`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

// A program that has given a GVR has not written a reference: the forms of references do not help it.
func TestCheckGVR_TextDescribesAGVR(t *testing.T) {
	err := discovery.CheckGVR(schema.GroupVersionResource{Group: "example.com", Resource: "widgets"})
	want := `resource "widgets.example.com": the version is empty`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestRefOf_NamesTheResourceInFull(t *testing.T) {
	for _, tc := range []struct {
		gvr  schema.GroupVersionResource
		want string
	}{
		{pods, "pods.v1"},
		{deployments, "deployments.v1.apps"},
		{crdBlocks, "ipamblocks.v1.crd.projectcalico.org"},
		{gizmos, "gizmos.stable.acme.io"},
		{sprockets, "sprockets.v2.v1.acme.io"},
	} {
		ref := discovery.RefOf(tc.gvr)
		if diff := cmp.Diff(discovery.Ref{Resource: tc.gvr.Resource, Version: tc.gvr.Version, Group: tc.gvr.Group}, ref); diff != "" {
			t.Errorf("RefOf(%v) (-want +got):\n%s", tc.gvr, diff)
		}
		if got := ref.String(); got != tc.want {
			t.Errorf("RefOf(%v) = %q, want %q", tc.gvr, got, tc.want)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, seed := range []string{
		"", ".", "..", "/", "pods", "pods.", "pods.v1", "pods.v1.", "pods.v1..", "pods.v1.v1.", "Pods.v1",
		"deployments.apps", "deployments.v1.apps", "ipamblocks.v1.crd.projectcalico.org", "gizmos.stable.acme.io",
		"sprockets.v2.v1.acme.io", "pods/log", "a.v1beta1", "a.v0.v0.v0", "\xff.\x00", "pods.ſ", "K.v1", // the Kelvin sign is a K in lower case
	} {
		f.Add(seed)
	}
	for _, seed := range []string{
		"crd.projectcalico.org/v1/ipamblocks", "crd.projectcalico.org/v1, Kind=IPAMBlock", "/v1, Resource=pods", "v1/pods", "/v1/pods",
		"acme.io/stable/gizmos", "v1.acme.io/v2/sprockets", "a/b/c/d", "apps/v1", "v1/pods/log", "apps/v1, Kind=", ", ", "v1, Kind=Pod", "a/b, c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := discovery.ParseRef(s)
		if err != nil {
			var refErr *discovery.RefError
			if !errors.As(err, &refErr) || !errors.Is(err, discovery.ErrInvalidRef) || refErr.Ref != s || refErr.Problem == "" {
				t.Fatalf("ParseRef(%q): error is %#v, want a RefError about it", s, err)
			}
			return
		}
		written := ref.String()
		again, err := discovery.ParseRef(written)
		// A version that does not look like one can only be told from the group in the forms with a slash.
		if err != nil || again.String() != written || again != ref && !strings.ContainsAny(s, "/,") {
			t.Errorf("ParseRef(%q) = %+v, but ParseRef(%q) = %+v, %v", s, ref, written, again, err)
		}
		if want := inAnyForm(ref); !slices.Contains(want, s) {
			t.Errorf("ParseRef(%q) = %+v, which is written as one of %q", s, ref, want)
		}
		if strings.ContainsAny(written, "/ %?#") {
			t.Errorf("ParseRef(%q) lets through what has a meaning in a path: %q", s, written)
		}
	})
}

// inAnyForm returns how ref may have been written.
func inAnyForm(ref discovery.Ref) []string {
	gv := schema.GroupVersion{Group: ref.Group, Version: ref.Version}
	return []string{
		ref.String(), ref.String() + ".", // kubectl's form of the core group
		gv.String() + "/" + ref.Resource, gv.WithResource(ref.Resource).String(), gv.WithKind(ref.Resource).String(),
		// The core group as client-go prints it, and without the slash.
		strings.TrimPrefix(gv.WithResource(ref.Resource).String(), "/"), strings.TrimPrefix(gv.WithKind(ref.Resource).String(), "/"),
		"/" + gv.String() + "/" + ref.Resource,
	}
}

func TestParseRef_LettersThatAreASCIIOnlyInLowerCase(t *testing.T) {
	for _, ref := range []string{"\u212Aods", "p\u0130ds"} {
		if got, err := discovery.ParseRef(ref); !errors.Is(err, discovery.ErrInvalidRef) {
			t.Errorf("ParseRef(%q) = %+v, %v", ref, got, err)
		}
	}
}

func TestRefError_IsShort(t *testing.T) {
	long := strings.Repeat("x", 5_000)
	for _, ref := range []string{long, "pods." + long + ".", long + "/v1", "v1/" + long, long + "/v1/pods", "apps/v1, Kind=" + long + "/"} {
		_, err := discovery.ParseRef(ref)
		refErr := asType[*discovery.RefError](t, err, discovery.ErrInvalidRef)
		if len(refErr.Problem) > 100 || len(err.Error()) > 1_500 {
			t.Errorf("%s…: problem of %d bytes, error of %d", ref[:8], len(refErr.Problem), len(err.Error()))
		}
	}
}

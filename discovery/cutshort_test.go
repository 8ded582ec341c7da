package discovery_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

func TestResolve_AGroupMayBeCutShort(t *testing.T) {
	blocks := func(groupName string, versions ...string) group {
		g := blocksGroup(groupName, versions[0])
		for _, name := range versions[1:] {
			g.versions = append(g.versions, version{name: name, resources: g.versions[0].resources})
		}
		return g
	}
	s := newServer(t, aggregated, coreGroup, appsGroup, blocks("config.example.com", "v1", "v1beta1"), blocks("config.example.net", "v2"),
		blocks("v1.acme.io", "v3"), blocks("net", "v1"), blocks("net.example.com", "v1"), stale(blocks("down.example.com", "v1"), "v1"))
	for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t)} {
		t.Run(name, func(t *testing.T) {
			for ref, want := range map[string]string{
				"deployments.ap":                     "deployments.v1.apps",
				"deploy.app":                         "deployments.v1.apps",
				"Deployment.a":                       "deployments.v1.apps",
				"ipamblocks.config.example.c":        "ipamblocks.v1.config.example.com",
				"ipamblocks.v1beta1.config":          "ipamblocks.v1beta1.config.example.com", // the only one of that version
				"ipamblock.v1.ac":                    "ipamblocks.v3.v1.acme.io",              // a group that begins like a version
				"ipamblocks.net":                     "ipamblocks.v1.net",                     // all of a name comes before a part of one
				"ipamblocks.net.":                    "invalid",
				"ipamblocks.config":                  "ambiguous",
				"ipamblocks.down":                    "inconclusive",
				"ipamblocks.example.com":             "not served", // a part at the end
				"ipamblocks.v2.config.example.com":   "not served",
				"ipamblocks.config.example.com.more": "not served",
				"deployments.v1":                     "not served", // of the core group
				"ap/v1/deployments":                  "not served", // exact
			} {
				got, err := r.Resolve(t.Context(), ref)
				outcome := discovery.RefOf(got.GVR).String()
				for sentinel, text := range map[error]string{
					discovery.ErrNotServed: "not served", discovery.ErrAmbiguous: "ambiguous",
					discovery.ErrInconclusive: "inconclusive", discovery.ErrInvalidRef: "invalid",
				} {
					if errors.Is(err, sentinel) {
						outcome = text
					}
				}
				if outcome != want {
					t.Errorf("Resolve(%s) = %s (%v), want %s", ref, outcome, err, want)
				}
			}
			// What a program gives in parts is never cut short.
			_, err := r.ResolveGR(t.Context(), schema.GroupResource{Group: "ap", Resource: "deployments"})
			checkKind(t, err, discovery.ErrNotServed)
			_, err = r.ResolveGK(t.Context(), schema.GroupKind{Group: "ap", Kind: "Deployment"})
			checkKind(t, err, discovery.ErrNotServed)
		})
	}
}

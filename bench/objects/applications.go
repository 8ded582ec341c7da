package objects

import (
	"fmt"
	"strings"
)

// The first seeds of random values. The second is the number of an object.
const (
	blockSeed   = 1
	clusterSeed = 2
	mixSeed     = 3
)

const (
	applicationCount = 320
	teamCount        = 34
	nodeCount        = 140
)

// cluster has the names that objects have in common. It does not change.
type cluster struct {
	apps  []app
	nodes []string
}

// app is an application: the values that its objects have in common.
type app struct {
	Name, Namespace, Team, PartOf         string
	Tool                                  tool // which deployed it
	Chart, Version, Image, Digest, Domain string
	UID, OwnerUID                         string // of its Deployment and of its ReplicaSet
}

// tool is a tool that deploys applications.
type tool struct{ ManagedBy, Manager, Operation string }

var tools = []tool{
	{"Helm", "helm", "Update"},
	{"argocd", "argocd-controller", "Apply"},
	{"Helm", "helm-controller", "Update"},
	{"kustomize-controller", "kustomize-controller", "Apply"},
	{"kubectl", "kubectl-client-side-apply", "Update"},
}

var (
	subjects = strings.Fields(`account audit basket billing catalog checkout consent coupon customer delivery document feature fraud
		identity inventory invoice ledger loyalty mail media notification order payment pricing product profile recommendation report
		review search session shipping stock subscription tax tracking user voucher warehouse webhook`)
	roles  = strings.Fields("api worker gateway frontend consumer scheduler exporter indexer proxy sync service cache")
	people = strings.Fields("a.keller b.okafor c.lindqvist d.moreau e.tanaka f.rossi g.novak h.silva i.petrov j.murphy " +
		"k.nguyen l.haddad m.schulz n.patel o.garcia p.jansen renovate[bot] release-bot release-bot release-bot")
)

// Subject returns the first part of the name of an application.
func (r random) Subject() string { return r.Pick(subjects...) }

// Role returns the second part of the name of an application.
func (r random) Role() string { return r.Pick(roles...) }

// Person returns the name of a person or a program that deploys applications.
func (r random) Person() string { return r.Pick(people...) }

// Node returns the name of one of the cluster's nodes.
func (r random) Node() string { return r.Pick(sampleCluster.nodes...) }

func (r random) version() string {
	return fmt.Sprintf("%d.%d.%d", r.Between(0, 4), r.IntN(30), r.IntN(12))
}

var sampleCluster = newCluster()

func newCluster() *cluster {
	c := &cluster{}
	for i := range applicationCount {
		c.apps = append(c.apps, newApp(i))
	}
	for i := range nodeCount {
		r := newRandom(clusterSeed, 1_000_000+i)
		c.nodes = append(c.nodes, fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", r.Between(0, 3), r.IntN(256), r.Between(4, 254)))
	}
	return c
}

func newApp(i int) app {
	r := newRandom(clusterSeed, i)
	// Each pair of 40 subjects and 12 roles occurs at most once.
	name := subjects[i%len(subjects)] + "-" + roles[(i/len(subjects)+i)%len(roles)]
	team := fmt.Sprintf("team-%02d", r.IntN(teamCount))
	version := r.version()
	return app{
		Name:      name,
		Namespace: team + "-" + r.Pick("prod", "prod", "prod", "staging", "dev"),
		Team:      team,
		PartOf:    r.Pick("platform", "shop", "backoffice", "data", "identity", "logistics", "observability"),
		Tool:      tools[r.IntN(len(tools))],
		Chart:     r.Pick("service", "webapp", "worker", name) + "-" + r.version(),
		Version:   version,
		Image:     r.Pick("registry.example.com/", "ghcr.io/example-org/", "123456789012.dkr.ecr.eu-west-1.amazonaws.com/") + team + "/" + name,
		Digest:    "sha256:" + r.Hex(64),
		Domain:    r.Pick("example.com", "shop.example.com", "internal.example.net", "example.org"),
		UID:       r.UID(),
		OwnerUID:  r.UID(),
	}
}

// app returns one of the applications, some much more often than others.
func (c *cluster) app(r random) app {
	f := r.Float64()
	return c.apps[int(f*f*float64(len(c.apps)))]
}

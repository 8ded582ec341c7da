package objects

import (
	"fmt"
	"strings"
)

// The domains of dice.
const (
	blockDomain = 1
	worldDomain = 2
	mixDomain   = 3
)

const (
	worldApps  = 320
	worldTeams = 34
	worldNodes = 140
)

// world is the cluster that all objects are from. It is the same for all of them
// and never changes once made.
type world struct {
	apps  []app
	nodes []string
}

// app is an application: what its objects share.
type app struct {
	Name, Namespace, Team, PartOf         string
	Tool                                  tool // that deployed it
	Chart, Version, Image, Digest, Domain string
	UID, OwnerUID                         string // of its Deployment and of its ReplicaSet
}

// tool is what brings an application's objects to the cluster.
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

// Subject and Role return the parts of the name of an application.
func (d dice) Subject() string { return d.Pick(subjects...) }

// Role is the second part.
func (d dice) Role() string { return d.Pick(roles...) }

// Person returns who has deployed something.
func (d dice) Person() string { return d.Pick(people...) }

// Node returns the name of a node.
func (d dice) Node() string { return d.Pick(theWorld.nodes...) }

func (d dice) version() string {
	return fmt.Sprintf("%d.%d.%d", d.Between(0, 4), d.IntN(30), d.IntN(12))
}

var theWorld = newWorld()

func newWorld() *world {
	w := &world{}
	for i := range worldApps {
		w.apps = append(w.apps, newApp(i))
	}
	for i := range worldNodes {
		d := newDice(worldDomain, 1_000_000+i)
		w.nodes = append(w.nodes, fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", d.Between(0, 3), d.IntN(256), d.Between(4, 254)))
	}
	return w
}

func newApp(i int) app {
	d := newDice(worldDomain, i)
	// 40 subjects and 12 roles: the numbers below meet each pair once.
	name := subjects[i%len(subjects)] + "-" + roles[(i/len(subjects)+i)%len(roles)]
	team := fmt.Sprintf("team-%02d", d.IntN(worldTeams))
	version := d.version()
	return app{
		Name:      name,
		Namespace: team + "-" + d.Pick("prod", "prod", "prod", "staging", "dev"),
		Team:      team,
		PartOf:    d.Pick("platform", "shop", "backoffice", "data", "identity", "logistics", "observability"),
		Tool:      tools[d.IntN(len(tools))],
		Chart:     d.Pick("service", "webapp", "worker", name) + "-" + d.version(),
		Version:   version,
		Image:     d.Pick("registry.example.com/", "ghcr.io/example-org/", "123456789012.dkr.ecr.eu-west-1.amazonaws.com/") + team + "/" + name,
		Digest:    "sha256:" + d.Hex(64),
		Domain:    d.Pick("example.com", "shop.example.com", "internal.example.net", "example.org"),
		UID:       d.UID(),
		OwnerUID:  d.UID(),
	}
}

// app returns an application, some much more often than others.
func (w *world) app(d dice) app {
	f := d.Float64()
	return w.apps[int(f*f*float64(len(w.apps)))]
}

package objects

import (
	"fmt"
	"time"
)

const worldDomain = 2

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
	name, namespace, team, partOf string
	tool                          tool // what deployed it
	chart, version                string
	image, digest                 string
	domain                        string
	uid, ownerUID                 string // of its Deployment and of its ReplicaSet
	since                         time.Time
}

// tool is what brings an application's objects to the cluster.
type tool struct {
	managedBy, manager, operation string
}

var tools = []tool{
	{managedBy: "Helm", manager: "helm", operation: "Update"},
	{managedBy: "argocd", manager: "argocd-controller", operation: "Apply"},
	{managedBy: "Helm", manager: "helm-controller", operation: "Update"},
	{managedBy: "kustomize-controller", manager: "kustomize-controller", operation: "Apply"},
	{managedBy: "kubectl", manager: "kubectl-client-side-apply", operation: "Update"},
}

var (
	subjects = []string{
		"account", "audit", "basket", "billing", "catalog", "checkout", "consent", "coupon", "customer", "delivery",
		"document", "feature", "fraud", "identity", "inventory", "invoice", "ledger", "loyalty", "mail", "media",
		"notification", "order", "payment", "pricing", "product", "profile", "recommendation", "report", "review",
		"search", "session", "shipping", "stock", "subscription", "tax", "tracking", "user", "voucher", "warehouse", "webhook",
	}
	roles = []string{"api", "worker", "gateway", "frontend", "consumer", "scheduler", "exporter", "indexer", "proxy", "sync", "service", "cache"}
	parts = []string{"platform", "shop", "backoffice", "data", "identity", "logistics", "observability"}
)

var theWorld = newWorld()

func newWorld() *world {
	w := &world{}
	for i := range worldApps {
		w.apps = append(w.apps, newApp(i))
	}
	for i := range worldNodes {
		d := newDice(worldDomain, 1_000_000+i)
		w.nodes = append(w.nodes, fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", d.between(0, 3), d.IntN(256), d.between(4, 254)))
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
		name:      name,
		namespace: team + "-" + d.pick("prod", "prod", "prod", "staging", "dev"),
		team:      team,
		partOf:    d.pick(parts...),
		tool:      tools[d.IntN(len(tools))],
		chart:     d.pick("service", "webapp", "worker", name) + "-" + d.version(),
		version:   version,
		image:     d.pick("registry.example.com/", "ghcr.io/example-org/", "123456789012.dkr.ecr.eu-west-1.amazonaws.com/") + team + "/" + name,
		digest:    "sha256:" + d.hex(64),
		domain:    d.pick("example.com", "shop.example.com", "internal.example.net", "example.org"),
		uid:       d.uid(),
		ownerUID:  d.uid(),
		since:     d.before(now, 900),
	}
}

// app returns an application, some much more often than others.
func (w *world) app(d dice) app {
	f := d.Float64()
	return w.apps[int(f*f*float64(len(w.apps)))]
}

func (w *world) node(d dice) string { return w.nodes[d.IntN(len(w.nodes))] }

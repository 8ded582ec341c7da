package objects

import (
	"encoding/json"
	"fmt"
	"time"
)

// draft is an object of the mix in the making. A shape fills in what is its own.
type draft struct {
	dice
	app app

	name    string // gets a suffix that makes it unique
	created time.Time
	settled time.Time // when its controller last had something to do
	version int64     // generation

	labels, annotations object
	owners, finalizers  list
	spec, status        object

	controller writer // of the status
	deployed   bool   // spec and labels come from the application's tool, not from a controller
	others     []writer
}

func newDraft(i int) *draft {
	d := newDice(mixDomain, i)
	a := theWorld.app(d)
	created := d.before(now, 300)
	return &draft{
		dice: d, app: a, name: a.name, created: created, settled: d.before(now, int(now.Sub(created).Hours()/24)),
		version: 1 + int64(d.ExpFloat64()*4), labels: object{}, annotations: object{}, deployed: true,
	}
}

// finish returns the object with number i.
func (d *draft) finish(i int) object {
	d.commonLabels()
	d.commonAnnotations()
	meta := object{
		"name": d.name + "-" + uniqueSuffix(i), "namespace": d.app.namespace, "uid": d.uid(),
		"resourceVersion": FormatVersion(Version(i)), "generation": d.version, "creationTimestamp": timestamp(d.created),
	}
	for name, value := range map[string]object{"labels": d.labels, "annotations": d.annotations} {
		if len(value) > 0 {
			meta[name] = value
		}
	}
	for name, value := range map[string]list{"ownerReferences": d.owners, "finalizers": d.finalizers} {
		if len(value) > 0 {
			meta[name] = value
		}
	}
	obj := object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}
	if d.spec != nil {
		obj["spec"] = d.spec
	}
	if d.status != nil {
		obj["status"] = d.status
	}
	meta["managedFields"] = managedFields(obj, d.writers())
	return obj
}

// commonLabels are those that an application's objects have, whatever they are.
func (d *draft) commonLabels() {
	d.labels["app.kubernetes.io/name"] = d.app.name
	d.labels["app.kubernetes.io/instance"] = d.app.name
	if d.chance(.8) {
		d.labels["app.kubernetes.io/managed-by"] = d.app.tool.managedBy
	}
	if d.chance(.6) {
		d.labels["app.kubernetes.io/part-of"] = d.app.partOf
	}
	if d.chance(.5) {
		d.labels["app.kubernetes.io/version"] = d.app.version
	}
	if d.app.tool.managedBy == "Helm" && d.deployed {
		d.labels["helm.sh/chart"] = d.app.chart
	}
	if d.chance(.4) {
		d.labels["team"] = d.app.team
	}
}

func (d *draft) commonAnnotations() {
	if !d.deployed {
		return
	}
	d.provenance()
	switch d.app.tool.manager {
	case "helm", "helm-controller":
		d.annotations["meta.helm.sh/release-name"] = d.app.name
		d.annotations["meta.helm.sh/release-namespace"] = d.app.namespace
	case "argocd-controller":
		d.annotations["argocd.argoproj.io/tracking-id"] = fmt.Sprintf("%s:example.com/Widget:%s/%s", d.app.name, d.app.namespace, d.name)
	case "kubectl-client-side-apply":
		d.annotations["kubectl.kubernetes.io/last-applied-configuration"] = d.lastApplied()
	}
	if d.chance(.1) {
		d.annotations["kubectl.kubernetes.io/restartedAt"] = timestamp(d.before(now, 60))
		d.others = append(d.others, writer{
			manager: "kubectl-rollout", operation: "Update", at: d.transition(),
			owns: []path{{"metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}},
		})
	}
}

// lastApplied is what kubectl remembers of a manifest.
func (d *draft) lastApplied() string {
	text, err := json.Marshal(object{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": d.spec,
		"metadata": object{"annotations": object{}, "labels": d.labels, "name": d.name, "namespace": d.app.namespace},
	})
	if err != nil {
		panic("objects: bug: a draft is not JSON: " + err.Error())
	}
	return string(text) + "\n"
}

// writers returns who wrote what of the object.
func (d *draft) writers() []writer {
	first := writer{
		manager: d.app.tool.manager, operation: d.app.tool.operation, at: d.transition(),
		owns: []path{{"metadata", "annotations"}, {"metadata", "labels"}, {"spec"}},
	}
	links := writer{
		manager: d.controller.manager, operation: "Update", at: d.transition(),
		owns: []path{{"metadata", "finalizers"}, {"metadata", "ownerReferences"}},
	}
	if !d.deployed { // it is all the controller's, and one entry
		first.manager, first.operation = links.manager, links.operation
		first.owns, links.owns = append(first.owns, links.owns...), nil
	}
	for _, other := range d.others {
		first.except = append(first.except, other.owns...)
	}
	status := d.controller
	status.operation, status.subresource, status.at, status.owns = "Update", "status", d.settled, []path{{"status"}}
	return append(append([]writer{first}, d.others...), links, status)
}

// image is the application's, mostly of its present version.
func (d *draft) image() string {
	switch {
	case d.chance(.5):
		return d.app.image + ":v" + d.app.version
	case d.chance(.6):
		return d.app.image + "@" + d.app.digest
	default:
		return d.app.image + ":" + d.pick("main", "release", "hotfix") + "-" + d.hex(8)
	}
}

// ownedBy makes the draft belong to another object.
func (d *draft) ownedBy(apiVersion, kind, name, uid string) {
	d.owners = append(d.owners, object{
		"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true,
	})
}

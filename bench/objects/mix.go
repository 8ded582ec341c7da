package objects

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"text/template"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// shapes are the shapes of the mix, and how many of a hundred objects have them. Each is a
// template of a [shape] in the manner of a custom resource that many clusters have.
var shapes = []struct {
	name   string
	weight int
}{
	{"endpoint", 20},
	{"rollout", 14},
	{"secret", 13},
	{"certificate", 10},
	{"route", 10},
	{"appconfig", 8},
	{"application", 7},
	{"rules", 6},
	{"machine", 5},
	{"snapshot", 4},
	{"composition", 3},
}

//go:embed shapes/*.yaml
var shapeFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"add": func(a, b int) int { return a + b },
	"sub": func(a, b any) int64 { return asInt(a) - asInt(b) },
	"mul": func(a, b int) int { return a * b },
	"count": func(b bool) int {
		if b {
			return 1
		}
		return 0
	},
	"after": func(t time.Time, seconds int) time.Time { return t.Add(time.Duration(seconds) * time.Second) },
	"camel": camel,
	"ipOf": func(node string) string {
		return strings.ReplaceAll(strings.Split(node, ".")[0][len("ip-"):], "-", ".")
	},
	"now":     func() time.Time { return now },
	"replace": strings.ReplaceAll,
	"split":   strings.Fields,
	"stamp":   timestamp,
	"upper":   strings.ToUpper,
}).ParseFS(shapeFiles, "shapes/*.yaml"))

func asInt(v any) int64 {
	if n, ok := v.(int64); ok {
		return n
	}
	return int64(v.(int))
}

// shape is what a template says of an object.
type shape struct {
	Name string `json:"name"` // gets a suffix that makes it unique
	// Controlled says that a controller has made the object, and not a tool.
	Controlled  bool   `json:"controlled"`
	Controller  string `json:"controller"` // the writer of the status
	Generation  *int64 `json:"generation"`
	Labels      object `json:"labels"`
	Annotations object `json:"annotations"`
	Finalizers  list   `json:"finalizers"`
	Owner       object `json:"owner"`
	Scaled      bool   `json:"scaled"` // spec.replicas has a writer of its own
	Spec        object `json:"spec"`
	Status      object `json:"status"`
}

// draft is an object of the mix that is being made. Its methods are for templates.
type draft struct {
	dice
	shape

	App     app
	Created time.Time
	Settled time.Time // when its controller last had something to do
	version int64     // the generation

	labels, annotations object
	others              []writer
}

// Generation returns the generation of the object.
func (d *draft) Generation() int64 { return d.version }

// mixed returns the object with number i of the mix.
func mixed(i int) object {
	r := newDice(mixDomain, i)
	d := &draft{dice: r, App: theWorld.app(r), Created: r.before(now, 300), labels: object{}, annotations: object{}}
	d.Settled = d.before(now, int(now.Sub(d.Created).Hours()/24))
	d.version = 1 + int64(d.ExpFloat64()*4)
	at := d.IntN(100)
	for _, s := range shapes {
		if at -= s.weight; at < 0 {
			d.fill(s.name)
			return d.finish(i)
		}
	}
	panic("objects: bug: the weights of the shapes are less than a hundred")
}

// fill executes the template of a shape.
func (d *draft) fill(name string) {
	var text bytes.Buffer
	err := templates.ExecuteTemplate(&text, name+".yaml", d)
	if err == nil {
		err = decode(text.Bytes(), &d.shape)
	}
	if err != nil {
		panic(fmt.Sprintf("objects: bug: the template of %s: %v\n%s", name, err, &text))
	}
	if d.Name == "" {
		d.Name = d.App.Name
	}
	if d.shape.Generation != nil {
		d.version = *d.shape.Generation
	}
	maps.Copy(d.labels, d.Labels)
	maps.Copy(d.annotations, d.Annotations)
	if d.Scaled {
		d.others = append(d.others, writer{
			manager: "kube-controller-manager", operation: "Update", subresource: "scale", at: d.Settled, owns: []path{{"spec", "replicas"}},
		})
	}
}

// decode decodes YAML, whole numbers as int64.
func decode(text []byte, into any) error {
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(text, into)
}

// finish returns the object with number i.
func (d *draft) finish(i int) object {
	d.commonLabels()
	d.commonAnnotations()
	meta := object{
		"name": d.Name + "-" + uniqueSuffix(i), "namespace": d.App.Namespace, "uid": d.UID(),
		"resourceVersion": FormatVersion(Version(i)), "generation": d.version, "creationTimestamp": timestamp(d.Created),
	}
	for name, value := range map[string]object{"labels": d.labels, "annotations": d.annotations} {
		if len(value) > 0 {
			meta[name] = value
		}
	}
	if d.Finalizers != nil {
		meta["finalizers"] = d.Finalizers
	}
	if d.Owner != nil {
		d.Owner["controller"], d.Owner["blockOwnerDeletion"] = true, true
		meta["ownerReferences"] = list{d.Owner}
	}
	obj := object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}
	if d.Spec != nil {
		obj["spec"] = d.Spec
	}
	if d.Status != nil {
		obj["status"] = d.Status
	}
	meta["managedFields"] = managedFields(obj, d.writers())
	return obj
}

// commonLabels adds the labels of all objects of an application.
func (d *draft) commonLabels() {
	d.labels["app.kubernetes.io/name"] = d.App.Name
	d.labels["app.kubernetes.io/instance"] = d.App.Name
	if d.Chance(.8) {
		d.labels["app.kubernetes.io/managed-by"] = d.App.tool.managedBy
	}
	if d.Chance(.6) {
		d.labels["app.kubernetes.io/part-of"] = d.App.PartOf
	}
	if d.Chance(.5) {
		d.labels["app.kubernetes.io/version"] = d.App.Version
	}
	if d.App.tool.managedBy == "Helm" && !d.Controlled {
		d.labels["helm.sh/chart"] = d.App.chart
	}
	if d.Chance(.4) {
		d.labels["team"] = d.App.Team
	}
}

// commonAnnotations adds the annotations of the pipeline and of the tool that have deployed the
// object.
func (d *draft) commonAnnotations() {
	if d.Controlled {
		return
	}
	d.provenance()
	switch d.App.tool.manager {
	case "helm", "helm-controller":
		d.annotations["meta.helm.sh/release-name"] = d.App.Name
		d.annotations["meta.helm.sh/release-namespace"] = d.App.Namespace
	case "argocd-controller":
		d.annotations["argocd.argoproj.io/tracking-id"] = fmt.Sprintf("%s:example.com/Widget:%s/%s", d.App.Name, d.App.Namespace, d.Name)
	case "kubectl-client-side-apply":
		text, err := json.Marshal(object{
			"apiVersion": "example.com/v1", "kind": "Widget", "spec": d.Spec,
			"metadata": object{"annotations": object{}, "labels": d.labels, "name": d.Name, "namespace": d.App.Namespace},
		})
		if err != nil {
			panic("objects: bug: a draft is not JSON: " + err.Error())
		}
		d.annotations["kubectl.kubernetes.io/last-applied-configuration"] = string(text) + "\n"
	}
	if d.Chance(.1) {
		d.annotations["kubectl.kubernetes.io/restartedAt"] = timestamp(d.before(now, 60))
		d.others = append(d.others, writer{
			manager: "kubectl-rollout", operation: "Update", at: d.Transition(),
			owns: []path{{"metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}},
		})
	}
}

func (d *draft) provenance() {
	annotate := func(name, format string, args ...any) { d.annotations[name] = fmt.Sprintf(format, args...) }
	if d.Chance(.45) {
		annotate("deploy.example.com/commit", "%s", d.Hex(40))
		annotate("deploy.example.com/pipeline", "https://git.%s/%s/%s/-/pipelines/%d", d.App.Domain, d.App.Team, d.App.Name, d.Between(100_000, 9_999_999))
		annotate("deploy.example.com/by", "%s", d.Pick(people...))
	}
	if d.Chance(.3) {
		annotate("deploy.example.com/at", "%s", timestamp(d.Settled))
	}
	if d.Chance(.35) {
		var parts []string
		for range d.Between(1, 3) {
			parts = append(parts, strings.Join([]string{d.Pick(actions...), d.Subject(), d.Pick(things...), d.Pick(reasons...)}, " "))
		}
		text := strings.Join(parts, "; ")
		if d.Chance(.5) {
			text += fmt.Sprintf(" (%s-%d)", strings.ToUpper(d.App.PartOf[:4]), d.Between(100, 9999))
		}
		annotate("kubernetes.io/change-cause", "%s", text)
	}
	if d.Chance(.3) {
		annotate("checksum/values", "%s", d.Hex(64))
	}
	if d.Chance(.2) {
		annotate("example.com/description", "The %s %s of %s. Talks to %s and %s; page %s when it is down, and see https://wiki.%s/%s/%d first.",
			d.Subject(), d.Role(), d.App.PartOf, d.Subject(), d.Subject(), d.Pick(people...), d.App.Domain, d.App.Team, d.Between(1000, 99_999))
	}
	if d.Chance(.25) {
		d.labels["cost-center"] = fmt.Sprint(4000 + d.IntN(60)*5)
	}
}

// writers returns who has written what of the object.
func (d *draft) writers() []writer {
	first := writer{
		manager: d.App.tool.manager, operation: d.App.tool.operation, at: d.Transition(),
		owns: []path{{"metadata", "annotations"}, {"metadata", "labels"}, {"spec"}},
	}
	links := writer{
		manager: d.Controller, operation: "Update", at: d.Transition(),
		owns: []path{{"metadata", "finalizers"}, {"metadata", "ownerReferences"}},
	}
	if d.Controlled { // the controller has written all of it
		first.manager, first.operation = links.manager, links.operation
		first.owns, links.owns = append(first.owns, links.owns...), nil
	}
	for _, other := range d.others {
		first.except = append(first.except, other.owns...)
	}
	status := writer{manager: d.Controller, operation: "Update", subresource: "status", at: d.Settled, owns: []path{{"status"}}}
	return append(append([]writer{first}, d.others...), links, status)
}

// Transition returns a time between the creation of the object and its last change.
func (d *draft) Transition() time.Time {
	span := d.Settled.Sub(d.Created)
	if span <= 0 || d.Chance(.3) {
		return d.Settled
	}
	return d.Created.Add(time.Duration(d.Float64() * float64(span))).Truncate(time.Second)
}

// Condition returns one of the conditions of a status, as JSON.
func (d *draft) Condition(kind string, ok bool, reason, message string) (string, error) {
	status := "False"
	if ok {
		status = "True"
	}
	c := object{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": timestamp(d.Transition())}
	if d.Chance(.7) {
		c["observedGeneration"] = d.version
	}
	text, err := json.Marshal(c)
	return string(text), err
}

// Image returns an image of the application, mostly of its present version.
func (d *draft) Image() string {
	switch {
	case d.Chance(.5):
		return d.App.Image + ":v" + d.App.Version
	case d.Chance(.6):
		return d.App.Image + "@" + d.App.digest
	}
	return d.App.Image + ":" + d.Pick("main", "release", "hotfix") + "-" + d.Hex(8)
}

// Node returns the name of a node.
func (d *draft) Node() string { return theWorld.nodes[d.IntN(len(theWorld.nodes))] }

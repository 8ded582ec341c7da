package objects

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// shapes are the names of the shapes of the mix, and weights the percentage of objects with each.
// The template of a shape is a [shape] in YAML, which resembles a custom resource that many
// clusters have.
var (
	shapes  = strings.Fields("endpoint rollout secret certificate route appconfig application rules machine snapshot composition")
	weights = []int{20, 14, 13, 10, 10, 8, 7, 6, 5, 4, 3}
)

//go:embed shapes/*.yaml
var shapeFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"add": func(a, b int) int { return a + b },
	"mul": func(a, b int) int { return a * b },
	"quotient": func(a int, b string) (string, error) {
		n, err := strconv.Atoi(b)
		return strconv.FormatFloat(float64(a)/float64(n), 'f', -1, 64), err
	},
	"after": func(t time.Time, seconds int) time.Time { return t.Add(time.Duration(seconds) * time.Second) },
	"camel": func(name string) string {
		parts := strings.Split(name, "-")
		for i, part := range parts {
			parts[i] = strings.ToUpper(part[:1]) + part[1:]
		}
		return strings.Join(parts, "")
	},
	"now":     func() time.Time { return now },
	"replace": strings.ReplaceAll,
	"split":   strings.Fields,
	"stamp":   timestamp,
	"upper":   strings.ToUpper,
}).ParseFS(shapeFiles, "shapes/*.yaml"))

// shape is the part of an object that a template determines.
type shape struct {
	Name string `json:"name"` // without the suffix that makes it unique
	// Controlled means that a controller has created the object, and not a tool.
	Controlled  bool   `json:"controlled"`
	Controller  string `json:"controller"` // the writer of the status
	Generation  int64  `json:"generation"`
	Labels      object `json:"labels"`
	Annotations object `json:"annotations"`
	Finalizers  list   `json:"finalizers"`
	Owner       object `json:"owner"`
	Scaled      bool   `json:"scaled"` // an autoscaler owns spec.replicas
	Spec        object `json:"spec"`
	Status      object `json:"status"`
}

// draft is an object of the mix before it is complete. Templates call its methods.
type draft struct {
	random
	shape

	App     app
	Created time.Time
	Settled time.Time // the last change by its controller
}

// mixed returns the object with number i of the mix.
func mixed(i int) object {
	r := newRandom(mixSeed, i)
	d := &draft{random: r, App: sampleCluster.app(r), Created: r.Ago(now, 300)}
	d.Settled = d.Ago(now, int(now.Sub(d.Created).Hours()/24))
	d.Generation = 1 + int64(d.ExpFloat64()*4)
	at, k := d.IntN(100), 0
	for ; at >= weights[k]; k++ { // the sum of the weights is 100
		at -= weights[k]
	}
	d.Name, d.Annotations = d.App.Name, object{}
	d.fill(shapes[k])
	d.fill("common")
	return d.finish(i)
}

// fill executes a template, and adds the result to the shape.
func (d *draft) fill(name string) {
	var text bytes.Buffer
	before := d.Annotations
	err := templates.ExecuteTemplate(&text, name+".yaml", d)
	json, invalid := yaml.YAMLToJSON(text.Bytes())
	if err := errors.Join(err, invalid, utiljson.Unmarshal(json, &d.shape)); err != nil {
		panic(fmt.Sprintf("objects: bug: the template of %s: %v\n%s", name, err, &text))
	}
	if d.Annotations == nil { // a template that adds none has null
		d.Annotations = before
	}
}

// finish returns the complete object, with number i.
func (d *draft) finish(i int) object {
	const restarted = "kubectl.kubernetes.io/restartedAt"
	var others []writer
	if d.Scaled {
		others = append(others, writer{
			manager: "kube-controller-manager", operation: "Update", subresource: "scale", at: d.Settled, owns: []path{{"spec", "replicas"}},
		})
	}
	if d.Annotations[restarted] != nil {
		others = append(others, writer{
			manager: "kubectl-rollout", operation: "Update", at: d.Transition(), owns: []path{{"metadata", "annotations", restarted}},
		})
	}
	if d.App.Tool.Manager == "kubectl-client-side-apply" && !d.Controlled {
		d.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = d.lastApplied()
	}
	meta := object{
		"name": d.Name + "-" + uniqueSuffix(i), "namespace": d.App.Namespace, "uid": d.UID(),
		"resourceVersion": FormatVersion(Version(i)), "generation": d.Generation, "creationTimestamp": timestamp(d.Created),
		"labels": d.Labels,
	}
	if len(d.Annotations) > 0 {
		meta["annotations"] = d.Annotations
	}
	if d.Finalizers != nil {
		meta["finalizers"] = d.Finalizers
	}
	if d.Owner != nil {
		d.Owner["controller"], d.Owner["blockOwnerDeletion"] = true, true
		meta["ownerReferences"] = list{d.Owner}
	}
	obj := object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}
	for name, value := range map[string]object{"spec": d.Spec, "status": d.Status} {
		if value != nil {
			obj[name] = value
		}
	}
	meta["managedFields"] = managedFields(obj, d.writers(others))
	return obj
}

// lastApplied returns the annotation of kubectl with the last applied configuration.
func (d *draft) lastApplied() string {
	text, err := json.Marshal(object{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": d.Spec,
		"metadata": object{"annotations": object{}, "labels": d.Labels, "name": d.Name, "namespace": d.App.Namespace},
	})
	if err != nil {
		panic("objects: bug: a draft is not JSON: " + err.Error())
	}
	return string(text) + "\n"
}

// writers returns the writers of the object, including others.
func (d *draft) writers(others []writer) []writer {
	first := writer{
		manager: d.App.Tool.Manager, operation: d.App.Tool.Operation, at: d.Transition(),
		owns: []path{{"metadata", "annotations"}, {"metadata", "labels"}, {"spec"}},
	}
	links := writer{
		manager: d.Controller, operation: "Update", at: d.Transition(),
		owns: []path{{"metadata", "finalizers"}, {"metadata", "ownerReferences"}},
	}
	if d.Controlled { // the controller owns all fields
		first.manager, first.operation = links.manager, links.operation
		first.owns, links.owns = append(first.owns, links.owns...), nil
	}
	for _, other := range others {
		first.except = append(first.except, other.owns...)
	}
	status := writer{manager: d.Controller, operation: "Update", subresource: "status", at: d.Settled, owns: []path{{"status"}}}
	return append(append([]writer{first}, others...), links, status)
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
	status := map[bool]string{true: "True", false: "False"}
	c := object{"type": kind, "status": status[ok], "reason": reason, "message": message, "lastTransitionTime": timestamp(d.Transition())}
	if d.Chance(.7) {
		c["observedGeneration"] = d.Generation
	}
	text, err := json.Marshal(c)
	return string(text), err
}

package objects

import (
	"fmt"
	"time"
)

// application is like Argo CD's Application: what was deployed, and what became of it.
func application(d *draft) {
	repo := fmt.Sprintf("https://git.%s/%s/%s.git", d.app.domain, d.app.team, d.pick("deploy", "manifests", d.app.name))
	source := object{"repoURL": repo, "path": "apps/" + d.app.name + "/" + d.pick("prod", "staging", "base"), "targetRevision": d.pick("HEAD", "main", "v"+d.app.version)}
	if d.chance(.5) {
		source["helm"] = object{
			"valueFiles": list{"values.yaml", "values-" + d.pick("prod", "staging", "eu") + ".yaml"},
			"parameters": list{object{"name": "image.tag", "value": "v" + d.app.version}, object{"name": "replicaCount", "value": fmt.Sprint(d.between(1, 8))}},
		}
	}
	destination := object{"namespace": d.app.namespace, "server": "https://kubernetes.default.svc"}
	d.spec = object{"destination": destination, "project": d.app.partOf, "source": source}
	if d.chance(.7) {
		d.spec["syncPolicy"] = object{"automated": object{"prune": d.chance(.8), "selfHeal": true}, "syncOptions": list{"CreateNamespace=true", "ServerSideApply=true"}}
	}
	if d.chance(.4) {
		d.finalizers = list{"resources-finalizer.argocd.argoproj.io"}
	}
	d.controller = writer{manager: "argocd-application-controller"}
	d.applicationStatus(source, destination)
}

func (d *draft) applicationStatus(source, destination object) {
	revision := d.hex(40)
	health := d.pick("Healthy", "Healthy", "Healthy", "Healthy", "Progressing", "Degraded")
	var history, resources list
	for k := range d.between(1, 5) {
		at := d.before(d.settled, 90)
		history = append(history, object{
			"id": int64(k), "revision": d.hex(40), "deployStartedAt": timestamp(at), "deployedAt": timestamp(at.Add(time.Duration(d.between(1, 90)) * time.Second)),
			"initiatedBy": object{"automated": true}, "source": source,
		})
	}
	for _, kind := range []string{"Deployment", "Service", "ConfigMap", "ServiceAccount", "Ingress", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy"}[:d.between(2, 8)] {
		r := object{"kind": kind, "name": d.app.name, "namespace": d.app.namespace, "status": d.pick("Synced", "Synced", "Synced", "OutOfSync"), "version": "v1"}
		if kind == "Deployment" {
			r["group"], r["health"] = "apps", object{"status": health}
		}
		resources = append(resources, r)
	}
	d.status = object{
		"controllerNamespace": "argocd", "health": object{"status": health, "lastTransitionTime": timestamp(d.transition())},
		"history": history, "reconciledAt": timestamp(d.settled), "resources": resources, "sourceType": d.pick("Helm", "Kustomize"),
		"operationState": object{
			"phase": "Succeeded", "message": "successfully synced (all tasks run)", "startedAt": timestamp(d.transition()), "finishedAt": timestamp(d.settled),
			"operation": object{"initiatedBy": object{"automated": true}, "retry": object{"limit": int64(5)}, "sync": object{"revision": revision}},
		},
		"summary": object{"images": list{d.app.image + ":v" + d.app.version}},
		"sync":    object{"comparedTo": object{"destination": destination, "source": source}, "revision": revision, "status": d.pick("Synced", "Synced", "Synced", "OutOfSync")},
	}
}

package objects

import (
	"fmt"
	"strings"
)

// rollout is like Argo's Rollout or a Deployment: a pod template and its state.
func rollout(d *draft) {
	replicas := d.number(1, 12)
	pods := object{"app.kubernetes.io/name": d.app.name, "app.kubernetes.io/instance": d.app.name}
	d.spec = object{
		"replicas": replicas, "revisionHistoryLimit": []any{int64(3), int64(5), int64(10)}[d.IntN(3)],
		"selector": object{"matchLabels": pods},
		"template": object{
			"metadata": object{
				"labels":      object{"app.kubernetes.io/name": d.app.name, "app.kubernetes.io/instance": d.app.name, "version": d.app.version},
				"annotations": object{"checksum/config": d.hex(64), "prometheus.io/scrape": "true"},
			},
			"spec": d.podSpec(),
		},
	}
	if d.chance(.7) {
		d.spec["strategy"] = d.strategy()
	}
	if d.chance(.3) {
		d.others = append(d.others, writer{
			manager: "kube-controller-manager", operation: "Update", subresource: "scale", at: d.settled, owns: []path{{"spec", "replicas"}},
		})
	}
	d.annotations["rollout.argoproj.io/revision"] = fmt.Sprint(d.between(1, 90))
	d.controller = writer{manager: "rollouts-controller"}
	d.rolloutStatus(replicas)
}

func (d *draft) podSpec() object {
	containers := list{d.container(d.app.name, d.image())}
	if d.chance(.25) {
		containers = append(containers, object{
			"name": "proxy", "image": "docker.io/envoyproxy/envoy:v1.3" + fmt.Sprint(d.IntN(9)) + ".0", "imagePullPolicy": "IfNotPresent",
			"args":      list{"-c", "/etc/envoy/envoy.yaml", "--concurrency", fmt.Sprint(d.between(1, 4))},
			"ports":     list{object{"name": "admin", "containerPort": int64(9901), "protocol": "TCP"}},
			"resources": object{"requests": object{"cpu": "50m", "memory": "64Mi"}},
		})
	}
	pod := object{
		"containers": containers, "serviceAccountName": d.app.name, "terminationGracePeriodSeconds": []any{int64(30), int64(60), int64(120)}[d.IntN(3)],
		"securityContext": object{"runAsNonRoot": true, "fsGroup": d.number(1000, 1003)},
	}
	if d.chance(.5) {
		pod["nodeSelector"] = object{"kubernetes.io/arch": d.pick("amd64", "amd64", "arm64"), "node.example.com/pool": d.pick("general", "general", "memory", "spot")}
	}
	if d.chance(.25) {
		pod["tolerations"] = list{object{"key": "node.example.com/pool", "operator": "Equal", "value": "spot", "effect": "NoSchedule"}}
	}
	if d.chance(.6) {
		pod["volumes"] = list{
			object{"name": "config", "configMap": object{"name": d.app.name + "-" + d.hex(10), "defaultMode": int64(420)}},
			object{"name": "tmp", "emptyDir": object{}},
		}
	}
	return pod
}

func (d *draft) container(name, image string) object {
	port := []any{int64(8080), int64(3000), int64(8443), int64(9000)}[d.IntN(4)]
	c := object{
		"name": name, "image": image, "imagePullPolicy": d.pick("IfNotPresent", "IfNotPresent", "Always"),
		"ports": list{
			object{"name": "http", "containerPort": port, "protocol": "TCP"},
			object{"name": "metrics", "containerPort": int64(9090), "protocol": "TCP"},
		},
		"env": d.environment(),
		"resources": object{
			"requests": object{"cpu": d.pick("50m", "100m", "250m", "500m", "1"), "memory": d.pick("128Mi", "256Mi", "512Mi", "1Gi")},
			"limits":   object{"memory": d.pick("256Mi", "512Mi", "1Gi", "2Gi", "4Gi")},
		},
		"readinessProbe": object{
			"httpGet":       object{"path": d.pick("/ready", "/healthz", "/actuator/health/readiness"), "port": "http", "scheme": "HTTP"},
			"periodSeconds": d.number(5, 15), "failureThreshold": int64(3), "timeoutSeconds": d.number(1, 5),
		},
	}
	if d.chance(.6) {
		c["livenessProbe"] = object{"httpGet": object{"path": "/live", "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": d.number(5, 60)}
	}
	if d.chance(.5) {
		c["volumeMounts"] = list{
			object{"name": "config", "mountPath": "/etc/" + d.app.name, "readOnly": true},
			object{"name": "tmp", "mountPath": "/tmp"},
		}
	}
	return c
}

// environment is drawn from what the application and its neighbours set.
func (d *draft) environment() list {
	choices := []object{
		{"name": "LOG_LEVEL", "value": d.pick("info", "info", "debug", "warn")},
		{"name": "REGION", "value": "eu-west-1"},
		{"name": "DATABASE_URL", "valueFrom": object{"secretKeyRef": object{"name": d.app.name + "-db", "key": "url"}}},
		{"name": "KAFKA_BROKERS", "value": "kafka-0.kafka.data:9092,kafka-1.kafka.data:9092,kafka-2.kafka.data:9092"},
		{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel-collector.observability:4317"},
		{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": fmt.Sprintf("service.name=%s,service.version=%s,team=%s", d.app.name, d.app.version, d.app.team)},
		{"name": "POD_IP", "valueFrom": object{"fieldRef": object{"apiVersion": "v1", "fieldPath": "status.podIP"}}},
		{"name": "GOMEMLIMIT", "valueFrom": object{"resourceFieldRef": object{"resource": "limits.memory", "divisor": "0"}}},
		{"name": "FEATURE_FLAGS", "value": fmt.Sprintf("%s=on,%s=off", d.pick(subjects...), d.pick(subjects...))},
		{"name": "CACHE_TTL", "value": fmt.Sprintf("%ds", d.between(1, 60)*10)},
		{"name": "JAVA_TOOL_OPTIONS", "value": fmt.Sprintf("-XX:MaxRAMPercentage=%d -XX:+ExitOnOutOfMemoryError", d.between(10, 16)*5)},
	}
	var env list
	for _, k := range d.Perm(len(choices))[:d.between(2, 7)] {
		env = append(env, choices[k])
	}
	for k := range d.IntN(5) {
		peer, role := d.pick(subjects...), d.pick(roles...)
		env = append(env, object{
			"name":  fmt.Sprintf("%s_%s_%s", strings.ToUpper(peer), strings.ToUpper(role), []string{"URL", "HOST", "TIMEOUT_MS", "TOPIC", "BUCKET"}[k]),
			"value": []string{fmt.Sprintf("http://%s-%s.%s:%d", peer, role, d.app.namespace, d.between(8080, 8090)), peer + "." + d.app.domain, fmt.Sprint(d.between(1, 400) * 25), peer + "." + role + ".v" + fmt.Sprint(d.between(1, 5)), fmt.Sprintf("%s-%s-%s", d.app.team, peer, d.hex(8))}[k],
		})
	}
	return env
}

func (d *draft) strategy() object {
	if d.chance(.4) {
		return object{"rollingUpdate": object{"maxSurge": d.pick("25%", "1", "50%"), "maxUnavailable": d.pick("0", "25%")}, "type": "RollingUpdate"}
	}
	var steps list
	for k := range d.between(2, 4) {
		steps = append(steps, object{"setWeight": int64(20 * (k + 1))}, object{"pause": object{"duration": fmt.Sprintf("%dm", d.between(1, 6)*5)}})
	}
	return object{"canary": object{"canaryService": d.app.name + "-canary", "stableService": d.app.name, "steps": steps}}
}

func (d *draft) rolloutStatus(replicas int64) {
	hash := d.hex(9)
	d.status = object{
		"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "updatedReplicas": replicas,
		"observedGeneration": d.version, "currentPodHash": hash, "stableRS": hash, "phase": "Healthy",
		"conditions": list{
			d.condition("Available", true, "AvailableReason", "Rollout has minimum availability"),
			d.condition("Progressing", true, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet \"%s-%s\" has successfully progressed.", d.app.name, hash)),
			d.condition("Healthy", true, "RolloutHealthy", "Rollout is healthy"),
		},
	}
	if d.chance(.1) {
		ready := d.Int64N(replicas)
		d.status["readyReplicas"], d.status["availableReplicas"], d.status["unavailableReplicas"] = ready, ready, replicas-ready
		d.status["phase"], d.status["stableRS"] = "Degraded", d.hex(9)
		d.status["message"] = fmt.Sprintf("ProgressDeadlineExceeded: ReplicaSet \"%s-%s\" has timed out progressing.", d.app.name, hash)
		d.status["conditions"].(list)[2] = d.condition("Healthy", false, "RolloutHealthy", "Rollout is not healthy")
	}
}

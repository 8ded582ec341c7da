package objects

import "fmt"

// endpoint is like CiliumEndpoint: a pod's place in the network, with no spec.
func endpoint(d *draft) {
	hash := d.app.ownerUID[:8] + d.app.uid[:1]
	d.name = d.app.name + "-" + hash
	d.deployed = false
	d.version = 1
	d.labels["pod-template-hash"] = hash
	if d.chance(.5) {
		d.labels["security.istio.io/tlsMode"] = "istio"
	}
	d.ownedBy("v1", "Pod", d.name+"-"+d.suffix(), d.uid())
	d.controller = writer{manager: "cilium-agent"}

	identity := d.number(2000, 65000)
	labels := list{
		"k8s:app.kubernetes.io/instance=" + d.app.name, "k8s:app.kubernetes.io/name=" + d.app.name,
		"k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name=" + d.app.namespace,
		"k8s:io.cilium.k8s.namespace.labels.team=" + d.app.team, "k8s:io.cilium.k8s.policy.cluster=default",
		"k8s:io.cilium.k8s.policy.serviceaccount=" + d.app.name, "k8s:io.kubernetes.pod.namespace=" + d.app.namespace,
	}
	address := object{"ipv4": d.ip()}
	if d.chance(.15) {
		address["ipv6"] = fmt.Sprintf("fd00:10:%s::%s", d.hex(3), d.hex(4))
	}
	d.status = object{
		"encryption": object{"key": d.number(0, 4)},
		"external-identifiers": object{
			"cni-attachment-id": d.hex(64) + ":eth0", "container-id": d.hex(64),
			"k8s-namespace": d.app.namespace, "k8s-pod-name": d.name, "pod-name": d.app.namespace + "/" + d.name,
		},
		"id": d.number(1, 4095), "identity": object{"id": identity, "labels": labels},
		"networking": object{"addressing": list{address}, "node": d.ip()},
		"policy":     d.networkPolicy(),
		"state":      d.pick("ready", "ready", "ready", "ready", "regenerating", "waiting-for-identity"),
	}
	if d.chance(.7) {
		d.status["named-ports"] = list{
			object{"name": "http", "port": d.number(8080, 8083), "protocol": "TCP"},
			object{"name": "metrics", "port": int64(9090), "protocol": "TCP"},
		}
	}
	if d.chance(.3) {
		d.status["health"] = object{"bpf": "OK", "connected": true, "overallHealth": "OK", "policy": "OK"}
	}
}

func (d *draft) networkPolicy() object {
	side := func() object {
		if d.chance(.5) {
			return object{"enforcing": false, "state": "<status disabled>"}
		}
		var allowed list
		for range d.between(1, 5) {
			allowed = append(allowed, object{"identity": d.number(1, 300), "dest-port": []any{int64(0), int64(53), int64(443), int64(8080)}[d.IntN(4)], "protocol": int64(6)})
		}
		return object{"enforcing": true, "state": "<status disabled>", "allowed": allowed}
	}
	return object{"egress": side(), "ingress": side()}
}

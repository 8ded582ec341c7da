package objects

import (
	"fmt"
	"strings"
)

// machine is like Cluster API's Machine.
func machine(d *draft) {
	cluster := d.pick("prod-eu-1", "prod-eu-2", "staging-eu-1")
	set := fmt.Sprintf("%s-%s-%s", cluster, d.pick("general", "memory", "spot", "gpu"), d.app.uid[:5])
	node := theWorld.node(d.dice)
	ip := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(node, ".eu-west-1.compute.internal"), "ip-"), "-", ".")
	d.name = set
	d.deployed = false
	d.labels["cluster.x-k8s.io/cluster-name"] = cluster
	d.labels["cluster.x-k8s.io/set-name"] = set
	d.labels["machine-template-hash"] = d.app.uid[:5]
	d.finalizers = list{"machine.cluster.x-k8s.io"}
	d.ownedBy("cluster.x-k8s.io/v1beta1", "MachineSet", set, d.app.ownerUID)
	d.controller = writer{manager: "capi-machineset"}

	zone := d.pick("eu-west-1a", "eu-west-1b", "eu-west-1c")
	d.spec = object{
		"bootstrap": object{
			"configRef":      object{"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": set + "-" + d.suffix(), "namespace": d.app.namespace, "uid": d.uid()},
			"dataSecretName": set + "-" + d.suffix(),
		},
		"clusterName": cluster, "failureDomain": zone, "nodeDrainTimeout": d.pick("5m0s", "10m0s", "1h0m0s"),
		"infrastructureRef": object{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine", "name": set + "-" + d.suffix(), "namespace": d.app.namespace, "uid": d.uid()},
		"providerID":        fmt.Sprintf("aws:///%s/i-%s", zone, d.hex(17)),
		"version":           d.pick("v1.34.2", "v1.35.1", "v1.35.1", "v1.36.0"),
	}
	d.machineStatus(node, ip)
}

func (d *draft) machineStatus(node, ip string) {
	d.status = object{
		"addresses":      list{object{"address": ip, "type": "InternalIP"}, object{"address": node, "type": "InternalDNS"}, object{"address": node, "type": "Hostname"}},
		"bootstrapReady": true, "infrastructureReady": true, "lastUpdated": timestamp(d.settled), "observedGeneration": d.version, "phase": "Running",
		"certificatesExpiryDate": timestamp(d.created.AddDate(1, 0, 0)),
		"nodeRef":                object{"apiVersion": "v1", "kind": "Node", "name": node, "uid": d.uid()},
		"nodeInfo": object{
			"architecture": d.pick("amd64", "arm64"), "bootID": d.uid(), "containerRuntimeVersion": "containerd://2.1." + fmt.Sprint(d.IntN(6)),
			"kernelVersion": fmt.Sprintf("6.12.%d-aws", d.between(10, 60)), "kubeletVersion": d.pick("v1.34.2", "v1.35.1"), "machineID": d.hex(32), "systemUUID": d.uid(),
			"operatingSystem": "linux", "osImage": d.pick("Flatcar Container Linux by Kinvolk 4230.2.1 (Oklo)", "Ubuntu 24.04.2 LTS", "Bottlerocket OS 1.36.0 (aws-k8s-1.35)"),
		},
		"conditions": list{
			d.condition("Ready", true, "Ready", ""), d.condition("BootstrapReady", true, "BootstrapReady", ""),
			d.condition("InfrastructureReady", true, "Provisioned", ""),
			d.condition("NodeHealthy", d.chance(.95), "NodeConditions", fmt.Sprintf("Condition Ready on node %s is reporting status %s", node, d.pick("True", "True", "Unknown for more than 2m0s"))),
		},
	}
}

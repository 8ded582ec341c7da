package objects

import "fmt"

// composition is like Crossplane's Composition: long, with much that is nearly the same.
func composition(d *draft) {
	d.name = d.pick("xpostgres", "xbucket", "xredis", "xnetwork", "xqueue") + "-" + d.pick("aws", "gcp", "azure")
	d.labels["provider"] = d.pick("aws", "gcp", "azure")
	var resources list
	for k := range d.between(3, 9) {
		resources = append(resources, d.composedResource(k))
	}
	d.spec = object{
		"compositeTypeRef": object{"apiVersion": "platform.example.com/v1alpha1", "kind": "X" + camel(d.pick(subjects...))},
		"mode":             "Resources",
		"publishConnectionDetailsWithStoreConfigRef": object{"name": "default"},
		"resources":                         resources,
		"writeConnectionSecretsToNamespace": "crossplane-system",
	}
	d.controller = writer{manager: "crossplane"}
	if d.chance(.5) {
		d.deployed = false
		d.ownedBy("pkg.crossplane.io/v1", "ConfigurationRevision", "configuration-"+d.app.partOf+"-"+d.app.uid[:12], d.app.uid)
	}
}

func (d *draft) composedResource(k int) object {
	kind := d.pick("Instance", "Bucket", "Role", "Policy", "SecurityGroup", "SecurityGroupRule", "ParameterGroup", "SubnetGroup")
	var patches list
	for range d.between(2, 7) {
		field := d.pick("region", "size", "engineVersion", "storageGB", "name", "deletionPolicy", "subnetIds", "tags.owner", "backup.retentionDays")
		patch := object{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.parameters." + field, "toFieldPath": "spec.forProvider." + field}
		switch d.IntN(4) {
		case 0:
			patch["transforms"] = list{object{"type": "string", "string": object{"type": "Format", "fmt": d.app.team + "-%s-" + d.pick("prod", "dev", "eu")}}}
		case 1:
			patch["transforms"] = list{object{"type": "map", "map": object{"small": d.pick("db.t4g.small", "db.t3.small"), "medium": "db.m6g.large", "large": d.pick("db.r6g.xlarge", "db.r6g.2xlarge")}}}
		case 2:
			patch["policy"] = object{"fromFieldPath": d.pick("Required", "Optional")}
		}
		patches = append(patches, patch)
	}
	return object{
		"name": fmt.Sprintf("%s-%d", kind, k),
		"base": object{
			"apiVersion": d.pick("rds", "s3", "iam", "ec2") + ".aws.upbound.io/v1beta1", "kind": kind,
			"spec": object{
				"deletionPolicy":    d.pick("Delete", "Orphan"),
				"forProvider":       object{"region": d.pick("eu-west-1", "eu-central-1", "us-east-1"), "tags": object{"team": d.app.team, "managed": "crossplane"}},
				"providerConfigRef": object{"name": d.app.team},
			},
		},
		"patches":         patches,
		"readinessChecks": list{object{"type": "MatchCondition", "matchCondition": object{"type": "Ready", "status": "True"}}},
	}
}

package objects

import "fmt"

// secret is like the External Secrets operator's ExternalSecret.
func secret(d *draft) {
	d.name = d.app.name + "-" + d.pick("db", "api-keys", "oauth", "kafka", "s3", "smtp")
	store := d.pick("vault", "vault", "aws-secrets-manager", "gcp-secret-manager")
	environment := d.pick("prod", "prod", "staging")
	var data list
	for range d.between(1, 6) {
		key := d.pick("username", "password", "url", "token", "client-id", "client-secret", "access-key", "ca.crt")
		remote := object{"key": fmt.Sprintf("%s/%s/%s", environment, d.app.team, d.app.name), "property": key}
		if d.chance(.5) {
			remote["conversionStrategy"], remote["decodingStrategy"], remote["metadataPolicy"] = "Default", "None", "None"
		}
		if d.chance(.2) {
			remote["version"] = fmt.Sprint(d.between(1, 30))
		}
		data = append(data, object{"secretKey": key, "remoteRef": remote})
	}
	target := object{"name": d.name, "creationPolicy": "Owner", "deletionPolicy": "Retain"}
	if d.chance(.3) {
		target["template"] = object{
			"engineVersion": "v2", "mergePolicy": "Replace",
			"data": object{"dsn": fmt.Sprintf("postgresql://{{ .username }}:{{ .password }}@%s-db.%s.svc:5432/%s?sslmode=%s", d.app.name, d.app.namespace, d.app.name, d.pick("require", "verify-full"))},
		}
	}
	d.spec = object{
		"data": data, "refreshInterval": d.pick("1h", "1h", "15m", "24h0m0s"), "target": target,
		"secretStoreRef": object{"kind": "ClusterSecretStore", "name": store},
	}
	d.controller = writer{manager: "external-secrets"}
	d.secretStatus(store)
}

func (d *draft) secretStatus(store string) {
	d.status = object{
		"binding":               object{"name": d.name},
		"refreshTime":           timestamp(d.before(now, 1)),
		"syncedResourceVersion": fmt.Sprintf("%d-%s", d.version, d.hex(56)),
		"conditions":            list{d.condition("Ready", true, "SecretSynced", d.pick("secret synced", "Secret was synced"))},
	}
	if d.chance(.06) {
		d.status["conditions"] = list{d.condition("Ready", false, "SecretSyncedError", fmt.Sprintf("error processing spec.data[%d] (key: %s/%s), err: cannot read secret data from %s: "+
			"Error making API request. URL: GET https://vault.%s/v1/kv/data/%s. Code: %d. Errors: * %s", d.IntN(5), d.app.team, d.app.name, store, d.app.domain, d.app.team,
			d.between(403, 404), d.pick("permission denied", "no handler for route", "context deadline exceeded")))}
	}
}

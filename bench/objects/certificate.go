package objects

import (
	"fmt"
	"time"
)

// certificate is like cert-manager's Certificate.
func certificate(d *draft) {
	host := d.app.name + "." + d.app.domain
	names := list{host}
	for k := range d.IntN(4) {
		names = append(names, fmt.Sprintf("%s.%s", d.pick("www", "api", "admin", "m", "static", fmt.Sprintf("r%d", k))+"-"+d.app.name, d.app.domain))
	}
	d.name = d.app.name + "-tls"
	issuer := d.pick("letsencrypt-prod", "letsencrypt-prod", "letsencrypt-staging", "internal-ca", "vault-issuer")
	d.spec = object{
		"dnsNames": names, "secretName": d.name,
		"issuerRef": object{"group": "cert-manager.io", "kind": d.pick("ClusterIssuer", "ClusterIssuer", "Issuer"), "name": issuer},
		"usages":    list{"digital signature", "key encipherment"},
	}
	if d.chance(.4) {
		d.spec["privateKey"] = object{"algorithm": d.pick("ECDSA", "RSA"), "rotationPolicy": "Always", "size": []any{int64(256), int64(384), int64(2048), int64(4096)}[d.IntN(4)]}
	}
	if d.chance(.3) {
		d.spec["duration"], d.spec["renewBefore"] = d.pick("2160h0m0s", "1440h0m0s", "24h0m0s"), d.pick("360h0m0s", "720h0m0s", "8h0m0s")
	}
	if d.chance(.25) {
		d.spec["commonName"] = host
		d.spec["subject"] = object{"organizations": list{"Example Ltd"}, "organizationalUnits": list{d.app.team}}
	}
	d.controller = writer{manager: "cert-manager-certificates-readiness"}
	if d.chance(.6) {
		d.deployed = false
		d.controller.manager = "cert-manager-ingress-shim"
		d.ownedBy("networking.k8s.io/v1", "Ingress", d.app.name, d.app.uid)
	}
	d.certificateStatus(issuer)
}

func (d *draft) certificateStatus(issuer string) {
	from := d.settled.Add(-time.Hour)
	until := from.Add(90 * 24 * time.Hour)
	if d.chance(.92) {
		d.status = object{
			"conditions": list{d.condition("Ready", true, "Ready", "Certificate is up to date and has not expired")},
			"notBefore":  timestamp(from), "notAfter": timestamp(until), "renewalTime": timestamp(until.Add(-30 * 24 * time.Hour)),
			"revision": d.number(1, 14),
		}
		return
	}
	order := fmt.Sprintf("%s-%d-%d", d.name, d.between(1, 9), d.Uint32())
	d.status = object{
		"failedIssuanceAttempts":   d.number(1, 12),
		"lastFailureTime":          timestamp(d.settled),
		"nextPrivateKeySecretName": d.name + "-" + d.suffix(),
		"conditions": list{
			d.condition("Ready", false, "DoesNotExist", "Issuing certificate as Secret does not exist"),
			d.condition("Issuing", false, "Failed", fmt.Sprintf("The certificate request has failed to complete and will be retried: Failed to wait for order resource %q "+
				"to become ready: order is in \"invalid\" state: acme: authorization error for %s.%s: 403 urn:ietf:params:acme:error:unauthorized: %s: Invalid response from "+
				"http://%s/.well-known/acme-challenge/%s: %d (%s)", order, d.app.name, d.app.domain, d.ip(), d.app.domain, d.hex(43), d.between(403, 404), issuer)),
		},
	}
}

package objects

import "fmt"

// route is like Gateway API's HTTPRoute.
func route(d *draft) {
	gateway := d.pick("public", "internal", "partner") + "-gateway"
	parents := list{object{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway, "namespace": "gateway-system"}}
	if d.chance(.2) {
		parents = append(parents, object{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "mesh-gateway", "namespace": "istio-system", "sectionName": "https"})
	}
	hosts := list{d.app.name + "." + d.app.domain}
	for k := range d.IntN(3) {
		hosts = append(hosts, fmt.Sprintf("%s-%d.%s", d.app.name, k+1, d.app.domain))
	}
	var rules list
	for range d.between(1, 5) {
		rules = append(rules, d.routeRule())
	}
	d.spec = object{"hostnames": hosts, "parentRefs": parents, "rules": rules}
	d.controller = writer{manager: d.pick("envoy-gateway", "istiod", "cilium-operator-generic")}

	var statuses list
	for _, parent := range parents {
		conditions := list{
			d.condition("Accepted", true, "Accepted", "Route is accepted"),
			d.condition("ResolvedRefs", true, "ResolvedRefs", "Resolved all the Object references for the Route"),
		}
		if d.chance(.06) {
			conditions[1] = d.condition("ResolvedRefs", false, "BackendNotFound", fmt.Sprintf("Failed to process route rule %d backendRef 0: service %s/%s not found.", d.IntN(4), d.app.namespace, d.app.name))
		}
		statuses = append(statuses, object{"conditions": conditions, "controllerName": "gateway.example.com/" + d.controller.manager, "parentRef": parent})
	}
	d.status = object{"parents": statuses}
}

func (d *draft) routeRule() object {
	prefix := "/" + d.pick("", "api/v1/", "api/v2/", "internal/", "admin/") + d.pick(subjects...)
	match := object{"path": object{"type": d.pick("PathPrefix", "PathPrefix", "Exact"), "value": prefix}}
	if d.chance(.25) {
		match["method"] = d.pick("GET", "POST", "PUT", "DELETE")
	}
	if d.chance(.2) {
		match["headers"] = list{object{"name": d.pick("x-canary", "x-tenant", "x-api-version"), "type": "Exact", "value": d.pick("true", "always", "blue", "v2", d.hex(6))}}
	}
	backends := list{object{"group": "", "kind": "Service", "name": d.app.name, "port": []any{int64(80), int64(8080), int64(8443), int64(3000)}[d.IntN(4)], "weight": int64(1)}}
	if d.chance(.2) {
		share := d.number(1, 50)
		backends[0].(object)["weight"] = 100 - share
		backends = append(backends, object{"group": "", "kind": "Service", "name": d.app.name + "-canary", "port": int64(8080), "weight": share})
	}
	rule := object{"matches": list{match}, "backendRefs": backends}
	if d.chance(.35) {
		rule["timeouts"] = object{"request": fmt.Sprintf("%ds", d.between(1, 12)*5)}
	}
	if d.chance(.3) {
		rule["filters"] = list{object{
			"type":                  "RequestHeaderModifier",
			"requestHeaderModifier": object{"set": list{object{"name": "X-Forwarded-Prefix", "value": prefix}}, "remove": list{"X-Debug"}},
		}}
	}
	return rule
}

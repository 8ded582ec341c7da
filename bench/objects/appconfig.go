package objects

import (
	"fmt"
	"strings"
)

// appConfig is like a ConfigMap or a chart's values: text that a program reads.
func appConfig(d *draft) {
	d.name = d.app.name + "-config"
	data := object{"application.yaml": d.settings()}
	if d.chance(.5) {
		data["logback.xml"] = d.logging()
	}
	if d.chance(.4) {
		data["routes.json"] = d.routesJSON()
	}
	if d.chance(.3) {
		data["README"] = d.notes()
	}
	d.spec = object{"data": data, "reload": d.pick("restart", "signal", "none")}
	if d.chance(.5) {
		d.spec["immutable"] = true
	}
	d.annotations["checksum/config"] = d.hex(64)
	d.controller = writer{manager: "config-operator"}
	if d.chance(.6) {
		d.status = object{
			"observedGeneration": d.version, "hash": d.hex(40), "renderedAt": timestamp(d.settled),
			"conditions": list{d.condition("Synced", true, "Rendered", fmt.Sprintf("rendered %d keys for %d consumers", len(data), d.between(1, 9)))},
		}
	}
}

func (d *draft) settings() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server:\n  port: %d\n  shutdown: graceful\nspring:\n  application:\n    name: %s\n", d.between(8080, 8090), d.app.name)
	if d.chance(.7) {
		fmt.Fprintf(&b, "  datasource:\n    url: jdbc:postgresql://%s-db.%s.svc:5432/%s\n    hikari:\n      maximum-pool-size: %d\n      connection-timeout: %d\n",
			d.app.name, d.app.namespace, strings.ReplaceAll(d.app.name, "-", "_"), d.between(2, 40), d.between(1, 30)*1000)
	}
	for range d.between(2, 9) {
		fmt.Fprintf(&b, "%s:\n  %s:\n    enabled: %t\n    timeout: %dms\n    url: https://%s-%s.%s/%s\n",
			d.pick(subjects...), d.pick(roles...), d.chance(.7), d.between(1, 80)*50, d.pick(subjects...), d.pick(roles...), d.app.domain, d.pick("v1", "v2", "internal", "graphql"))
	}
	fmt.Fprintf(&b, "management:\n  endpoints:\n    web:\n      exposure:\n        include: health,info,prometheus\n  metrics:\n    tags:\n      application: %s\n      team: %s\n", d.app.name, d.app.team)
	return b.String()
}

func (d *draft) logging() string {
	var b strings.Builder
	b.WriteString("<configuration>\n  <appender name=\"STDOUT\" class=\"ch.qos.logback.core.ConsoleAppender\">\n    <encoder class=\"net.logstash.logback.encoder.LogstashEncoder\"/>\n  </appender>\n")
	for range d.between(1, 5) {
		fmt.Fprintf(&b, "  <logger name=\"com.example.%s.%s\" level=\"%s\"/>\n", d.pick(subjects...), d.pick(roles...), d.pick("DEBUG", "INFO", "WARN", "ERROR"))
	}
	b.WriteString("  <root level=\"INFO\">\n    <appender-ref ref=\"STDOUT\"/>\n  </root>\n</configuration>\n")
	return b.String()
}

func (d *draft) routesJSON() string {
	var routes []string
	for range d.between(2, 8) {
		routes = append(routes, fmt.Sprintf(`    {"path": "/%s/%s", "service": "%s-%s", "rateLimit": %d, "auth": %t}`,
			d.pick(subjects...), d.pick("list", "items", "{id}", "search", "export"), d.pick(subjects...), d.pick(roles...), d.between(1, 50)*20, d.chance(.8)))
	}
	return "{\n  \"routes\": [\n" + strings.Join(routes, ",\n") + "\n  ]\n}\n"
}

func (d *draft) notes() string {
	return fmt.Sprintf("Owned by %s. Raised the %s limit to %d on %s after incident INC-%d; ask in #%s before lowering it again.\n",
		d.app.team, d.pick("connection", "memory", "rate", "retry", "batch"), d.between(2, 99)*10, d.transition().Format("2 January 2006"), d.between(1000, 9999), d.app.team)
}

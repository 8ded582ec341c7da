package objects

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// alert is the text of an alerting rule; %s is the application and its namespace.
type alert struct{ name, expr, summary, description string }

var alerts = []alert{
	{
		"HighErrorRate",
		"sum(rate(http_server_requests_total{namespace=\"%[2]s\",app=\"%[1]s\",code=~\"5..\"}[5m]))\n  /\nsum(rate(http_server_requests_total{namespace=\"%[2]s\",app=\"%[1]s\"}[5m])) > %[3]s",
		"%[1]s answers too many requests with errors",
		"More than {{ $value | humanizePercentage }} of the requests to {{ $labels.app }} failed for ten minutes.",
	},
	{
		"LatencyTooHigh",
		"histogram_quantile(0.99, sum by (le) (rate(http_request_duration_seconds_bucket{namespace=\"%[2]s\", app=\"%[1]s\"}[10m]))) > %[3]s",
		"99th percentile of %[1]s is slow",
		"The slowest hundredth of requests takes {{ $value | humanizeDuration }}. See the dashboard for the slow handlers.",
	},
	{
		"PodRestarts",
		"increase(kube_pod_container_status_restarts_total{namespace=\"%[2]s\",pod=~\"%[1]s-.*\"}[1h]) > %[3]s",
		"{{ $labels.pod }} restarts again and again",
		"Container {{ $labels.container }} of {{ $labels.pod }} was restarted {{ $value }} times within an hour.",
	},
	{
		"ConsumerLag",
		"max by (topic, group) (kafka_consumergroup_lag{group=\"%[1]s\"}) > %[3]s and\n  deriv(kafka_consumergroup_lag{group=\"%[1]s\"}[15m]) > 0",
		"%[1]s does not keep up with its topic",
		"Group {{ $labels.group }} is {{ $value }} messages behind on {{ $labels.topic }}, and falls further behind.",
	},
	{
		"MemoryNearLimit",
		"max by (pod) (container_memory_working_set_bytes{namespace=\"%[2]s\", pod=~\"%[1]s-.+\", container!=\"\"}\n  / on (namespace, pod, container) kube_pod_container_resource_limits{resource=\"memory\"}) > %[3]s",
		"{{ $labels.pod }} is about to be killed for its memory",
		"{{ $labels.pod }} uses {{ $value | humanizePercentage }} of the memory that it may have.",
	},
	{
		"CertificateExpires",
		"min by (name) (certmanager_certificate_expiration_timestamp_seconds{exported_namespace=\"%[2]s\"}) - time() < %[3]s * 86400",
		"Certificate {{ $labels.name }} is about to expire",
		"Renewal should have happened; look at the events of the Certificate and of its orders.",
	},
	{
		"VolumeFillsUp",
		"predict_linear(kubelet_volume_stats_available_bytes{namespace=\"%[2]s\",persistentvolumeclaim=~\".*%[1]s.*\"}[6h], %[3]s * 3600) < 0",
		"{{ $labels.persistentvolumeclaim }} will be full",
		"At the pace of the last six hours the volume is going to be full within a day.",
	},
}

// AlertGroups returns the groups of a PrometheusRule, as JSON.
func (d *draft) AlertGroups() (string, error) {
	var groups list
	for g := range d.Between(1, 3) {
		var entries list
		for _, k := range d.Some(len(alerts), 1, 4) {
			entries = append(entries, d.alertRule(alerts[k]))
		}
		for range d.IntN(3) {
			entries = append(entries, d.recordingRule())
		}
		group := object{"name": fmt.Sprintf("%s.%s", d.App.Name, d.Pick("availability", "latency", "saturation", "slo", fmt.Sprint("rules-", g))), "rules": entries}
		if d.Chance(.4) {
			group["interval"] = d.Pick("15s", "30s", "1m")
		}
		groups = append(groups, group)
	}
	text, err := json.Marshal(groups)
	return string(text), err
}

func (d *draft) alertRule(a alert) object {
	threshold := strconv.FormatFloat(float64(d.Between(1, 200))/[]float64{1, 10, 100, 1000}[d.IntN(4)], 'f', -1, 64)
	fill := func(text string) string {
		// The verbs are numbered: one that a text does not use is no mistake.
		return fmt.Sprintf(text+"%[4]s", d.App.Name, d.App.Namespace, threshold, "")
	}
	return object{
		"alert": fmt.Sprintf("%s%s", camel(d.App.Name), a.name), "expr": fill(a.expr), "for": d.Pick("2m", "5m", "10m", "15m", "1h"),
		"labels": object{"severity": d.Pick("warning", "warning", "critical", "info"), "team": d.App.Team},
		"annotations": object{
			"summary": fill(a.summary), "description": a.description,
			"runbook_url": fmt.Sprintf("https://runbooks.%s/%s/%s", d.App.Domain, d.App.Team, a.name),
		},
	}
}

func (d *draft) recordingRule() object {
	window := d.Pick("1m", "5m", "30m", "6h")
	metric := fmt.Sprintf("%s_%s_%s", d.Subject(), d.Pick("requests", "events", "jobs", "messages", "rows", "retries", "cache_misses"), d.Pick("total", "seconds_count", "bytes_total"))
	by := d.Pick("code", "topic", "handler", "tenant", "queue", "instance")
	return object{
		"record": fmt.Sprintf("%s:%s:rate%s", by, metric, window),
		"expr":   fmt.Sprintf("sum by (app, %s) (rate(%s{app=%q, namespace=%q}[%s]))", by, metric, d.App.Name, d.App.Namespace, window),
		"labels": object{"app": d.App.Name, "objective": fmt.Sprintf("9%d.%d", d.Between(5, 9), d.IntN(10))},
	}
}

// camel writes a name with dashes as one in camel case.
func camel(name string) string {
	out := make([]byte, 0, len(name))
	upper := true
	for i := range len(name) {
		switch c := name[i]; {
		case c == '-':
			upper = true
		case upper && 'a' <= c && c <= 'z':
			out, upper = append(out, c-'a'+'A'), false
		default:
			out, upper = append(out, c), false
		}
	}
	return string(out)
}

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// liveStates are those of informers that have not ended.
var liveStates = []status.State{
	status.StateSynced, status.StateStarting, status.StateUnknown,
	status.StateNotServed, status.StateDegraded,
}

var states = append([]status.State{status.StateStopped}, liveStates...)

var sourceStates = []discovery.SourceState{
	discovery.SourceConnecting, discovery.SourceCurrent, discovery.SourceAbsent, discovery.SourceForbidden,
	discovery.SourceFailing,
}

// all are the descriptors of a collector.
var all = []*prometheus.Desc{
	informersDesc, omittedDesc,
	stateDesc, reasonDesc, failedDesc, failuresDesc, listsDesc, watchesDesc, bytesDesc, eventsDesc, lastEventDesc, objectsDesc, staleDesc,
	leasesDesc, handlersDesc, backlogDesc, backlogMaxDesc, lagDesc, callDesc,
	runningDesc, typesDesc, requestsDesc, answersDesc, sourceDesc,
}

// informerDescs are those of InformerMetrics.
var informerDescs = []*prometheus.Desc{queuedDesc, storeVersionDesc, latencyDesc}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gvrkit_"+name, help, labels, nil)
}

// describeResource describes a metric of a resource.
func describeResource(name, help string, more ...string) *prometheus.Desc {
	return describe(name, help, append([]string{"group", "version", "resource"}, more...)...)
}

// describeInformer describes one of client-go's.
func describeInformer(name, help string) *prometheus.Desc {
	return describe(name, help, "name", "group", "version", "resource")
}

var (
	informersDesc = describe("informers", "Informers of the factory, by state.", "state")
	omittedDesc   = describe("resources_omitted", "Resources that have no series of their own, since there are too many.")

	stateDesc      = describeResource("informer_state", "State of the informer: 1 for the one that it is in, 0 for the others.", "state")
	reasonDesc     = describeResource("informer_reason", "Why the informer is not synced, or degraded: 1 for the reason; no series if nothing is wrong.", "reason")
	failedDesc     = describeResource("informer_failed_objects", "Objects that the reason is about, by reason; no series if it is about requests or the type. Status has the key of the last one.", "reason")
	failuresDesc   = describeResource("informer_failures_total", "Lists and watches that failed or broke, with attempts that client-go makes by itself, by reason.", "reason")
	listsDesc      = describeResource("informer_lists_total", "Lists that were answered, with all of their pages or as watch-lists.")
	watchesDesc    = describeResource("informer_watches_total", "Watches that were answered.")
	bytesDesc      = describeResource("informer_received_bytes_total", "Bytes of answers, unpacked; 0 with a client that does not tell.")
	eventsDesc     = describeResource("informer_events_total", "Objects that the informer was given, in lists, as changes and as deletions.")
	lastEventDesc  = describeResource("informer_last_event_timestamp_seconds", "When the informer was last given an object, in seconds since 1970; no series if never.")
	objectsDesc    = describeResource("informer_objects", "Objects that the informer has.")
	staleDesc      = describeResource("informer_stale_seconds", "For how long the cache may have been behind the server; 0 if it is not.")
	leasesDesc     = describeResource("informer_leases", "Leases on the informer.")
	handlersDesc   = describeResource("informer_handlers", "Event handlers of the informer.")
	backlogDesc    = describeResource("informer_handler_backlog", "Events that wait for event handlers, the ones that they are in included: the sum of all handlers.")
	backlogMaxDesc = describeResource("informer_handler_backlog_max", "Events that wait for the event handler that has the most of them.")
	lagDesc        = describeResource("informer_handler_lag_seconds", "For how long events have been waiting whenever a call returned, for the event handler that is worst off; 0 if all have caught up.")
	callDesc       = describeResource("informer_handler_call_seconds", "For how long the oldest call of an event handler has not returned; 0 if none is under way.")

	runningDesc  = describe("discovery_running", "Whether the factory's discovery follows what is served: 1, or 0 if each question goes to the server.")
	typesDesc    = describe("discovery_types", "Resources that are known to be served, their versions counted once.")
	requestsDesc = describe("discovery_requests_total", "Requests of discovery, watches included.")
	answersDesc  = describe("discovery_answers_total", "Answers to questions about single resources, by outcome.", "outcome")
	sourceDesc   = describe("discovery_source_state", "State of a source of what is known: 1 for the one that it is in, 0 for the others, and for all while discovery does not run.", "source", "state")

	queuedDesc       = describeInformer("informer_queued_items", "Events in client-go's queue, which the store has not taken in yet.")
	storeVersionDesc = describeInformer("informer_store_resource_version", "The resourceVersion that the store has reached, as client-go tells it.")
	latencyDesc      = describeInformer("informer_processing_seconds", "How long it took to take what was in client-go's queue into the store, and to pass it on to handlers.")
)

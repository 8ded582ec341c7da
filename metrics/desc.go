package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// liveStates are the states of informers that have not ended, from best to worst.
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
	stateDesc, reasonDesc, failedDesc, failuresDesc, listsDesc, watchesDesc, bytesDesc, eventsDesc, lastEventDesc, objectsDesc, cacheDesc, slotsDesc, movedDesc, byClientDesc, staleDesc,
	leasesDesc, handlersDesc, backlogDesc, backlogMaxDesc, lagDesc, callDesc,
	budgetDesc, memoryDesc,
	runningDesc, typesDesc, requestsDesc, answersDesc, sourceDesc,
}

// informerDescs are the descriptors of InformerMetrics.
var informerDescs = []*prometheus.Desc{queuedDesc, storeVersionDesc, latencyDesc}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gvrkit_"+name, help, labels, nil)
}

// describeResource describes a metric of a resource.
func describeResource(name, help string, more ...string) *prometheus.Desc {
	return describe(name, help, append([]string{"group", "version", "resource"}, more...)...)
}

// describeInformer describes one of client-go's metrics.
func describeInformer(name, help string) *prometheus.Desc {
	return describe(name, help, "name", "group", "version", "resource")
}

var (
	informersDesc = describe("informers", "Informers of the factory, by state.", "state")
	omittedDesc   = describe("resources_omitted", "Number of resources without series, because of the limit of resources.")

	budgetDesc = describe("memory_budget_bytes", "Memory budget of the factory in bytes; no series if there is none.")
	memoryDesc = describe("memory_used_bytes", "Memory that the budget has in use in bytes, by caches and by estimates of first lists in progress; no series if there is no budget.", "use")

	stateDesc      = describeResource("informer_state", "State of the informer: 1 for the present state, 0 for the other states.", "state")
	reasonDesc     = describeResource("informer_reason", "Reason why the informer is not synced, or is degraded: 1 for the reason; no series if there is no problem.", "reason")
	failedDesc     = describeResource("informer_failed_objects", "Number of objects that are left out of the cache or of an index, by reason, and of objects for which handlers have panicked. The status has their keys.", "reason")
	failuresDesc   = describeResource("informer_failures_total", "Lists and watches that failed or broke, by reason, including attempts that client-go retries internally.", "reason")
	listsDesc      = describeResource("informer_lists_total", "Successful lists. All pages of a list count as one; a watch-list counts as a list.")
	watchesDesc    = describeResource("informer_watches_total", "Successful watches.")
	bytesDesc      = describeResource("informer_received_bytes_total", "Bytes of response bodies, uncompressed; 0 if the client does not count them.")
	eventsDesc     = describeResource("informer_events_total", "Objects that the informer has got in lists, changes and deletions.")
	lastEventDesc  = describeResource("informer_last_event_timestamp_seconds", "Unix time of the informer's last event in seconds; no series if there was none.")
	objectsDesc    = describeResource("informer_objects", "Number of objects of the informer.")
	cacheDesc      = describeResource("informer_cache_bytes", "Memory of the informer's cache in bytes, about.")
	slotsDesc      = describeResource("informer_shard_slots", "Number of slots of the informer's shard: those of which the cache has all objects, those that are loading, and those that the member of a group waits for.", "state")
	movedDesc      = describeResource("informer_shard_moved_objects_total", "Number of objects that have left the cache because the shard has lost their slots.")
	byClientDesc   = describeResource("informer_sharded_by_client", "1 if the server sends objects that are not of the informer's shard, which the informer leaves out.")
	staleDesc      = describeResource("informer_stale_seconds", "How long the cache may have been out of date; 0 if it is up to date.")
	leasesDesc     = describeResource("informer_leases", "Number of leases on the informer.")
	handlersDesc   = describeResource("informer_handlers", "Number of event handlers of the informer.")
	backlogDesc    = describeResource("informer_handler_backlog", "Number of events that wait for event handlers, including events in progress: the sum over all handlers.")
	backlogMaxDesc = describeResource("informer_handler_backlog_max", "Number of events that wait for an event handler: the maximum over all handlers.")
	lagDesc        = describeResource("informer_handler_lag_seconds", "How long events have been waiting at the end of each call of an event handler: the maximum over all handlers; 0 if no events wait.")
	callDesc       = describeResource("informer_handler_call_seconds", "Duration of the oldest call in progress of an event handler; 0 if there is none.")

	runningDesc  = describe("discovery_running", "Whether the factory's resolver runs: 1, or 0 if each question is a request to the server.")
	typesDesc    = describe("discovery_types", "Number of resources that are known to be served. All versions of a resource count as one.")
	requestsDesc = describe("discovery_requests_total", "Requests of discovery, including watches.")
	answersDesc  = describe("discovery_answers_total", "Answers to questions about single resources, by outcome.", "outcome")
	sourceDesc   = describe("discovery_source_state", "State of a source of discovery: 1 for the present state, 0 for the other states; 0 for all states if the resolver does not run.", "source", "state")

	queuedDesc       = describeInformer("informer_queued_items", "Number of events in client-go's queue that the store has not processed yet.")
	storeVersionDesc = describeInformer("informer_store_resource_version", "The resourceVersion of the store, as client-go reports it.")
	latencyDesc      = describeInformer("informer_processing_seconds", "Time to move the events of client-go's queue to the store, and to pass them to handlers.")
)

package cases

// row is a row of the table in test/README.md.
type row struct {
	number int
	title  string
	// tests show the case. Each is a directory and, after a colon, the name of a Go test or the text of a ginkgo spec.
	tests []string
	// gvrkit and clientGo are the outcomes. If run is set, it must return them.
	gvrkit, clientGo string
	// more is what the other tests show of gvrkit, besides the outcome of run.
	more string
	// run is the scenario, which is run on both. On client-go, it is not run if clientGo is noFeature.
	run func(s *scenario) (outcome string)
}

const (
	noFeature   = "has no such feature"
	notMeasured = "not measured here"
)

// rows are all cases. Numbers have gaps.
var rows = []row{
	{
		number: 1, title: "An informer is started before its CRD exists",
		tests:    []string{"test/envtest: waits for the type without requests for its objects", "dynamicinformer: TestAcquire_AllowAbsentWaitsForTheType"},
		gvrkit:   "a wait returns the reason NotFound; no request for the type before it is served; then 3 adds, no update, no delete",
		clientGo: "a wait returns no reason; no request for the type before it is served; then 3 adds, no update, no delete",
		run:      beforeItsCRD,
	},
	{
		number: 2, title: "Two CRDs claim the same kind",
		tests:    []string{"test/envtest: reports that another CRD has the names, and syncs when they are free", "test/envtest: returns the server's reason why a CRD is not served, until it is served"},
		gvrkit:   "a wait returns the reason NamesNotAccepted; no request for the type; synced when the other CRD is deleted",
		clientGo: "a wait returns no reason; no request for the type; synced when the other CRD is deleted",
		run:      namesConflict,
	},
	{
		number: 4, title: "Lists and watches of a type that exists get 404 for two seconds",
		tests:    []string{"test/envtest: keeps its cache through short failures", "internal/source: TestResumableWatch_SpuriousNotFound"},
		gvrkit:   "the cache stays readable; 10 adds, 1 update, no delete",
		more:     "meanwhile the state is Degraded",
		clientGo: "the cache is dropped; 20 adds, no update, no delete",
		run:      notFound,
	},
	{
		number: 6, title: "A CRD with many objects is deleted",
		tests:    []string{"test/envtest: gets one deletion for each object when the type is deleted", "dynamicinformer: TestAcquire_FirstStartsAndLastReleaseEnds", "internal/source: TestResumableWatch_DeletionsDuringTheEndOfTheType"},
		gvrkit:   "300 adds, no update, 300 deletes; then it says NotServed with the reason NotFound; no open watch",
		more:     "no request follows",
		clientGo: "300 adds, no update, and the deletes before the end of the watch; then it says nothing; no open watch",
		run:      manyDeletions,
	},
	{
		number: 7, title: "A CRD is deleted while its watch is disconnected",
		tests:    []string{"test/envtest: gets one deletion for each object when the type is deleted", "test/envtest: keeps its cache with KeepCache, and empties it for another type", "internal/source: TestResumableWatch_DeletedObjectsHaveTheirLastState"},
		gvrkit:   "20 adds, no update, 20 deletes",
		more:     "deletions have the last states; with KeepCache, the cache is kept and the status says that it is stale",
		clientGo: "20 adds, no update, no delete",
		run:      unseenDeletion,
	},
	{
		number: 9, title: "A type is added, removed and added while a listener is busy",
		tests:    []string{"discovery: TestEventQueue_MergesWaitingEvents", "discovery: TestEventQueue_EventsLeadToThePresentState", "dynamicinformer: TestFollow_SlowCallbackGetsTheLastState"},
		gvrkit:   "waiting events are merged; the last one is the present state; the order of each type is kept",
		clientGo: noFeature,
	},
	{
		number: 11, title: "A CRD is replaced by one with another kind, or another plural",
		tests:    []string{"discovery: TestRun_ChangesAreReported", "test/envtest: waits for a kind, also if its plural changes", "internal/source: TestResumableWatch_ObjectsOfAnotherKind"},
		gvrkit:   "a lease by GVR follows the plural, a lease by kind follows the kind; objects of another kind are not stored",
		clientGo: noFeature,
	},
	{
		number: 12, title: "The served version is removed from a CRD",
		tests:    []string{"test/envtest: keeps its cache while its version is not served, and changes to another version if its policy allows that", "test/envtest: keeps what it has while its version is not served"},
		gvrkit:   "it says Degraded with the reason VersionNotServed; the cache has 5 objects; when it is served again, 5 adds, 1 update, no delete in total",
		more:     "a lease that follows the preferred version changes to it without adds or deletes",
		clientGo: "it says nothing; the cache is dropped; when it is served again, 10 adds, no update, no delete in total",
		run:      versionRemoved,
	},
	{
		number: 13, title: "A CRD gets another version, which is preferred",
		tests:    []string{"dynamicinformer: TestVersionPolicy_DeterminesTheVersionOfRequests", "discovery: TestRun_ANewVersionIsServedThoughDocumentsAreBehind", "dynamicinformer: TestVersionPolicy_LeasesWithDifferentPoliciesDoNotShare"},
		gvrkit:   "a lease with a policy changes to the version once; a lease on one version stays",
		clientGo: noFeature,
	},
	{
		number: 16, title: "A CRD gets many writes that do not change its type",
		tests:    []string{"test/envtest: has no events after writes to a CRD that do not change its type:", "discovery: TestRun_WritesThatChangeNoTypeHaveNoEvents", "internal/source: TestResumableWatch_WatchesResume"},
		gvrkit:   "after writes of annotations, no request for the type; the server ends the watch after writes of the caBundle; 5 adds, no update, no delete",
		more:     "after writes of annotations or the status, no request for discovery; while the caBundle is written 50 times, five and at most two a second",
		clientGo: "after writes of annotations, no request for the type; the server ends the watch after writes of the caBundle; 5 adds, no update, no delete, and updates without a change",
		run:      irrelevantWrites,
	},
	{
		number: 17, title: "The conversion webhook of a CRD is down",
		tests:    []string{"dynamicinformer: TestWaitForSync_ReturnsTheReason", "dynamicinformer: TestWaitForSync_StuckTypeDoesNotDelayOthers"},
		gvrkit:   "a wait returns the reason ConversionFailed; another type is synced; synced when the conversion works",
		clientGo: "a wait returns no reason; another type is synced; synced when the conversion works",
		run:      conversionFails,
	},
	{
		number: 18, title: "A deleted CRD waits for a finalizer of an object",
		tests:    []string{"discovery: TestRun_ChangesAreReported", "internal/source: TestResumableWatch_HeldTypeKeepsItsWatchAndItsCache"},
		gvrkit:   "it says Synced, terminating; the cache has 1 object; one delete when the finalizer is removed",
		clientGo: "it says nothing; the cache has 1 object; one delete when the finalizer is removed",
		run:      stuckFinalizer,
	},
	{
		number: 20, title: "The discovery document marks a group version as stale",
		tests:    []string{"discovery: TestResolve_ResourcesOfAStaleGroupVersionAreServed", "discovery: TestResolve_LastKnownResourcesStayWhileAGroupFails", "test/envtest: keeps the types of an aggregated server while it is down"},
		gvrkit:   "the last known types are used; no type is removed",
		clientGo: noFeature,
	},
	{
		number: 21, title: "Discovery shows a type later than its APIService is available",
		tests:    []string{"discovery: TestRun_AnAvailableAPIServiceIsAwaited", "discovery: TestRun_AnAwaitedTypeIsRequestedEveryTenSeconds", "discovery: TestRun_PollsAreFrequentOnlyWhileAnAwaitedTypeIsAbsent"},
		gvrkit:   "the documents are requested again within seconds until they have the type",
		clientGo: noFeature,
	},
	{
		number: 24, title: "A request for discovery fails once, and no event follows",
		tests:    []string{"discovery: TestRun_FailedDocumentsAreRequestedAgain", "discovery: TestRun_RequestsForCRDsThatHangEnd"},
		gvrkit:   "the request is repeated without an event",
		clientGo: noFeature,
	},
	{
		number: 25, title: "The server responds with Retry-After",
		tests:    []string{"test/envtest: gets no more requests for that group version until then, and requests for other ones", "internal/source: TestGate_ObeysRetryAfter", "internal/source: TestResumableWatch_ListWaitsForRetryAfter", "discovery: TestRetryAfter_IsObeyed"},
		gvrkit:   "1 request in 17 of 25 s; another type is synced; synced after the time",
		more:     "discovery is not requested either",
		clientGo: "2 requests in 17 of 25 s; another type is synced; synced after the time",
		run:      retryAfter,
	},
	{
		number: 26, title: "A program looks up a kind that a known group gets later",
		tests:    []string{"test/envtest: finds a new kind of a known group, after a NotServed answer for it,", "test/envtest: drops NotServed answers with the next event"},
		gvrkit:   "the RESTMapper returns it within 10 s",
		more:     "a negative answer lasts until the next event",
		clientGo: "10 s later, the RESTMapper still returns NoMatch",
		run:      kindAppears,
	},
	{
		number: 27, title: "A subresource, or a type without list or watch",
		tests:    []string{"discovery: TestValidate_MissingVerbs", "test/envtest: that can't be watched are rejected with their verbs", "test/envtest: that can't be watched are listed with WithPolling", "internal/source: TestPoll_SendsTheDifferencesOfLists"},
		gvrkit:   "a wait for a subresource returns an error of Acquire; no request",
		more:     "the error has the verbs of a type that can't be listed or watched; with WithPolling, handlers get the differences of lists",
		clientGo: "a wait for a subresource returns no reason; requests are repeated",
		run:      subresource,
	},
	{
		number: 28, title: "A group has 300 types",
		tests:    []string{"test/envtest: is known after two requests for documents, and needs no more requests", "test/envtest: sends not more lists at a time", "dynamicinformer: TestListConcurrency_LimitsTheListsOfAFactory"},
		gvrkit:   "two requests for discovery; not more lists at a time than the limit",
		clientGo: noFeature,
	},
	{
		number: 29, title: "The first list is forbidden",
		tests:    []string{"test/envtest: gets the forbidden verbs, and syncs when they are granted", "dynamicinformer: TestType_ForbiddenIsRetriedSlowlyAndOnRetry"},
		gvrkit:   "a wait returns the reason Forbidden; synced when it is allowed",
		more:     "Retry does not wait for the next attempt",
		clientGo: "a wait returns no reason; synced when it is allowed",
		run:      forbidden,
	},
	{
		number: 30, title: "Permissions are revoked from a synced informer",
		tests:    []string{"test/envtest: reports the forbidden verbs, continues when they are granted, and keeps its cache when they are revoked", "dynamicinformer: TestType_KeepsItsCacheWhenPermissionsAreRevoked", "dynamicinformer: TestHealth_ToleratesShortFailures"},
		gvrkit:   "it says Degraded with the reason Forbidden; the cache has 3 objects; when they are granted again, 3 adds, 1 update, no delete in total",
		more:     "the status has the time since when the cache is stale; health checks fail after a while",
		clientGo: "it says nothing; the cache has 3 objects; when they are granted again, 3 adds, 1 update, no delete, 2 updates without a change in total",
		run:      revoked,
	},
	{
		number: 32, title: "Lists of all namespaces are forbidden, and those of two are allowed",
		tests:    []string{"test/envtest: has the namespaces that RBAC allows, if all are forbidden", "dynamicinformer: TestAllowedNamespaces_FallsBackToThoseThatAreAllowed", "dynamicinformer: TestNamespaces_ListersReportAnIncompleteCache", "dynamicinformer: TestNamespaces_OneInformerForASetThatChanges"},
		gvrkit:   "the informer has the two namespaces; a list of all returns an IncompleteError; one handler serves all namespaces",
		clientGo: noFeature,
	},
	{
		number: 34, title: "One namespace of a set does not exist at the start",
		tests:    []string{"dynamicinformer: TestNamespaces_OneIsNotFound", "internal/source: TestNamespaces_HangingOneDoesNotBlockTheOthers"},
		gvrkit:   "the others sync; the status names the missing one",
		clientGo: noFeature,
	},
	{
		number: 35, title: "One namespace of a set is forbidden later",
		tests:    []string{"internal/source: TestNamespaces_OneIsForbiddenLater", "dynamicinformer: TestNamespaces_ForbiddenOneIsNamedAndAffectsNoOther", "test/envtest: goes on in the others when requests for one fail"},
		gvrkit:   "the others continue; the objects of that namespace are kept",
		clientGo: noFeature,
	},
	{
		number: 36, title: "Many goroutines acquire and release one type",
		tests:    []string{"dynamicinformer: TestLease_ManyAtOnce", "test/envtest: are acquired and released by the thousand without leaks"},
		gvrkit:   "at most one informer; no goroutine and no watch is left",
		clientGo: noFeature,
	},
	{
		number: 38, title: "A user leaves while the first request hangs",
		tests:    []string{"dynamicinformer: TestRelease_EndsAHangingListAtOnce", "dynamicinformer: TestFactory_ShutdownEndsAHangingList"},
		gvrkit:   "the request ends within 10 s",
		clientGo: "the request ends within 10 s",
		run:      leaveWhileItHangs,
	},
	{
		number: 40, title: "One of two waits for a type that hangs ends early",
		tests:    []string{"dynamicinformer: TestWaitForSync_StuckTypeDoesNotDelayOthers", "dynamicinformer: TestLease_StuckTypeDoesNotAffectOthers"},
		gvrkit:   "the wait that ends returns the reason Syncing; the other one: synced; another type: synced",
		clientGo: "the wait that ends returns no reason; the other one: synced; another type: synced",
		run:      twoWaits,
	},
	{
		number: 42, title: "A handler is removed in its own call, or while it gets the first objects",
		tests:    []string{"dynamicinformer: TestRelease_InAHandlerOfTheLease", "dynamicinformer: TestCoalescing_RemovalInTheHandler", "dynamicinformer: TestRelease_WhileAHandlerIsAdded", "internal/handlers: TestSet_RemovedHandlerIsNotCalled"},
		more:     "no call follows",
		gvrkit:   "in its call: the removal returns, and at most one call follows; while it gets the first objects: cache.ShutDownEventHandler returns, and no call follows",
		clientGo: "in its call: the removal returns, and at most one call follows; while it gets the first objects: cache.ShutDownEventHandler returns, and no call follows",
		run:      removedHandlers,
	},
	{
		number: 43, title: "A handler blocks",
		tests:    []string{"dynamicinformer: TestHandlerStatus_CountsWaitingEvents", "dynamicinformer: TestCoalescing_BacklogIsAtMostTheNumberOfObjects", "dynamicinformer: TestRelease_RemovesOnlyItsOwnHandlers", "dynamicinformer: TestHealthz_ChecksHandlers"},
		gvrkit:   "another handler gets 20 updates; another type is synced; the status has 23 waiting events; its removal returns",
		more:     "with WithCoalescing, the number of waiting events is bounded",
		clientGo: "another handler gets 20 updates; another type is synced; the status has no such figure; its removal returns",
		run:      blockedHandler,
	},
	{
		number: 45, title: "A handler calls the factory",
		tests:    []string{"dynamicinformer: TestLease_HandlersMayCallAllMethods", "dynamicinformer: TestFactory_HandlerMayCallTheFactory"},
		gvrkit:   "it adds and removes a handler, reads the cache, starts another type and waits for its list: the calls return",
		more:     "handlers may call all methods of their lease, and release it",
		clientGo: "it adds and removes a handler, reads the cache, starts another type and waits for its list: the calls return",
		run:      handlerCallsFactory,
	},
	{
		number: 47, title: "Start twice, shutdown before the start, shutdown twice",
		tests:    []string{"dynamicinformer: TestFactory_StartTwiceWatchesOnce", "dynamicinformer: TestFactory_ShutdownBeforeStart", "dynamicinformer: TestDropIn_StartAfterShutdownHasNoEffect", "dynamicinformer: TestFactory_ShutdownWithAnEndedContextAfterTheEndOfAllIsNoError"},
		gvrkit:   "after two starts: 1 open request; after a start that follows the shutdown: no request; a shutdown during the start and a second one return; no watch is left",
		clientGo: "after two starts: 1 open request; after a start that follows the shutdown: no request; a shutdown during the start and a second one return; no watch is left",
		run:      startsAndStops,
	},
	{
		number: 48, title: "Two leases on one type have different options",
		tests:    []string{"dynamicinformer: TestAcquire_ConflictsAreNamed"},
		gvrkit:   "the error names both values; WithSeparateInformer gives another informer",
		clientGo: noFeature,
	},
	{
		number: 49, title: "The context of the first caller ends while it creates an informer",
		tests:    []string{"dynamicinformer: TestAcquire_ContextLimitsOnlyDiscovery", "discovery: TestEvidence_ACancelledQuestionDoesNotAffectOthers"},
		gvrkit:   "other callers continue",
		clientGo: noFeature,
	},
	{
		number: 50, title: "A watch expires while objects change",
		tests:    []string{"internal/source: TestResumableWatch_ListReplacesAnExpiredWatch", "dynamicinformer: TestStatus_AnExpiredVersionIsNotAFailure"},
		gvrkit:   "7 adds, 1 update, 1 delete",
		clientGo: "7 adds, 1 update, 1 delete, 4 updates without a change",
		run:      expiredWatch,
	},
	{
		number: 52, title: "An object is deleted and created again while the watch is disconnected",
		tests:    []string{"internal/source: TestResumableWatch_ObjectWithAnotherUIDIsNoUpdate", "internal/source: TestResumableWatch_ListReplacesAnExpiredWatch"},
		gvrkit:   "3 adds, no update, 1 delete",
		clientGo: "2 adds, no update, no delete, 1 update without a change, 1 update to another UID",
		run:      recreatedObject,
	},
	{
		number: 53, title: "A transform gets deletions, metadata, and an object again",
		tests:    []string{"internal/source: TestTransform_MayWriteToEachObject", "dynamicinformer: TestTransform_MayReturnAnyTypeWithMetadata", "dynamicinformer: TestTransform_SyntheticDeletionsHaveTheTypeOfTheCachedObject", "dynamicinformer: TestRejected_ByTheTransform"},
		gvrkit:   "no call gets an object that it has returned; 4 adds, 1 update, 2 deletes",
		more:     "a state of an object needs one call, unless it is listed again",
		clientGo: "calls get objects that it has returned; 4 adds, 1 update, 2 deletes",
		run:      transformCalls,
	},
	{
		number: 55, title: "The bookmark that ends the initial events of a watch-list never comes",
		tests:    []string{"internal/source: TestInformer_StalledWatchListFallsBackToList", "internal/source: TestWatchList_StallIsRememberedForTheType", "internal/source: TestGate_UsesWatchListByPolicy"},
		gvrkit:   "within 30 s: synced",
		more:     "aggregated types get no watch-list",
		clientGo: "within 30 s: no reason",
		run:      bookmarkMissing,
	},
	{
		number: 56, title: "A proxy drops all bookmarks of the watch after the first one",
		tests:    []string{"internal/source: TestWatch_NoEventsIsNotAStall", "internal/source: TestWatchList_NoEventsAfterTheBookmarkIsNotAStall"},
		gvrkit:   "when three objects have changed: 3 adds, 3 updates, no delete; it says Synced",
		clientGo: "when three objects have changed: 3 adds, 3 updates, no delete; it says nothing",
		run:      noBookmarks,
	},
	{
		number: 57, title: "A connection of HTTP/1.1 transfers nothing, and does not end",
		tests:    []string{"internal/source: TestResumableWatch_EndsAnOverdueWatch", "internal/source: TestResumableWatch_RequestsWithoutAResponseEnd", "internal/source: TestStream_EndsWithoutAWatchThatNeverCloses"},
		gvrkit:   "with a watch timeout of 2 s, a change arrives within 50 s",
		more:     "the watch ends 30 s after its timeout, and another one follows",
		clientGo: "with a watch timeout of 2 s, a change has not arrived after 50 s",
		run:      hungWatch,
	},
	{
		number: 58, title: "A server has no resourceVersions, or has other texts",
		tests:    []string{"internal/source: TestResumableWatch_ServerWithoutVersions", "internal/source: TestResumableWatch_ObjectsWithoutVersionsAreUpdated", "internal/source: TestPoll_ObjectsWithoutAVersion"},
		gvrkit:   `"" works, "0" works, "seven" works`,
		clientGo: `"" works, "0" works, "seven" works`,
		run:      oddVersions,
	},
	{
		number: 60, title: "One of many objects does not fit its Go type",
		tests:    []string{"lister: TestTyped_ListReturnsTheObjectsThatFitAndNamesTheOthers", "test/envtest: serves the objects that fit the type, and names those that do not"},
		gvrkit:   "synced; the cache has 100 objects; a typed read returns 99 and an error that names the other",
		more:     "AcquireTyped leaves the object out, and the status names it",
		clientGo: "synced; the cache has 100 objects; it has no typed reads",
		run:      malformedObject,
	},
	{
		number: 61, title: "Lists with nulls are decoded, converted and encoded",
		tests:    []string{"dynamicinformer: TestAcquire_KeepsNullsAndIntegers", "internal/wire: TestDecode_NullsAndZerosSurviveTheRoundTrip", "lister: TestTyped_KeepsNulls", "internal/gotype: TestConverter_KeepsNullsInLists"},
		gvrkit:   "the JSON, decoded: equal, copied: equal, converted to a Go type: equal, and back: equal",
		clientGo: "the JSON, decoded: equal, copied: equal, converted to a Go type: equal, and back: equal",
		run:      nulls,
	},
	{
		number: 62, title: "Integers above 2^53, and one above the largest int64",
		tests:    []string{"lister: TestTyped_IntegersAreExact", "dynamicinformer: TestAcquire_KeepsNullsAndIntegers", "internal/gotype: TestConverter_RefusesNumbersThatDoNotFit"},
		gvrkit:   "2^63 as float64, rounded; 2^53+1 as int64, exact; 2^63-1 as int64, exact; a typed read returns 2 and an error that names the other",
		clientGo: "2^63 as float64, rounded; 2^53+1 as int64, exact; 2^63-1 as int64, exact; it has no typed reads",
		run:      largeIntegers,
	},
	{
		number: 64, title: "Large objects change often",
		tests:    []string{"internal/informer: TestPackedStore_StaysSmallAfter100000Updates", "internal/handlers: TestSet_CoalescingKeepsTheHeapFlat", "internal/wire: TestTables_TakeNoMoreMemoryThanDocumented", "internal/wire: TestBuilder_KeepsNoObjectsAlive"},
		gvrkit:   "the heap does not grow with the number of changes",
		clientGo: notMeasured + ": `make bench` compares memory and latency, which need longer than a test has",
	},
	{
		number: 65, title: "A handler writes to an object of the cache",
		tests:    []string{"dynamicinformer: TestMutationDetector_NamesTheObject", "internal/packed: TestDetectsMutations_AsClientGoDoes"},
		gvrkit:   "with KUBE_CACHE_MUTATION_DETECTOR, the program ends with a report that names the object, and no other",
		more:     "the same for packed caches, with the type",
		clientGo: "with KUBE_CACHE_MUTATION_DETECTOR, the program ends with a report that names the object, and no other",
		run:      mutatedObject,
	},
	{
		number: 68, title: "A factory with many types is shut down under load",
		tests:    []string{"dynamicinformer: TestFactory_ShutdownWaitsForHandlers", "dynamicinformer: TestListConcurrency_ShutdownDoesNotWaitForTheQueue", "dynamicinformer: TestShutdown_WaitsForTheRemovalOfHandlers"},
		gvrkit:   "the shutdown returns within 5 s; then no goroutine of informers, no call and no request; no watch is left",
		more:     "an error of Shutdown names the handlers that block",
		clientGo: "the shutdown returns within 5 s; then no goroutine of informers, no call and no request; no watch is left",
		run:      shutdownUnderLoad,
	},
}

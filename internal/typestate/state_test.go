package typestate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

var ships = schema.GroupVersionResource{Group: "fleet.example.com", Version: "v1", Resource: "ships"}

// newShips returns the state of a type that discovery has been asked about.
func newShips(t *testing.T) *State {
	t.Helper()
	resolver, err := discovery.NewFromDiscovery(unasked{})
	if err != nil {
		t.Fatal(err)
	}
	return New(ships, Config{Namespace: "port", Resolver: resolver, Changed: &broadcast.Broadcaster{}})
}

// unasked fails the test that asks it.
type unasked struct {
	clientdiscovery.DiscoveryInterfaces
}

func served(uid types.UID) discovery.Resource {
	return discovery.Resource{GVR: ships, GVK: ships.GroupVersion().WithKind("Ship"), Namespaced: true, CRDUID: uid}
}

// by returns the type as it is served by backing.
func by(backing discovery.Backing, uid types.UID) discovery.Resource {
	res := served(uid)
	res.Backing = backing
	return res
}

// cluster returns res as a cluster-scoped type.
func cluster(res discovery.Resource) discovery.Resource {
	res.Namespaced = false
	return res
}

// boats returns res as a resource with another name.
func boats(res discovery.Resource) discovery.Resource {
	res.GVR.Resource = "boats"
	return res
}

func byService(service string) discovery.Resource {
	res := by(discovery.BackingAggregated, "")
	res.Service = service
	return res
}

func removed(kind discovery.EvidenceKind, uid types.UID) discovery.Event {
	return discovery.Event{Type: discovery.Removed, Resource: served(uid), Evidence: discovery.Evidence{Kind: kind, CRDUID: uid}}
}

func added() discovery.Event {
	return discovery.Event{Type: discovery.Added, Resource: served("a")}
}

func moved() discovery.Event {
	return discovery.Event{Type: discovery.Changed, Resource: byService("a/a"), Changes: []discovery.Change{discovery.VersionsChanged, discovery.BackingChanged}}
}

func ofBoats(event discovery.Event) discovery.Event {
	event.Resource.GVR.Resource = "boats"
	return event
}

// steps are what happens to a state, one after the other.
type steps []func(s *State)

// yes is an answer of discovery to a question that is asked now, and no a refusal.
func yes(res discovery.Resource) func(*State) {
	return func(s *State) { s.answered(s.eventsSoFar(), res, nil, false) }
}

func no(err error) func(*State) {
	return func(s *State) { s.answered(s.eventsSoFar(), discovery.Resource{}, err, false) }
}

// noYet is a refusal while there is another CRD.
func noYet(err error) func(*State) {
	return func(s *State) { s.answered(s.eventsSoFar(), discovery.Resource{}, err, true) }
}

// late is an answer to a question that was asked before event.
func late(res discovery.Resource, event discovery.Event) func(*State) {
	return func(s *State) {
		seen := s.eventsSoFar()
		s.HandleEvent(event)
		s.answered(seen, res, nil, false)
	}
}

func heard(event discovery.Event) func(*State) { return func(s *State) { s.HandleEvent(event) } }

func probed(gone bool) func(*State) {
	return func(s *State) {
		now, _ := s.Availability().Current()
		s.Probed(now, gone)
	}
}

func TestState_ServingAndGeneration(t *testing.T) {
	var (
		notServed    error = &discovery.NotServedError{Ref: discovery.RefOf(ships)}
		otherVersion error = &discovery.NotServedError{Ref: discovery.RefOf(ships), Versions: []string{"v2"}}
		notAccepted  error = &discovery.NotEstablishedError{Ref: discovery.RefOf(ships), Condition: "NamesAccepted"}
		unknown      error = &discovery.InconclusiveError{Ref: discovery.RefOf(ships), Err: errors.New("down")}
		cannot       error = &discovery.VerbError{GVR: ships, Missing: []string{"watch"}}
		clusterWide        = served("a")
	)
	const (
		crd        = discovery.BackingCRD
		aggregated = discovery.BackingAggregated
		builtIn    = discovery.BackingBuiltIn
		either     = discovery.BackingUnknown
	)
	clusterWide.Namespaced = false
	for name, tc := range map[string]struct {
		steps      steps
		serving    source.Serving
		generation int
		uid        types.UID
	}{
		"never asked":                      {nil, source.Held, 0, ""},
		"served":                           {steps{yes(served("a"))}, source.Served, 0, "a"},
		"not served":                       {steps{no(notServed)}, source.Held, 0, ""},
		"cannot be told":                   {steps{no(unknown)}, source.Held, 0, ""},
		"cannot be told any more":          {steps{yes(served("a")), no(unknown)}, source.Served, 0, "a"},
		"not served, but no evidence":      {steps{yes(served("a")), no(notServed)}, source.Held, 0, "a"},
		"not served, twice at once":        {steps{yes(served("a")), no(notServed), no(notServed)}, source.Held, 0, "a"},
		"another version":                  {steps{yes(served("a")), no(otherVersion)}, source.Held, 0, "a"},
		"another version, with evidence":   {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(otherVersion)}, source.Held, 0, "a"},
		"another CRD has the names":        {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notAccepted)}, source.Held, 0, "a"},
		"a CRD that does not serve it":     {steps{yes(by(aggregated, "")), heard(removed(discovery.CRDDeleted, "a")), yes(by(aggregated, ""))}, source.Served, 0, ""},
		"another service":                  {steps{yes(byService("a/a")), yes(byService("a/b"))}, source.Served, 1, ""},
		"another service, later":           {steps{yes(byService("a/a")), yes(byService("")), yes(byService("a/b"))}, source.Served, 1, ""},
		"a service that becomes known":     {steps{yes(byService("")), yes(byService("a/b")), yes(byService("")), yes(byService("a/b"))}, source.Served, 0, ""},
		"not listed by another server":     {steps{yes(by(aggregated, "")), heard(removed(discovery.NotListed, "")), no(notServed)}, source.Missing, 0, ""},
		"cannot be watched":                {steps{yes(served("a")), no(cannot)}, source.Held, 0, "a"},
		"another that cannot be watched":   {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), no(cannot)}, source.Gone, 0, "a"},
		"another of another version":       {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), no(otherVersion)}, source.Gone, 0, "a"},
		"another that is not accepted":     {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), no(notAccepted)}, source.Gone, 0, "a"},
		"CRD deleted":                      {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), no(notServed)}, source.Gone, 0, "a"},
		"CRD deleted, the rest is unknown": {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), no(unknown)}, source.Gone, 0, "a"},
		"not listed, the rest is unknown":  {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(unknown)}, source.Served, 0, "a"},
		"not listed":                       {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notServed)}, source.Missing, 0, "a"},
		"no version served":                {steps{yes(served("a")), heard(removed(discovery.NoVersionServed, "a")), no(notServed)}, source.Held, 0, "a"},
		"CRD deleted, and not listed":      {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), heard(removed(discovery.NotListed, "")), no(unknown)}, source.Gone, 0, "a"},
		"deletion of an earlier CRD":       {steps{yes(served("b")), heard(removed(discovery.CRDDeleted, "a")), no(notServed)}, source.Held, 0, "b"},
		"CRD deleted and another created":  {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), yes(served("b"))}, source.Served, 1, "b"},
		"another before the deletion":      {steps{yes(served("a")), yes(served("b"))}, source.Served, 1, "b"},
		"another, then the deletion":       {steps{yes(served("a")), yes(served("b")), heard(removed(discovery.CRDDeleted, "a")), yes(served("b"))}, source.Served, 1, "b"},
		"deletion of an unknown CRD":       {steps{yes(served("")), heard(removed(discovery.CRDDeleted, "a")), yes(served(""))}, source.Served, 1, ""},
		"not listed and back":              {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), yes(served(""))}, source.Served, 0, ""},
		"UID unknown for a while":          {steps{yes(served("a")), yes(served("")), yes(served("a"))}, source.Served, 0, "a"},
		"UID unknown, then another":        {steps{yes(served("a")), yes(served("")), yes(served("b"))}, source.Served, 1, "b"},
		"UID known late":                   {steps{yes(served("")), yes(served("a"))}, source.Served, 0, "a"},
		"another scope":                    {steps{yes(served("a")), yes(clusterWide)}, source.Served, 1, "a"},
		"two others":                       {steps{yes(served("a")), yes(served("b")), yes(served("c"))}, source.Served, 2, "c"},

		// The CRD comes back with its old UID: etcd was restored.
		"restored":                    {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), no(notServed), heard(added()), yes(served("a"))}, source.Served, 1, "a"},
		"restored at once":            {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), heard(added()), yes(served("a"))}, source.Served, 1, "a"},
		"restored before the events":  {steps{yes(served("a")), yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), heard(added()), yes(served("a"))}, source.Served, 1, "a"},
		"answer from before the end":  {steps{yes(served("a")), late(served("a"), removed(discovery.CRDDeleted, "a")), no(notServed)}, source.Gone, 0, "a"},
		"answer from before, no more": {steps{yes(served("a")), late(served("a"), removed(discovery.CRDDeleted, "a"))}, source.Served, 0, "a"},

		// Another CRD has the name, and is not served yet.
		"replaced":                   {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), noYet(notServed)}, source.Held, 0, "a"},
		"replaced, and never served": {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), noYet(notServed), no(notServed)}, source.Gone, 0, "a"},
		"replaced, then served":      {steps{yes(served("a")), heard(removed(discovery.CRDDeleted, "a")), noYet(notServed), yes(served("b"))}, source.Served, 1, "b"},

		// What serves the type changes. A UID holds only while that may be a CRD.
		"aggregated to CRD":                 {steps{yes(by(aggregated, "")), yes(by(crd, "a"))}, source.Served, 1, "a"},
		"CRD to aggregated":                 {steps{yes(by(crd, "a")), yes(by(aggregated, ""))}, source.Served, 1, ""},
		"CRD to aggregated, with UID":       {steps{yes(by(crd, "a")), yes(by(aggregated, "a"))}, source.Served, 1, ""},
		"CRD to built in":                   {steps{yes(by(crd, "a")), yes(by(builtIn, ""))}, source.Served, 1, ""},
		"backing known late":                {steps{yes(by(either, "a")), yes(by(crd, "a"))}, source.Served, 0, "a"},
		"backing unknown for a while":       {steps{yes(by(aggregated, "")), yes(by(either, "")), yes(by(aggregated, ""))}, source.Served, 0, ""},
		"another backing after a while":     {steps{yes(by(aggregated, "")), yes(by(either, "")), yes(by(crd, "a"))}, source.Served, 1, "a"},
		"aggregated, unknown, a UID of old": {steps{yes(by(crd, "a")), yes(by(aggregated, "")), yes(by(either, ""))}, source.Served, 1, ""},

		"another server, known late":         {steps{yes(by(either, "a")), yes(by(aggregated, ""))}, source.Served, 0, ""},
		"backing known late, after a change": {steps{yes(by(either, "")), heard(moved()), yes(by(crd, "a"))}, source.Served, 1, "a"},
		"unknown backing, then its changes":  {steps{yes(by(either, "")), heard(moved()), yes(by(crd, "a")), heard(moved()), yes(by(crd, "a"))}, source.Served, 1, "a"},
		"a change before the first answer":   {steps{heard(moved()), yes(by(either, "")), yes(by(crd, "a"))}, source.Served, 0, "a"},
		"a change of another type":           {steps{yes(by(either, "")), heard(ofBoats(moved())), yes(by(crd, "a"))}, source.Served, 0, "a"},

		// A type that discovery does not mention is asked itself.
		"probed, not found":            {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notServed), probed(true)}, source.Gone, 0, "a"},
		"probed, answers":              {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notServed), probed(false)}, source.Served, 0, "a"},
		"probed, gone, denied again":   {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notServed), probed(true), no(notServed)}, source.Gone, 0, "a"},
		"probed, gone, back":           {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notServed), probed(true), yes(served("a"))}, source.Served, 1, "a"},
		"probed, gone, other versions": {steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(notServed), probed(true), no(otherVersion)}, source.Held, 0, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShips(t)
			for _, step := range tc.steps {
				step(s)
			}
			now := s.Snapshot()
			told, _ := s.Availability().Current()
			if now.Serving != tc.serving || now.Generation != tc.generation || now.uid() != tc.uid {
				t.Errorf("%s, generation %d, UID %q, want %s, %d, %q", now.Serving, now.Generation, now.uid(), tc.serving, tc.generation, tc.uid)
			}
			if told != now.sourceType() {
				t.Errorf("the source knows %+v, want %+v", told, now.sourceType())
			}
		})
	}
}

func TestState_TheSourceKnowsSinceWhenTheTypeIsServed(t *testing.T) {
	s := newShips(t)
	for _, step := range (steps{yes(served("a")), yes(served("b"))}) {
		step(s)
		told, _ := s.Availability().Current()
		if now := s.Snapshot(); told.Since.IsZero() || told.Since != now.ServedSince {
			t.Errorf("the source knows that the type is served since %v, want %v", told.Since, now.ServedSince)
		}
	}
}

// What the type itself answers has no effect on a type that is another one by then.
func TestState_ProbeOfAnotherGenerationHasNoEffect(t *testing.T) {
	s := newShips(t)
	for _, step := range (steps{yes(served("a")), heard(removed(discovery.NotListed, "")), no(&discovery.NotServedError{})}) {
		step(s)
	}
	before, _ := s.Availability().Current()
	yes(served("b"))(s)
	s.Probed(before, true)
	if now := s.Snapshot(); now.Serving != source.Served {
		t.Errorf("serving = %s, want Served", now.Serving)
	}
}

// givenBy is a source whose state is the result of a function.
type givenBy func() source.State

func (g givenBy) State() source.State   { return g() }
func (g givenBy) Has(string) bool       { return false }
func (g givenBy) Report() source.Report { return source.Report{State: g()} }

// later is a source whose state is another one at each call.
type later struct {
	givenBy
	calls int
}

func (l *later) Report() source.Report {
	l.calls++
	return source.Report{
		State:      source.State{Objects: l.calls, Rejected: source.Rejected{Count: 1, Key: "ns/a", Err: source.ErrTransform}},
		Names:      []source.RejectedObject{{Key: "ns/a", Err: source.ErrTransform}},
		Namespaces: []source.Namespace{{Name: "ns"}},
	}
}

// A report and its list are of one state of the source.
func TestState_ReportIsOfOneMoment(t *testing.T) {
	s := newShips(t)
	given := &later{givenBy: func() source.State { return source.State{Objects: -1} }}
	s.SetSource(given, func() bool { return true })
	now, q, namespaces := s.Report()
	if left := q.Status(); len(namespaces) != 1 || now.Source.Objects != 1 || given.calls != 1 || now.LeftOut.Count != 1 || left.Count() != 1 || len(left.Objects) != 1 {
		t.Errorf("%d calls, %d namespaces, %d objects, %d left out, quarantine %+v", given.calls, len(namespaces), now.Source.Objects, now.LeftOut.Count, left)
	}
}

func TestState_SyncedOnlyWithAWholeListOfThisGeneration(t *testing.T) {
	given := source.State{Complete: true, FirstLists: 1}
	listed := true
	s := newShips(t)
	s.SetSource(givenBy(func() source.State { return given }), func() bool { return listed })
	check := func(when string, want bool) {
		t.Helper()
		s.Completed()
		now := s.Snapshot()
		if now.Synced() != want {
			t.Errorf("%s: synced = %t, want %t", when, now.Synced(), want)
		}
	}
	yes(served("a"))(s)
	check("listed", true)
	listed = false
	check("not in the store yet", false)
	listed = true
	heard(removed(discovery.CRDDeleted, "a"))(s)
	check("the CRD is deleted", false)
	no(&discovery.NotServedError{})(s)
	check("gone", false)
	yes(served("a"))(s)
	check("back, and not listed again", false)
	given = source.State{Complete: true, Generation: 1, FirstLists: 2}
	check("listed again, not in the store yet", false)
	now := s.Snapshot()
	if got := now.AwaitsStore(); got != 2 {
		t.Fatalf("AwaitsStore = %d, want 2", got)
	}
	s.Stored(2)
	check("in the store", true)
	given.Complete = false
	check("the list is out of date", false)
	given.Complete = true
	check("listed once more", true)
	heard(removed(discovery.NotListed, ""))(s)
	no(&discovery.NotServedError{})(s)
	probed(true)(s)
	check("not listed, not found, and its objects not deleted yet", false)
}

func TestState_ConditionsEndByWhatContradictsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShips(t)
		forbidden := apierrors.NewForbidden(ships.GroupResource(), "", errors.New("no"))
		check := func(when, verb string, reason status.Reason, attempts int) {
			t.Helper()
			now := s.Snapshot()
			gotVerb, c, _ := now.Failing()
			if gotVerb != verb || c.Reason != reason || c.Attempts != attempts {
				t.Errorf("%s: %q %s %d, want %q %s %d", when, gotVerb, c.Reason, c.Attempts, verb, reason, attempts)
			}
		}
		given := source.State{}
		s.SetSource(givenBy(func() source.State { return given }), func() bool { return false })
		yes(served("a"))(s)
		check("served", "", "", 0)
		began := time.Now()
		s.Failed(source.VerbWatch, forbidden)
		check("watch refused", source.VerbWatch, status.ReasonForbidden, 1)
		if now := s.Snapshot(); now.Lasting() {
			t.Error("a refused watch is lasting, though a LIST follows")
		}
		time.Sleep(time.Second)
		s.Failed(source.VerbList, apierrors.NewServiceUnavailable("down"))
		s.Failed(source.VerbList, forbidden)
		check("list refused", source.VerbList, status.ReasonForbidden, 3)
		now := s.Snapshot()
		if _, c, _ := now.Failing(); !now.Lasting() || c.Since != began {
			t.Errorf("lasting %t, since %v, want since %v", now.Lasting(), c.Since, began)
		}
		given = source.State{Complete: true, Version: "7"}
		check("there is a version to watch from", source.VerbWatch, status.ReasonForbidden, 3)
		s.Succeeded(source.VerbList)
		check("list accepted", source.VerbWatch, status.ReasonForbidden, 1)
		s.Failed(source.VerbList, forbidden)
		s.Succeeded(source.VerbWatch)
		check("watch accepted", "", "", 0)
		s.Failed(source.VerbWatch, forbidden)
		yes(served("b"))(s)
		check("another type", "", "", 0)
	})
}

// In a set, one namespace may need a list although the source has a version.
func TestState_AListOfANamespaceReplacesItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(namespace string, err error) error { return &source.NamespaceError{Namespace: namespace, Err: err} }
		s := newShips(t)
		s.SetSource(givenBy(func() source.State { return source.State{Complete: true, Version: "7"} }), func() bool { return true })
		yes(served("a"))(s)
		began := time.Now()
		s.Failed(source.VerbWatch, in("x", errors.New("can't be decoded")))
		time.Sleep(time.Second)
		forbidden := apierrors.NewForbidden(ships.GroupResource(), "", errors.New("no"))
		s.Failed(source.VerbList, in("y", forbidden))
		now := s.Snapshot()
		if verb, c, _ := now.Failing(); verb != source.VerbWatch || c.Reason == status.ReasonForbidden || c.Attempts != 2 {
			t.Errorf("a list of another namespace fails: %q %+v", verb, c)
		}
		s.Failed(source.VerbList, in("x", forbidden))
		now = s.Snapshot()
		if verb, c, _ := now.Failing(); verb != source.VerbList || c.Reason != status.ReasonForbidden || c.Attempts != 3 || c.Since != began {
			t.Errorf("a list of the namespace fails: %q %+v", verb, c)
		}
	})
}

// counts reports whether a watch that fails with err counts as a failure.
func counts(s *State, err error) bool {
	failures := func() uint64 {
		now := s.Snapshot()
		return now.Traffic.Failures[Classify(err)]
	}
	before := failures()
	s.Failed(source.VerbWatch, err)
	return failures() > before
}

// A watch that expires is the ordinary end of one that was slow; one after the other is not.
func TestState_ExpiredWatchesCountIfTheyAreFrequent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShips(t)
		yes(served("a"))(s)
		expired := apierrors.NewResourceExpired("too old")
		if counts(s, expired) {
			t.Error("the first counts")
		}
		if !counts(s, expired) {
			t.Error("one right after the first does not count")
		}
		s.Succeeded(source.VerbWatch)
		time.Sleep(expiryEvery + time.Second)
		if counts(s, expired) {
			t.Error("one after a minute counts")
		}
	})
}

// However often there is news, discovery is asked at a bounded rate.
func TestState_EventsAreLimitedToARateOfQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShips(t)
		const most = askBurst + 60*askRate + 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		asked := 0
		s.cfg.Resolve = func(context.Context) (discovery.Resource, error) {
			if asked++; asked > most {
				cancel() // without a bound it would not end
			}
			s.Look() // each answer is news at once
			return served("a"), nil
		}
		s.Run(ctx, func() {})
		if asked > most || asked < 60 {
			t.Errorf("asked %d times in a minute, want 60 to %d", asked, most)
		}
	})
}

// An event of discovery has the type looked at again, once for all events that come before that.
func TestState_NewsHasDiscoveryAsked(t *testing.T) {
	s := newShips(t)
	s.HandleEvent(added())
	s.HandleEvent(removed(discovery.CRDDeleted, "a"))
	if got := len(s.news); got != 1 {
		t.Errorf("%d calls to ask discovery, want 1", got)
	}
}

// API servers may send requests to the earlier server for some time, or serve the type with its earlier scope.
func TestState_IsUnsettledAfterAnotherServerOrScope(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to  discovery.Resource
		unsettled bool
	}{
		"a CRD after a service":         {byService("a/a"), by(discovery.BackingCRD, "a"), true},
		"a service after a CRD":         {by(discovery.BackingCRD, "a"), byService("a/a"), true},
		"another service":               {byService("a/a"), byService("a/b"), true},
		"another CRD":                   {by(discovery.BackingCRD, "a"), by(discovery.BackingCRD, "b"), false}, // its UID is confirmed
		"a service that becomes known":  {by(discovery.BackingUnknown, ""), byService("a/a"), true},            // a CRD may have served it
		"a service after a deleted one": {byService(""), byService("a/a"), true},                               // its APIService was deleted when the informer began
		"the same service":              {byService("a/a"), byService("a/a"), false},
		"a CRD with another scope":      {by(discovery.BackingCRD, "a"), cluster(by(discovery.BackingCRD, "b")), true},
		"another scope of the same CRD": {by(discovery.BackingCRD, "a"), cluster(by(discovery.BackingCRD, "a")), true}, // its end is not known yet
		"another type of that name":     {by(discovery.BackingCRD, "a"), boats(cluster(by(discovery.BackingCRD, "b"))), false},
		"another scope, without CRDs":   {cluster(by(discovery.BackingUnknown, "")), by(discovery.BackingUnknown, ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShips(t)
				res := tc.from
				s.cfg.Resolve = func(context.Context) (discovery.Resource, error) { return res, nil }
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.Run(ctx, func() {}) })
				unsettled := func(want bool) {
					t.Helper()
					synctest.Wait()
					if now, _ := s.Availability().Current(); now.Unsettled != want {
						t.Errorf("unsettled: %v, want %v", now.Unsettled, want)
					}
				}
				time.Sleep(time.Minute)
				unsettled(false)
				res = tc.to
				s.HandleEvent(discovery.Event{Type: discovery.Changed, Resource: res})
				unsettled(tc.unsettled)
				time.Sleep(settleFor - time.Second)
				s.Look()
				unsettled(tc.unsettled)
				time.Sleep(2 * time.Second)
				unsettled(false)
				cancel()
				running.Wait()
			})
		})
	}
}

// There is no event when discovery can tell again what serves a type: it is asked, once.
func TestState_AsksAgainWhatServesAType(t *testing.T) {
	for name, tc := range map[string]struct {
		before     discovery.Resource
		generation int
	}{
		"it was not known": {by(discovery.BackingUnknown, ""), 0},
		"it was a CRD":     {by(discovery.BackingCRD, "a"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShips(t)
				var answer atomic.Value // what discovery says
				var asked atomic.Int64
				answer.Store(tc.before)
				s.cfg.Resolve = func(context.Context) (discovery.Resource, error) {
					asked.Add(1)
					return answer.Load().(discovery.Resource), nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { s.Run(ctx, func() {}) })
				synctest.Wait()
				undecided := by(discovery.BackingUnknown, "")
				answer.Store(undecided)
				s.HandleEvent(discovery.Event{Type: discovery.Changed, Resource: undecided})
				synctest.Wait()
				before := asked.Load()
				answer.Store(byService("a/a"))
				time.Sleep(settleFor + time.Second)
				synctest.Wait()
				now, _ := s.Availability().Current()
				if !now.Unsettled || !now.Aggregated || now.Generation != tc.generation {
					t.Errorf("the type is %+v, want it unsettled, aggregated and of generation %d", now, tc.generation)
				}
				answer.Store(undecided)
				s.Look()
				time.Sleep(time.Hour)
				synctest.Wait()
				if questions := asked.Load() - before; questions != 4 { // two after 15 s, the second since the type has moved, one after Look, and one 15 s later
					t.Errorf("%d questions, want 4", questions)
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// A type is settled after some time also if discovery can't answer then: while it is unsettled, objects of the earlier server may stay.
func TestState_SettlesWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShips(t)
		for _, res := range []discovery.Resource{by(discovery.BackingCRD, "a"), byService("a/a")} {
			s.answered(s.eventsSoFar(), res, nil, false)
		}
		for _, unsettled := range []bool{true, false} {
			s.answered(s.eventsSoFar(), discovery.Resource{}, &discovery.InconclusiveError{}, false)
			if now, _ := s.Availability().Current(); now.Unsettled != unsettled || now.Serving != source.Served || now.Generation != 1 {
				t.Errorf("the type is %+v, want it served, of generation 1, unsettled: %v", now, unsettled)
			}
			time.Sleep(settleFor)
		}
	})
}

// Discovery is asked again each time that it lists the type, and once each time.
func TestSnapshot_SettlesAgainAfterAnAbsence(t *testing.T) {
	s := newShips(t).Snapshot()
	for _, test := range []struct {
		serving source.Serving // before
		want    time.Duration  // zero: never
	}{{source.Held, settleFor}, {source.Served, 0}, {source.Gone, settleFor}, {source.Served, 0}} {
		s.Serving, s.At = test.serving, s.At.Add(time.Hour)
		s.serve(by(discovery.BackingUnknown, ""), "", time.Time{})
		if at := s.settles(s.At); at.IsZero() != (test.want == 0) || !at.IsZero() && at.Sub(s.At) != test.want {
			t.Errorf("%v before: it is asked at %v, want %v after %v", test.serving, at, test.want, s.At)
		}
	}
}

// An informer that begins after a change of the scope has not known the type before. The resolver has.
func TestSnapshot_IsUnsettledAfterTheEndOfTheOtherScope(t *testing.T) {
	begun := time.Now()
	for name, tc := range map[string]struct {
		ended      time.Time // the other scope
		until      time.Duration
		everServed bool
	}{
		"it is not known to have ended":            {},
		"it ended some time ago":                   {ended: begun.Add(-settleFor)},
		"it ended a short time ago":                {ended: begun.Add(-10 * time.Second), until: settleFor - 10*time.Second},
		"the informer has noticed the change late": {ended: begun.Add(-10 * time.Second), until: settleFor, everServed: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShips(t).Snapshot()
			s.At = begun
			if tc.everServed {
				s.serve(by(discovery.BackingCRD, "a"), "", time.Time{})
			}
			for range 2 { // discovery is asked again
				s.serve(cluster(by(discovery.BackingCRD, "b")), "", tc.ended)
			}
			unsettled := tc.until > 0
			if s.sourceType().Unsettled != unsettled || unsettled && s.settles(begun).Sub(begun) != tc.until {
				t.Errorf("unsettled: %v, until %v, want %v", s.sourceType().Unsettled, s.settles(begun), tc.until)
			}
		})
	}
}

// The type that a name means is served. Another type, which had the name too, is gone.
func TestState_TheEndOfAnotherTypeWithTheNameIsNoEvidence(t *testing.T) {
	s := newShips(t)
	s.cfg.Named = true
	s.answered(s.eventsSoFar(), byService("fleet"), nil, false)
	event := removed(discovery.NotListed, "")
	event.Resource.GVR.Resource = "boats"
	s.HandleEvent(event)
	if got := s.Snapshot(); got.Evidence.Kind != "" {
		t.Errorf("evidence: %+v", got.Evidence)
	}
	s.HandleEvent(removed(discovery.NotListed, ""))
	if got := s.Snapshot(); got.Evidence.Kind != discovery.NotListed {
		t.Errorf("evidence of its own end: %+v", got.Evidence)
	}
}

// Both types are of one aggregated server: only their names differ.
func TestState_AnotherTypeWithTheNameIsAnotherGeneration(t *testing.T) {
	s := newShips(t)
	s.cfg.Named = true
	s.answered(s.eventsSoFar(), byService("fleet"), nil, false)
	boats := byService("fleet")
	boats.GVR.Resource = "boats"
	s.answered(s.eventsSoFar(), boats, nil, false)
	if got := s.Snapshot(); got.Generation != 1 || got.GVR != boats.GVR {
		t.Errorf("generation %d of %v", got.Generation, got.GVR)
	}
}

// A type may be gone for days, and each answer of discovery says so.
func TestLog_AReasonIsStoredOnce(t *testing.T) {
	var log stateLog
	for range 10 {
		log.vanishedLocked(status.ReasonNotFound, discovery.Evidence{})
	}
	if got := log.whole.written; len(got) != 1 {
		t.Errorf("stored: %v", got)
	}
}

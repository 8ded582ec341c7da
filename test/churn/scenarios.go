package churn

import (
	"cmp"
	"fmt"
)

// scenarios are operations that belong together: they bring a subject into a situation in which bugs
// of one kind show. Random operations seldom have their order. Each has objects a/x, a/y, b/x and b/y of one
// type, and a lease with a handler, which is at rest before the first fault.
var scenarios = []func(*generator){
	(*generator).missedChanges,
	(*generator).forbiddenAtFirst,
	(*generator).mergedEvents,
	(*generator).changedSet,
	(*generator).replacedWhileWaiting,
	(*generator).forbiddenWhileListed,
	(*generator).halfForbidden,
	(*generator).resumedSet,
	(*generator).endedHandler,
	(*generator).missedDefinition,
	(*generator).movedDuringOutage,
	(*generator).polled,
	(*generator).similarObjects,
	(*generator).absentType,
	(*generator).keptObjects,
	(*generator).heldObjects,
	(*generator).panickingHandler,
	(*generator).followedTypes,
	(*generator).failedConversion,
	(*generator).quickChanges,
	(*generator).expiredPages,
	(*generator).withheldBookmarks,
	(*generator).brokenEvents,
	(*generator).goneWhileWaiting,
}

// scene is the type, the lease and the handler of a scenario.
type scene struct {
	*generator
	typ, lease, handler string
}

// scene begins a scenario. Without a scope, the type has any.
func (g *generator) scene(scope string) *scene {
	g.names++
	s := &scene{g, g.typ(), fmt.Sprintf("s%d", g.names), "h1"}
	s.served(scope)
	for _, object := range []string{"a/x", "a/y", "b/x", "b/y"} {
		s.do(Create, object, "color", g.color())
	}
	return s
}

// watch acquires the lease with these options, and adds the handler.
func (s *scene) watch(options ...string) {
	s.acquire(s.lease, s.typ, options...)
	s.add(Handle, []string{s.lease, s.handler})
}

// allow allows all requests for a type.
func (g *generator) allow(typ string) {
	for _, namespace := range []string{"", "a", "b"} {
		g.add(Allow, []string{typ}, "namespace", namespace)
	}
}

// served allows all requests for the type, and defines it.
func (s *scene) served(scope string) {
	s.allow(s.typ)
	switch was := s.scopes[s.typ]; {
	case was == "":
		s.add(Define, []string{s.typ}, "scope", cmp.Or(scope, s.scope()), "versions", "v1,v1beta1")
	case scope != "" && was != scope:
		s.add(Redefine, []string{s.typ}, "scope", scope, "versions", "v1,v1beta1")
	default:
		s.add(Serve, []string{s.typ}, "versions", "v1,v1beta1")
	}
}

// end ends a scenario, with another handler on the lease: the cache has objects by now. Some of the leases stay.
func (s *scene) end() {
	s.add(Handle, []string{s.lease, "last"})
	s.add(Settle, nil)
	switch s.IntN(6) {
	case 0:
		s.add(Retry, []string{s.lease})
	case 1:
		s.add(Unhandle, []string{s.lease, s.handler})
	default:
		s.add(Release, []string{s.lease})
	}
}

func (s *scene) do(verb, object string, params ...string) {
	s.add(verb, []string{s.typ, object}, params...)
}

// unreachable makes watches of the type fail with an expired version, and lists hang: what changes until the returned
// function is called is in no event, and a list follows.
func (s *scene) unreachable() (end func()) {
	expired, hanging := s.faultName(), s.faultName()
	s.add(Fault, []string{expired, s.typ}, "kind", pick(s.generator, "gone", "gonestatus"))
	s.add(Fault, []string{hanging, s.typ}, "kind", "hang", "verb", "list")
	s.add(Cut, []string{s.typ})
	s.add(Pause, []string{"400ms"})
	return func() {
		s.add(Heal, []string{hanging})
		s.add(Pause, []string{"100ms"})
	}
}

// missedChanges deletes, replaces and changes objects of which the subject gets no events.
func (g *generator) missedChanges() {
	s := g.scene("")
	s.watch("selector", "", "namespaces", pick(g, "", "", "a,b"))
	g.add(Settle, nil)
	end := s.unreachable()
	s.do(Delete, "a/x")
	s.do(Replace, "a/y", "color", g.color())
	s.do(Update, "b/x")
	s.do(Delete, "b/y")
	s.do(Create, "a/z", "color", g.color())
	end()
	s.end()
}

// forbiddenAtFirst revokes the permission for one of two namespaces before the first list of both.
func (g *generator) forbiddenAtFirst() {
	s := g.scene("Namespaced")
	g.add(Forbid, []string{s.typ}, "namespace", "b")
	s.watch("version", "v1", "form", "", "namespaces", "a,b", "selector", "")
	s.do(Update, "a/x")
	s.do(Update, "b/x")
	g.add(Settle, nil)
	s.do(Delete, "b/y")
	g.add(Allow, []string{s.typ}, "namespace", "b")
	s.do(Update, "b/x")
	s.end()
}

// forbiddenWhileListed revokes the permission for one of two namespaces, and both are listed again.
func (g *generator) forbiddenWhileListed() {
	s := g.scene("Namespaced")
	s.watch("version", "preferred", "namespaces", "a,b", "selector", "")
	g.add(Settle, nil)
	g.add(Forbid, []string{s.typ}, "namespace", "b")
	s.do(Update, "a/x")
	g.add(Serve, []string{s.typ}, "versions", "v1beta1")
	g.add(Settle, nil)
	s.do(Replace, "b/x")
	g.add(Allow, []string{s.typ}, "namespace", "b")
	s.end()
}

// halfForbidden revokes the permission for lists or for watches. The watch that is open can't be continued.
func (g *generator) halfForbidden() {
	s := g.scene("")
	s.watch("selector", "", "namespaces", pick(g, "", "", "a,b"))
	g.add(Settle, nil)
	verb := pick(g, "list", "watch")
	g.add(Fault, []string{g.faultName(), s.typ}, "kind", pick(g, "gone", "gonestatus"), "times", "1")
	g.add(Forbid, []string{s.typ}, "verb", verb)
	s.do(Delete, "a/x")
	s.do(Replace, "a/y", "color", g.color())
	g.add(Settle, nil)
	s.do(Update, "b/x")
	g.add(Allow, []string{s.typ}, "verb", verb)
	s.end()
}

// resumedSet changes objects of a set of namespaces, and then breaks its watches.
func (g *generator) resumedSet() {
	s := g.scene("Namespaced")
	s.watch("namespaces", "a,b", "coalescing", "", "version", "v1")
	g.add(Settle, nil)
	for _, object := range []string{"a/x", "b/x", "a/x", "a/y", "b/y", "b/x"} {
		s.do(Update, object)
	}
	g.add(Settle, nil)
	g.add(Cut, []string{s.typ})
	g.add(Pause, []string{"300ms"})
	s.do(Update, "a/x")
	s.do(Replace, "b/y")
	s.end()
}

// changedSet removes namespaces from a set, and adds others. Then the type loses its namespaces: the cache of the set has all objects, and one version.
func (g *generator) changedSet() {
	s := g.scene("Namespaced")
	s.watch("namespaces", "a,b", "version", "v1")
	g.add(Settle, nil)
	g.add(Namespace, []string{s.lease}, "names", pick(g, "a", "b,c"))
	s.do(Update, "a/x")
	s.do(Update, "b/x")
	g.add(Settle, nil)
	g.add(Namespace, []string{s.lease}, "names", pick(g, "a,b,c", "b", ""))
	s.do(Delete, "b/y")
	g.add(Redefine, []string{s.typ}, "scope", "Cluster", "versions", "v1,v1beta1")
	s.do(Create, "c/z", "color", g.color())
	g.add(Settle, nil)
	g.add(Pause, []string{"6s"}) // until the model has an answer for a version
	s.do(Update, "c/z", "color", g.color())
	s.end()
}

// movedDuringOutage changes a set of namespaces while lists in another version hang.
func (g *generator) movedDuringOutage() {
	s := g.scene("Namespaced")
	s.watch("namespaces", "a,b", "version", "preferred")
	g.add(Settle, nil)
	end := s.unreachable()
	g.add(Serve, []string{s.typ}, "versions", "v1beta1")
	g.add(Pause, []string{"1s"})
	g.add(Namespace, []string{s.lease}, "names", pick(g, "b", "a,c"))
	s.do(Update, "a/x")
	s.do(Delete, "b/x")
	end()
	g.add(Settle, nil)
	g.add(Serve, []string{s.typ}, "versions", "v1,v1beta1")
	g.add(Namespace, []string{s.lease}, "names", "a,b")
	s.end()
}

// mergedEvents lets the events of an object wait for a handler that merges them.
func (g *generator) mergedEvents() {
	s := g.scene("")
	s.watch("coalescing", pick(g, "yes", "yes", "yes", ""), "selector", "", "namespaces", "", "version", "v1")
	s.do(Delete, "a/z")
	g.add(Settle, nil)
	g.add(Block, []string{s.lease, s.handler}, "ms", "3000")
	s.do(Update, "a/y", "color", g.color())
	s.do(Update, "a/x")
	s.do(Update, "a/x", "color", g.color())
	s.do(Create, "a/z")
	s.do(Replace, "b/x", "color", g.color())
	s.do(Update, "b/y")
	s.do(Delete, "b/y")
	s.do(Delete, "a/z")
	s.do(Create, "b/y")
	s.do(Update, "b/y")
	g.add(Pause, []string{"100ms"})
	g.add(Unblock, []string{s.lease, s.handler})
	s.end()
}

// replacedWhileWaiting replaces the type while the events of its objects wait for a handler.
func (g *generator) replacedWhileWaiting() {
	s := g.scene("")
	s.watch("coalescing", pick(g, "yes", "yes", ""), "selector", "", "namespaces", "")
	g.add(Settle, nil)
	g.add(Block, []string{s.lease, s.handler}, "ms", "6000")
	s.do(Update, "b/y")
	g.add(Redefine, []string{s.typ}, "scope", g.scopes[s.typ], "versions", "v1,v1beta1")
	s.do(Create, "b/y", "color", g.color())
	s.do(Create, "a/x", "color", g.color())
	g.add(Pause, []string{"300ms"})
	g.add(Unblock, []string{s.lease, s.handler})
	s.end()
}

// endedHandler removes a handler, or releases its lease, while events wait for it.
func (g *generator) endedHandler() {
	s := g.scene("")
	s.watch("selector", "", "namespaces", "", "version", "v1")
	g.add(Settle, nil)
	g.add(Block, []string{s.lease, s.handler}, "ms", "3000")
	for _, object := range []string{"a/x", "a/y", "b/x", "b/y"} {
		s.do(Update, object)
	}
	g.add(Pause, []string{"50ms"})
	if g.IntN(2) == 0 {
		g.add(Unhandle, []string{s.lease, s.handler})
	} else {
		g.add(Release, []string{s.lease})
	}
	s.do(Update, "a/x")
	s.do(Delete, "a/y")
	s.end()
}

// goneWhileWaiting lets events wait for a handler while a list shows that their objects are gone.
func (g *generator) goneWhileWaiting() {
	s := g.scene("")
	s.watch("selector", "", "namespaces", pick(g, "", "", "a,b"), "coalescing", "", "packed", "", "form", "")
	g.add(Settle, nil)
	g.add(Block, []string{s.lease, s.handler}, "ms", "5000")
	for _, object := range []string{"b/y", "a/x", "b/x", "a/y"} {
		s.do(Update, object)
	}
	end := s.unreachable()
	s.do(Delete, "a/x")
	s.do(Replace, "b/x", "color", g.color())
	end()
	g.add(Pause, []string{"2s"}) // a list that has failed is late
	g.add(Unblock, []string{s.lease, s.handler})
	s.end()
}

// missedDefinition changes the type while discovery and requests for it fail.
func (g *generator) missedDefinition() {
	s := g.scene("")
	s.watch("namespaces", "")
	g.add(Settle, nil)
	documents, requests := g.faultName(), g.faultName()
	g.add(Fault, []string{documents, everyType}, "kind", pick(g, "breakdiscovery", "breakdefinitions", "breakgroup", "deadgroup", "stalegroup", "stalediscovery"), "code", "503")
	g.add(Fault, []string{requests, s.typ}, "kind", pick(g, "fail", "hang"))
	g.add(Cut, []string{s.typ})
	switch g.IntN(4) {
	case 0:
		g.add(Undefine, []string{s.typ})
	case 1:
		g.add(Serve, []string{s.typ}, "versions", pick(g, "v1", "v1beta1"))
	default:
		g.add(Redefine, []string{s.typ}, "scope", pick(g, "Namespaced", "Cluster"), "versions", g.versions())
		s.do(Create, "a/x", "color", g.color())
	}
	g.add(Heal, []string{requests})
	s.end()
}

// polled refuses watches, so that lists replace them.
func (g *generator) polled() {
	s := g.scene("")
	s.watch("polling", "yes", "namespaces", pick(g, "", "a,b"), "version", "v1")
	g.add(Settle, nil)
	refused := g.faultName()
	g.add(Fault, []string{refused, s.typ}, "kind", "fail", "code", "405", "verb", "watch")
	g.add(Cut, []string{s.typ})
	s.do(Update, "a/x")
	s.do(Delete, "a/y")
	g.add(Pause, []string{pick(g, "100ms", "1s")})
	s.do(Update, "b/x")
	s.do(Replace, "b/y")
	s.end()
}

// similarObjects has many objects that differ little.
func (g *generator) similarObjects() {
	s := g.scene("")
	s.watch("packed", pick(g, "yes", ""), "form", pick(g, "", "metadata", "typed"), "transform", "", "selector", "")
	g.add(Fill, []string{s.typ, "a"}, "count", "10")
	g.add(Settle, nil)
	g.add(Fill, []string{s.typ, "a"}, "count", "10")
	g.add(Cut, []string{s.typ})
	g.add(Fill, []string{s.typ, "b"}, "count", "5")
	s.end()
}

// absentType deletes a type, acquires another lease on it, and creates the type again.
func (g *generator) absentType() {
	s := g.scene("")
	s.watch()
	g.add(Settle, nil)
	g.add(Undefine, []string{s.typ})
	g.add(Settle, nil)
	other := s.lease + "b"
	g.acquire(other, s.typ)
	g.handle(other)
	g.add(Settle, nil)
	g.add(Define, []string{s.typ}, "scope", g.scope(), "versions", g.versions())
	s.do(Create, "a/x", "color", g.color())
	s.do(Create, "b/y", "color", g.color())
	g.add(Settle, nil)
	g.add(Release, []string{other})
	s.end()
}

// keptObjects deletes a type whose objects stay in the cache, while no watch sends their deletions. Then there is another type.
func (g *generator) keptObjects() {
	s := g.scene("")
	s.watch("removal", "keep", "selector", "", "namespaces", "", "polling", "")
	g.add(Settle, nil)
	fault := g.faultName()
	g.add(Fault, []string{fault, s.typ}, "kind", pick(g, "fail", "hang"))
	g.add(Cut, []string{s.typ})
	s.do(Update, "a/x")
	g.add(Undefine, []string{s.typ})
	g.add(Settle, nil)
	if g.IntN(2) == 0 {
		g.add(Define, []string{s.typ}, "scope", g.scope(), "versions", g.versions())
		s.do(Create, "a/x", "color", g.color())
		g.add(Settle, nil)
	}
	s.end()
}

// heldObjects deletes objects with finalizers, and the type while there are such objects. The subject misses some of the events.
func (g *generator) heldObjects() {
	s := g.scene("")
	s.watch()
	g.add(Settle, nil)
	s.do(Hold, "a/x")
	s.do(Hold, "a/y")
	s.do(Delete, "a/x")
	s.do(Update, "a/x", "color", g.color())
	g.add(Settle, nil)
	end := func() {}
	if g.IntN(2) == 0 {
		end = s.unreachable()
	}
	g.add(Terminate, []string{s.typ})
	s.do(Update, "a/y")
	s.do(Free, "a/x")
	end()
	g.add(Settle, nil)
	s.do(Free, "a/y")
	g.add(Define, []string{s.typ}, "scope", g.scope(), "versions", g.versions())
	s.do(Create, "a/x", "color", g.color())
	s.end()
}

// panickingHandler lets a handler panic in its calls, beside one that does not.
func (g *generator) panickingHandler() {
	s := g.scene("")
	s.handler = "h2"
	s.watch("recovery", "yes", "version", "v1")
	g.add(Handle, []string{s.lease, "h1"}, "panics", pick(g, "1", "2", "3"))
	s.do(Update, "a/x")
	s.do(Replace, "b/x", "color", g.color())
	g.add(Settle, nil)
	g.add(Cut, []string{s.typ})
	s.do(Delete, "a/y")
	s.do(Update, "b/y", "color", g.color())
	s.end()
}

// followedTypes follows types while they come and go.
func (g *generator) followedTypes() {
	s := g.scene("")
	following := s.lease + "f"
	g.follow(following)
	g.add(Settle, nil)
	g.add(Undefine, []string{s.typ})
	g.add(Settle, nil)
	g.add(Define, []string{s.typ}, "scope", g.scope(), "versions", "v1,v1beta1")
	s.do(Create, "a/x", "color", g.color())
	g.add(Settle, nil)
	if g.IntN(2) == 0 {
		g.add(Redefine, []string{s.typ}, "scope", g.scope(), "versions", g.versions())
		s.do(Create, "a/x", "color", g.color())
	} else {
		g.add(Serve, []string{s.typ}, "versions", pick(g, "v1", "v1beta1"))
		s.do(Update, "a/x")
	}
	g.add(Settle, nil)
	g.add(Unfollow, []string{following})
	s.end()
}

// failedConversion lets the conversion of a type fail before the server has converted an object, and again after it has.
func (g *generator) failedConversion() {
	s := g.scene("")
	g.add(Redefine, []string{s.typ}, "scope", g.scopes[s.typ], "versions", "v1,v1beta1", "conversion", "webhook")
	g.add(BreakConversion, []string{s.typ}) // before the server gets an object, which it would convert at once
	s.do(Create, "a/x", "color", g.color())
	s.do(Create, "b/x", "color", g.color())
	s.watch("version", pick(g, "v1beta1", "v1beta1", "v1"), "namespaces", "")
	g.add(Settle, nil)
	g.add(MendConversion, []string{s.typ})
	g.add(Settle, nil)
	g.add(BreakConversion, []string{s.typ})
	if g.IntN(2) == 0 {
		g.add(Cut, []string{s.typ})
	}
	s.do(Update, "a/x", "color", g.color())
	s.do(Create, "a/y", "color", g.color())
	s.do(Replace, "b/x", "color", g.color())
	if g.IntN(2) == 0 {
		g.add(Settle, nil)
	}
	g.add(MendConversion, []string{s.typ})
	g.add(Settle, nil)
	s.do(Update, "a/y")
	s.end()
}

// aggregations are the scenarios with an aggregated server.
var aggregations = []func(*generator){
	(*generator).movedType,
	(*generator).movedWhileCut,
	(*generator).aggregatedServerDown,
}

// movedType moves the types to the aggregated server, and back.
func (g *generator) movedType() {
	s := g.scene("")
	s.watch()
	g.add(Settle, nil)
	g.add(Move, nil)
	s.do(Create, "a/x", "color", g.color())
	s.do(Create, "b/x", "color", g.color())
	g.add(pick(g, Settle, Settle, Return), nil)
	s.do(Update, "a/x")
	s.do(Delete, "b/x")
	g.add(Return, nil)
	s.do(Update, "a/x", "color", g.color())
	s.do(Delete, "b/y")
	s.end()
}

// movedWhileCut moves the types to the aggregated server, and back, while their requests fail.
func (g *generator) movedWhileCut() {
	s := g.scene("")
	s.watch("namespaces", pick(g, "", "a,b"))
	g.add(Move, nil)
	s.do(Create, "a/x", "color", g.color())
	s.do(Create, "a/w", "color", g.color())
	g.add(Settle, nil)
	end := s.unreachable()
	g.add(Return, nil)
	s.do(Replace, "a/x", "color", g.color())
	if g.IntN(2) == 0 {
		g.add(Move, nil)
		s.do(Update, "a/x")
	}
	end()
	g.add(Settle, nil)
	g.add(Return, nil)
	s.end()
}

// aggregatedServerDown stops the aggregated server for a time.
func (g *generator) aggregatedServerDown() {
	s := g.scene("")
	s.watch()
	g.add(Move, nil)
	for _, object := range []string{"a/x", "a/y", "b/x"} {
		s.do(Create, object, "color", g.color())
	}
	g.add(Settle, nil)
	g.add(Down, nil)
	s.do(Update, "a/x")
	s.do(Delete, "a/y")
	s.do(Create, "b/y", "color", g.color())
	if g.IntN(2) == 0 {
		g.add(Settle, nil)
	} else {
		g.add(Cut, []string{s.typ})
	}
	g.add(Pause, []string{pick(g, "100ms", "1s")})
	g.add(Up, nil)
	g.add(pick(g, Settle, Return), nil)
	g.add(Return, nil)
	s.end()
}

// quickChanges changes the same objects several times while nothing fails: a slow handler gets each state.
func (g *generator) quickChanges() {
	s := g.scene("")
	s.acquire(s.lease, s.typ, "coalescing", "", "selector", "")
	s.add(Handle, []string{s.lease, s.handler}, "ms", pick(g, "", "20", "50"))
	g.add(Settle, nil)
	for range 3 {
		s.do(Update, "a/x")
		s.do(Update, "a/x", "color", g.color())
		s.do(Replace, "b/x")
	}
	s.do(Delete, "a/y")
	s.do(Create, "a/z", "color", g.color())
	s.do(Update, "a/z")
	s.do(Delete, "a/z")
	s.do(Update, "a/x")
	s.end()
}

// expiredPages makes a list in pages necessary, whose second page has expired.
func (g *generator) expiredPages() {
	s := g.scene("")
	s.do(Create, "a/z", "color", g.color())
	s.watch("selector", "", "pagesize", "2", "watchlist", "never", "namespaces", pick(g, "", "", "a,b"))
	g.add(Settle, nil)
	pages, expired := g.faultName(), g.faultName()
	g.add(Fault, []string{pages, s.typ}, "kind", "expirecontinue", "at", "1")
	g.add(Fault, []string{expired, s.typ}, "kind", pick(g, "gone", "gonestatus"), "times", "2")
	g.add(Cut, []string{s.typ})
	s.do(Delete, "a/x")
	s.do(Update, "b/y", "color", g.color())
	s.do(Create, "b/z", "color", g.color())
	g.add(Pause, []string{pick(g, "300ms", "1500ms")})
	s.do(Update, "a/z")
	s.end()
}

// withheldBookmarks acquires leases with a watch of their own, whose bookmark at the end of the initial events is late or does not come.
func (g *generator) withheldBookmarks() {
	s := g.scene("")
	own := []string{"selector", "", "namespaces", "", "separate", "yes", "watchlist", "anywhere", "polling", ""}
	kinds := []string{"dropbookmarks", "noinitialend", "delaybookmarks"}
	g.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	withhold := func(kind string) (name string) {
		name = g.faultName()
		late := map[string]string{"delaybookmarks": pick(g, "20", "200", "2000", "10000")}
		g.add(Fault, []string{name, s.typ}, "kind", kind, "ms", late[kind])
		return name
	}
	var others []string
	for n, kind := range kinds[1:] {
		withheld := withhold(kind)
		others = append(others, fmt.Sprintf("%s%c", s.lease, 'a'+n))
		g.acquire(others[n], s.typ, own...)
		g.add(Pause, []string{pick(g, "100ms", "300ms")})
		g.add(Heal, []string{withheld})
	}
	withheld := withhold(kinds[0])
	s.watch(own...)
	g.add(Pause, []string{pick(g, "100ms", "500ms")})
	s.do(Update, "a/x", "color", g.color())
	s.do(Delete, "b/x")
	if g.IntN(2) == 0 {
		g.add(Heal, []string{withheld})
	} else {
		g.add(Pause, []string{"200ms"})
	}
	s.do(Create, "b/z", "color", g.color())
	s.end()
	for _, lease := range others {
		g.add(Release, []string{lease})
	}
}

// brokenEvents makes the first events of watches invalid, or sends them twice.
func (g *generator) brokenEvents() {
	s := g.scene("")
	s.watch("selector", "", "polling", "")
	g.add(Settle, nil)
	broken := g.faultName()
	g.add(Fault, []string{broken, s.typ}, "kind", pick(g, "garbleframe", "duplicateframe"), "at", "1", "times", pick(g, "", "3"))
	g.add(Cut, []string{s.typ})
	g.add(Pause, []string{"100ms"})
	for _, object := range []string{"a/x", "b/x", "a/x"} {
		s.do(Update, object)
		g.add(Pause, []string{"50ms"})
	}
	s.do(Delete, "a/y")
	s.do(Replace, "b/y", "color", g.color())
	g.add(Pause, []string{"100ms"})
	s.end()
}

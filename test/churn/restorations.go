package churn

import "fmt"

// rewind restores the last backup, and waits until the subject is at rest again. The subject has got the last versions before. Often, something
// happens between that and the restore.
func (g *generator) rewind() {
	g.add(Settle, nil)
	if g.IntN(2) == 0 {
		g.add(Advance, nil)
		for range 1 + g.IntN(3) {
			pick(g, g.changeObject, g.subject, g.fault, g.fault, g.definition, func() { g.add(Cut, []string{everyType}) })()
		}
	}
	g.add(Restore, nil)
	for range g.IntN(3) {
		g.changeObject()
	}
	g.add(Settle, nil)
}

// restorable adds what the verb advance requires of all types: no permission is revoked, no conversion fails, and all versions are served.
func (g *generator) restorable() {
	for n := range g.profile.Types {
		typ := fmt.Sprintf("t%d", n+1)
		g.allow(typ)
		g.add(MendConversion, []string{typ})
		if g.scopes[typ] != "" {
			g.add(Serve, []string{typ}, "versions", "v1,v1beta1")
		}
	}
}

// restorations are the scenarios with a restore of etcd.
var restorations = []func(*generator){
	(*generator).restoredWhileUnreachable,
	(*generator).restoredVersions,
	(*generator).restoredObjects,
	(*generator).restoredType,
	(*generator).restoredWhileHandled,
	(*generator).restoredWhileAcquired,
}

// restoredWhileUnreachable restores etcd while the subject gets no events, waits for versions that it has not got, or gets a part of a list.
func (g *generator) restoredWhileUnreachable() {
	s := g.scene("")
	g.restorable()
	s.watch("selector", "", "pagesize", "2", "watchlist", pick(g, "never", ""))
	g.add(Settle, nil)
	g.add(Backup, nil)
	s.do(Update, "a/x", "color", g.color())
	s.do(Delete, "a/y")
	g.add(Advance, nil)
	failing := g.faultName()
	g.add(Fault, []string{failing, s.typ}, pick(g,
		[]string{"kind", "hang", "verb", "watch"}, []string{"kind", "fail", "code", "503"}, []string{"kind", "hang", "verb", "list", "share", "0.5"},
		[]string{"kind", "dropbookmarks"})...)
	if g.IntN(3) == 0 {
		g.add(Fault, []string{g.faultName(), everyType}, "kind", pick(g, "breakdefinitions", "breakdiscovery", "stalediscovery"), "code", "503")
	}
	g.add(Cut, []string{s.typ})
	s.do(Update, "a/x")
	s.do(Replace, "b/x", "color", g.color())
	if g.IntN(3) == 0 {
		g.add(Forbid, []string{s.typ}, "verb", "watch")
	}
	g.add(Restore, nil)
	s.do(Update, "a/x")
	g.add(Pause, []string{pick(g, "100ms", "1s")})
	g.allow(s.typ)
	g.add(Heal, []string{failing})
	s.end()
}

// restoredWhileHandled restores etcd while a handler has not been called for all events of the lost history, or panics.
func (g *generator) restoredWhileHandled() {
	s := g.scene("")
	g.restorable()
	s.handler = "h2"
	s.watch("selector", "", "coalescing", pick(g, "yes", "yes", ""), "recovery", "yes")
	g.add(Handle, []string{s.lease, "h1"}, "ms", "20", "panics", "3")
	g.add(Settle, nil)
	g.add(Backup, nil)
	s.do(Update, "a/x", "color", g.color())
	g.add(Advance, nil)
	g.add(Block, []string{s.lease, s.handler}, "ms", "3000")
	s.do(Update, "a/x")
	s.do(Update, "a/x")
	s.do(Delete, "a/y")
	s.do(Replace, "b/x", "color", g.color())
	s.do(Create, "a/z", "color", g.color())
	if g.IntN(2) == 0 {
		g.add(Pause, []string{"100ms"}) // events come
	}
	g.add(Restore, nil)
	s.do(Update, "a/x", "color", g.color())
	s.do(Create, "a/z", "color", g.color())
	s.do(Delete, "b/y")
	if g.IntN(2) == 0 {
		g.add(Unblock, []string{s.lease, s.handler})
	}
	s.end()
}

// restoredWhileAcquired restores etcd while leases are acquired and released, and their first lists wait, and types or their versions change.
func (g *generator) restoredWhileAcquired() {
	s := g.scene("")
	g.restorable()
	s.watch()
	g.add(Settle, nil)
	g.add(Backup, nil)
	s.do(Replace, "a/x", "color", g.color())
	g.add(Advance, nil)
	waiting := g.faultName()
	g.add(Fault, []string{waiting, s.typ}, "kind", "hang", "verb", "list,watch", "share", pick(g, "", "0.5"))
	other, last := s.lease+"b", s.lease+"c"
	g.acquire(other, s.typ, "separate", "yes", "pagesize", "2")
	g.handle(other)
	switch g.IntN(4) {
	case 0:
		g.add(Serve, []string{s.typ}, "versions", "v1beta1")
	case 1:
		g.add(Redefine, []string{s.typ}, "scope", g.scopes[s.typ], "versions", "v1,v1beta1")
		s.do(Create, "a/x", "color", g.color())
	case 2:
		g.add(Release, []string{s.lease})
	}
	g.add(Restore, nil)
	g.add(Release, []string{other})
	g.acquire(last, s.typ)
	g.handle(last)
	s.do(Update, "a/x", "color", g.color())
	g.add(Heal, []string{waiting})
	s.end()
	g.add(Release, []string{last})
}

// restoredObjects restores etcd, and gives an object another content with the version that it had before. The subject lists
// after that.
func (g *generator) restoredObjects() {
	s := g.scene("")
	g.restorable()
	s.watch("selector", "", "version", "v1")
	g.add(Settle, nil)
	g.add(Backup, nil)
	s.do(Update, "a/x", "color", g.color())
	s.do(Delete, "a/y")
	s.do(Replace, "b/x")
	s.do(Create, "a/z", "color", g.color())
	hanging := g.faultName()
	g.add(Settle, nil)
	g.add(Fault, []string{hanging, s.typ}, "kind", "hang", "verb", "list")
	g.add(Restore, nil)
	s.do(Update, "a/x", "color", g.color())
	g.add(Heal, []string{hanging})
	s.end()
}

// restoredVersions restores the served versions of a type.
func (g *generator) restoredVersions() {
	s := g.scene("")
	g.restorable()
	s.watch("version", pick(g, "v1", "v1", "preferred"))
	g.add(Serve, []string{s.typ}, "versions", "v1beta1")
	g.add(Settle, nil)
	g.add(Backup, nil)
	g.add(Serve, []string{s.typ}, "versions", "v1,v1beta1")
	s.do(Update, "a/x")
	g.rewind()
	s.do(Update, "b/x")
	s.end()
}

// restoredType restores a type that has been replaced.
func (g *generator) restoredType() {
	s := g.scene("")
	g.restorable()
	s.watch()
	g.add(Settle, nil)
	g.add(Backup, nil)
	s.do(Update, "a/x", "color", g.color())
	g.add(Redefine, []string{s.typ}, "scope", g.scopes[s.typ], "versions", "v1,v1beta1")
	s.do(Create, "a/x", "color", g.color())
	g.rewind()
	s.do(Update, "a/x", "color", g.color())
	s.do(Delete, "b/y")
	s.end()
}

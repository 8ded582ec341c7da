package churn

// labelings are the scenarios with Namespace objects.
var labelings = []func(*generator){
	(*generator).labeledNamespaces,
	(*generator).endedNamespace,
	(*generator).unanswered,
}

// inOwnNamespaces creates the run's own namespaces, in red, and an object in each.
func (s *scene) inOwnNamespaces() {
	for _, name := range ownNamespaces {
		s.add(NewNamespace, []string{name}, "color", "red")
		s.add(Label, []string{name}, "color", "red")
		s.do(Create, name+"/x", "color", s.color())
	}
}

// labeledNamespaces makes namespaces enter and leave the set of a lease by their labels. At first, lists fail: nothing else than the labels
// says that a namespace, and so its objects, still exist.
func (g *generator) labeledNamespaces() {
	s := g.scene("Namespaced")
	s.inOwnNamespaces()
	s.watch("labeled", "red", "version", "v1", "selector", "")
	g.add(Settle, nil)
	g.add(Fault, []string{g.faultName(), s.typ}, "kind", "fail", "verb", "list") // a list that hangs is sent again after settle
	g.add(Label, []string{"d1"}, "color", "blue")
	s.do(Update, "d1/x")
	s.do(Create, "d2/y", "color", g.color())
	g.add(Pause, []string{"1s"})
	g.add(Settle, nil)
	end := func() {}
	if g.IntN(2) == 0 {
		end = s.unreachable()
	}
	g.add(Label, []string{"d1"}, "color", "red")
	g.add(Label, []string{"d2"}, "color", "blue")
	s.do(Replace, "d1/x", "color", g.color())
	end()
	s.end()
}

// unanswered lets a namespace lose its label, or ends it, while requests for Namespace objects fail.
func (g *generator) unanswered() {
	s := g.scene("Namespaced")
	s.inOwnNamespaces()
	s.watch("labeled", "red", "selector", "")
	g.add(Settle, nil)
	failing := g.faultName()
	g.add(Fault, []string{failing, everyNamespace}, "kind", "fail", "code", pick(g, "", "403"), "verb", pick(g, "list", "list", "watch"))
	if g.IntN(3) == 0 {
		g.add(Cut, []string{everyNamespace})
	}
	if g.IntN(2) == 0 {
		g.add(Label, []string{"d1"}, "color", "blue")
		s.do(Update, "d1/x")
	} else {
		g.add(EndNamespace, []string{"d1"})
	}
	g.add(Label, []string{"d2"}, "color", "blue")
	g.add(Pause, []string{"300ms"})
	g.add(Heal, []string{failing})
	g.add(Settle, nil)
	g.add(Label, []string{"d2"}, "color", "red")
	s.end()
}

// endedNamespace deletes a namespace with its objects, and creates it again.
func (g *generator) endedNamespace() {
	s := g.scene("Namespaced")
	s.inOwnNamespaces()
	s.do(Create, "d1/y", "color", g.color())
	s.watch("labeled", pick(g, "red", "red", ""), "selector", "")
	g.add(Settle, nil)
	end := func() {}
	if g.IntN(2) == 0 {
		end = s.unreachable()
	}
	g.add(EndNamespace, []string{"d1"}, "ms", pick(g, "", "50", "300"))
	if g.IntN(2) == 0 {
		g.add(Settle, nil)
	}
	g.add(NewNamespace, []string{"d1"}, "color", pick(g, "red", "red", "blue"))
	s.do(Create, "d1/x", "color", g.color())
	end()
	s.end()
}

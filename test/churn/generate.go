package churn

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Profile is what a generator of scripts may use.
type Profile struct {
	// Length is the minimum number of operations. Zero is 120. Scenarios are added whole, and settle is the last operation, so that a script may have
	// more. It is shorter if Without leaves out all operations.
	Length int
	// Types is the number of types. Zero is 2.
	Types int
	// Servers is the number of [Config.Servers]. With more than one, the verbs alternate and lag are allowed.
	Servers int
	// Restore allows the verbs backup and restore.
	Restore bool
	// Aggregated allows the verbs move, return, down and up.
	Aggregated bool
	// Namespaces means that the servers have Namespace objects. It allows the verbs newnamespace, label and endnamespace.
	Namespaces bool
	// Without are verbs, and kinds of faults, that are left out.
	Without []string
}

// Generate returns the script of a seed. Equal arguments give equal scripts.
func Generate(seed uint64, p Profile) Script {
	if p.Length <= 0 {
		p.Length = 120
	}
	if p.Types <= 0 {
		p.Types = 2
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 18)), profile: p, exists: map[string]bool{}, scopes: map[string]string{}} //nolint:gosec // reproducible
	g.begin()
	// Scripts of successive seeds have all scenarios in turn, and all kinds of faults.
	slots := max(1, p.Length/scenarioEvery)
	scenario, kinds := seed*uint64(slots), g.kinds()
	perSlot := (len(kinds) + slots*seedsOfAllKinds - 1) / (slots * seedsOfAllKinds)
	kind := seed * uint64(slots*perSlot)
	next, before := len(g.script), 0
	for idle := 0; len(g.script) < p.Length && idle < maxIdle; idle++ {
		if len(g.script) > before {
			idle, before = 0, len(g.script)
		}
		if len(g.script) < next {
			g.next()
			continue
		}
		g.scenario(scenario)
		for range perSlot { // a scenario heals the faults before it
			g.inject(kinds[kind%uint64(len(kinds))])
			kind++
		}
		scenario++
		next += scenarioEvery
	}
	return append(g.script, NewOp(Settle, nil))
}

// scenario adds the scenario with this number. Every other one is special to the servers, if some are.
func (g *generator) scenario(number uint64) {
	var special []func(*generator)
	if g.profile.Restore {
		special = append(special, restorations...)
	}
	if g.profile.Aggregated {
		special = append(special, aggregations...)
	}
	if g.profile.Namespaces {
		special = append(special, labelings...)
	}
	if g.profile.Servers > 1 {
		special = append(special, laggings...)
	}
	all := scenarios
	switch {
	case len(special) == 0:
	case number%2 == 0:
		all, number = special, number/2
	default:
		number /= 2
	}
	all[number%uint64(len(all))](g)
}

// scenarioEvery is the number of operations from the beginning of one scenario to that of the next.
const scenarioEvery = 30

// maxIdle is how often in a row the generator may choose only what the profile leaves out.
const maxIdle = 1000

// seedsOfAllKinds is the number of successive seeds whose scripts have all kinds of faults that the profile allows.
const seedsOfAllKinds = 12

type generator struct {
	*rand.Rand
	profile Profile
	script  Script
	faults  []string
	names   int
	exists  map[string]bool   // the objects that were created and not deleted
	scopes  map[string]string // of the types that exist
	set     string            // the last lease with a set of namespaces
}

func (g *generator) add(verb string, args []string, params ...string) {
	op := NewOp(verb, args, params...)
	for _, without := range g.profile.Without {
		if without == verb || without == op.With["kind"] {
			return
		}
	}
	g.script = append(g.script, op)
	switch typ := op.Arg("type"); {
	case verb == Undefine || verb == Terminate:
		delete(g.scopes, typ)
	case verb == Redefine || verb == Define && g.scopes[typ] == "":
		g.scopes[typ] = op.With["scope"]
	case verb == Create:
		g.exists[typ+" "+op.Arg("object")] = true
	case verb == Delete:
		delete(g.exists, typ+" "+op.Arg("object"))
	}
}

func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// sometimes returns value with a probability of one in n, and otherwise "".
func (g *generator) sometimes(n int, value string) string {
	if g.IntN(n) == 0 {
		return value
	}
	return ""
}

func (g *generator) typ() string       { return fmt.Sprintf("t%d", 1+g.IntN(g.profile.Types)) }
func (g *generator) lease() string     { return fmt.Sprintf("l%d", 1+g.IntN(4)) }
func (g *generator) handler() string   { return fmt.Sprintf("h%d", 1+g.IntN(2)) }
func (g *generator) namespace() string { return pick(g, "a", "b", "c") }

func (g *generator) object() string {
	namespace := g.namespace()
	if g.profile.Namespaces && g.IntN(5) == 0 {
		namespace = pick(g, ownNamespaces...)
	}
	return namespace + "/" + pick(g, "x", "y", "z")
}

func (g *generator) color() string { return pick(g, "red", "blue") }

func (g *generator) versions() string {
	if slices.Contains(g.profile.Without, Serve) {
		return "v1,v1beta1" // they can't change
	}
	return pick(g, "v1", "v1", "v1,v1beta1", "v1,v1beta1", "v1beta1")
}

func (g *generator) scope() string {
	return pick(g, "Namespaced", "Namespaced", "Namespaced", "Cluster")
}

// begin adds types, some objects, leases and handlers, so that every script has something to do.
func (g *generator) begin() {
	if g.profile.Servers > 1 && g.IntN(2) == 0 {
		g.add(Alternate, nil, "period", "2")
	}
	if g.IntN(2) == 0 {
		g.add(Restart, nil, "pagesize", g.sometimes(2, "3"), "watchlist", g.sometimes(2, "never"))
	}
	for n := range g.profile.Types {
		typ := fmt.Sprintf("t%d", n+1)
		if n == 0 || g.IntN(3) > 0 {
			g.add(Define, []string{typ}, "scope", g.scope(), "versions", g.versions())
			for range g.IntN(4) {
				g.add(Create, []string{typ, g.object()}, "color", g.color())
			}
		}
		lease := fmt.Sprintf("l%d", n+1)
		g.acquire(lease, typ)
		g.handle(lease)
	}
}

// next adds an operation, or a few that belong together.
func (g *generator) next() {
	roll := g.IntN(100)
	for _, kind := range []struct {
		below int
		add   func()
	}{
		{46, g.changeObject},
		{49, g.gap},
		{56, g.definition},
		{65, g.subject},
		{76, g.fault},
		{80, func() { g.add(Cut, []string{pick(g, g.typ(), everyType)}) }},
		{85, g.permission},
		{88, g.server},
		{95, func() { g.add(Pause, []string{pick(g, "5ms", "20ms", "100ms", "300ms", "1s")}) }},
		{98, func() { g.add(Settle, nil) }},
		{100, g.restart},
	} {
		if roll < kind.below {
			kind.add()
			return
		}
	}
}

// server changes which server responds, its state, or a Namespace object.
func (g *generator) server() {
	if g.profile.Namespaces && g.IntN(2) == 0 {
		g.ownNamespace()
		return
	}
	if g.profile.Aggregated && g.IntN(2) == 0 {
		g.add(pick(g, Move, Return, Return, Down, Up), nil)
		return
	}
	if g.profile.Servers > 1 && (!g.profile.Restore || g.IntN(2) == 0) {
		if g.IntN(2) == 0 {
			g.lag()
			return
		}
		g.add(Alternate, nil, "period", pick(g, "0", "2", "2", "3"))
	} else if g.profile.Restore {
		pick(g, func() { g.add(Backup, nil) }, g.rewind)()
	}
}

// ownNamespace changes a Namespace object.
func (g *generator) ownNamespace() {
	args := []string{pick(g, ownNamespaces...)}
	switch g.IntN(4) {
	case 0:
		g.add(EndNamespace, args, "ms", pick(g, "", "20"))
	case 1:
		g.add(Label, args, "color", g.color())
	default:
		g.add(NewNamespace, args, "color", g.color())
	}
}

// restart starts the subject again, with leases.
func (g *generator) restart() {
	g.add(Restart, nil, "pagesize", g.sometimes(2, "3"), "watchlist", g.sometimes(2, "never"))
	for n := range g.profile.Types {
		lease := fmt.Sprintf("l%d", n+1)
		g.acquire(lease, g.typ())
		g.handle(lease)
	}
}

// changeObject adds an operation on one object, which usually has an effect.
func (g *generator) changeObject() {
	typ, object := g.typ(), g.object()
	args := []string{typ, object}
	if g.IntN(12) == 0 {
		g.add(Fill, []string{typ, g.namespace()}, "count", pick(g, "3", "10"))
		return
	}
	if !g.exists[typ+" "+object] {
		g.add(Create, args, "color", g.color())
		return
	}
	switch g.IntN(12) {
	case 10:
		g.add(Hold, args)
	case 11:
		g.add(Free, args)
	case 0, 1, 2, 3, 4:
		g.add(Update, args, "color", g.sometimes(2, g.color()))
	case 5, 6:
		g.add(Delete, args)
	case 7:
		g.add(Create, args, "color", g.color()) // it may have been deleted with its type
	default:
		g.add(Replace, args, "color", g.color())
	}
}

// definition changes a type.
func (g *generator) definition() {
	typ := g.typ()
	switch g.IntN(9) {
	case 8:
		g.add(pick(g, BreakConversion, MendConversion), []string{typ})
	case 6:
		g.held(typ)
	case 0:
		g.add(Define, []string{typ}, "scope", g.scope(), "versions", g.versions(), "conversion", g.sometimes(3, "webhook"))
	case 1, 2, 7:
		g.absence(typ)
	case 3:
		g.add(Redefine, []string{typ}, "scope", g.scope(), "versions", g.versions(), "conversion", g.sometimes(2, "webhook"))
		g.add(Create, []string{typ, g.object()}, "color", g.color())
	default:
		g.add(Serve, []string{typ}, "versions", g.versions())
	}
}

// held deletes a type of which an object has a finalizer. The subject comes to rest while the deletion waits.
func (g *generator) held(typ string) {
	args := []string{typ, g.object()}
	g.add(Create, args, "color", g.color())
	g.add(Hold, args)
	g.add(Terminate, []string{typ})
	g.changeObject()
	g.add(Settle, nil)
	g.add(Free, args)
}

// absence deletes a type. Usually, the subject comes to rest without it, also with a lease that was acquired meanwhile, and the type
// is created again.
func (g *generator) absence(typ string) {
	g.add(Undefine, []string{typ})
	if g.IntN(3) == 0 {
		lease := g.lease()
		g.acquire(lease, typ)
		g.handle(lease)
	}
	for range g.IntN(3) {
		g.changeObject()
	}
	if g.IntN(4) > 0 {
		g.add(Settle, nil)
	}
	if g.IntN(4) > 0 {
		g.add(Define, []string{typ}, "scope", g.scope(), "versions", g.versions(), "conversion", g.sometimes(4, "webhook"))
		g.add(Create, []string{typ, g.object()}, "color", g.color())
	}
}

// acquire acquires a lease with random options. Those in fixed, which are alternating keys and values, are not
// random.
func (g *generator) acquire(lease, typ string, fixed ...string) {
	with := map[string]string{
		"version": g.sometimes(3, pick(g, "v1beta1", "preferred")), "selector": g.sometimes(4, g.color()),
		"namespaces": g.sometimes(3, pick(g, "a", "a,b", "b,c")), "coalescing": g.sometimes(5, "yes"), "recovery": g.sometimes(3, "yes"), "removal": g.sometimes(5, "keep"),
		"separate": g.sometimes(8, "yes"), "pagesize": g.sometimes(4, "2"), "watchlist": g.sometimes(4, "never"), "polling": g.sometimes(8, "yes"),
	}
	if g.profile.Namespaces && with["namespaces"] == "" {
		with["labeled"] = g.sometimes(6, g.color())
	}
	switch g.IntN(8) {
	case 0, 1:
		with["form"] = "metadata"
	case 2:
		with["form"] = "typed"
	case 3:
		with["transform"] = "yes"
	case 4, 5:
		with["packed"] = "yes"
	}
	given := map[string]string{}
	for i := 0; i+1 < len(fixed); i += 2 {
		given[fixed[i]] = fixed[i+1]
	}
	if _, names := given["namespaces"]; names { // a lease has no labeled namespaces besides
		with["labeled"] = ""
	}
	if given["labeled"] != "" {
		with["namespaces"] = ""
	}
	maps.Copy(with, given)
	if with["namespaces"] != "" {
		g.set = lease
	}
	var params []string
	for _, key := range Verbs[Acquire].With {
		params = append(params, key, with[key])
	}
	g.add(Acquire, []string{lease, typ}, params...)
}

func (g *generator) handle(lease string) {
	does := g.sometimes(4, pick(g, "remove", "release", "acquire", "retry"))
	after := ""
	if does != "" {
		after = fmt.Sprint(1 + g.IntN(6))
	}
	g.add(Handle, []string{lease, g.handler()}, "ms", g.sometimes(3, pick(g, "5", "20", "40")), "after", after, "does", does, "panics", g.sometimes(3, pick(g, "1", "2", "5")))
}

// follow follows types.
func (g *generator) follow(following string) {
	g.add(Follow, []string{following}, "types", pick(g, "", "t1", "t1,t2"), "by", pick(g, "", "kind", "plural"))
}

// subject adds an operation of the subject.
func (g *generator) subject() {
	lease := g.lease()
	switch g.IntN(16) {
	case 12, 14, 15:
		g.follow(pick(g, "f1", "f2"))
	case 13:
		g.add(Unfollow, []string{pick(g, "f1", "f2")})
	case 0, 1, 2:
		g.acquire(lease, g.typ())
		g.handle(lease)
	case 3:
		g.add(Release, []string{lease})
		if g.IntN(2) == 0 {
			g.acquire(lease, g.typ())
			g.handle(lease)
		}
	case 4, 5, 6:
		g.handle(lease)
	case 7, 8:
		g.add(Unhandle, []string{lease, g.handler()})
	case 9:
		g.add(Namespace, []string{cmp.Or(g.set, lease)}, "names", pick(g, "", "a", "a,b", "a,b,c", "c"))
	default:
		g.add(Retry, []string{lease})
	}
}

// gap changes objects while no watch can be opened. Often, the next watch can't continue then, so
// that a list shows the differences.
func (g *generator) gap() {
	typ, object := g.typ(), g.object()
	closed, expired := g.faultName(), g.faultName()
	g.add(Fault, []string{closed, typ}, "kind", pick(g, "fail", "hang"), "verb", "watch")
	g.add(Cut, []string{typ})
	for range 1 + g.IntN(4) {
		g.changeObject()
	}
	g.add(pick(g, Delete, Replace), []string{typ, object})
	if g.IntN(4) > 0 {
		g.add(Fault, []string{expired, typ}, "kind", pick(g, "gone", "gonestatus"), "times", "1")
	}
	g.add(Heal, []string{closed})
	g.add(Pause, []string{"100ms"})
}

// fault injects or heals a fault. A fault often breaks watches, so that it has something to do.
func (g *generator) fault() {
	if len(g.faults) > 0 && g.IntN(2) == 0 {
		n := g.IntN(len(g.faults))
		g.add(Heal, []string{g.faults[n]})
		g.faults = append(g.faults[:n], g.faults[n+1:]...)
		return
	}
	if kinds := g.kinds(); len(kinds) > 0 {
		g.inject(pick(g, kinds...))
	}
}

// faultName returns the name of another fault.
func (g *generator) faultName() string {
	g.names++
	return fmt.Sprintf("f%d", g.names)
}

// kinds returns the kinds of faults that the profile allows.
func (g *generator) kinds() []string {
	if slices.Contains(g.profile.Without, Fault) {
		return nil
	}
	return slices.DeleteFunc(kindsOfFaults(), func(kind string) bool { return slices.Contains(g.profile.Without, kind) })
}

// inject injects a fault of this kind.
func (g *generator) inject(kind string) {
	name, typ := g.faultName(), pick(g, g.typ(), g.typ(), g.typ(), everyType, everyDefinition)
	if faultKinds[kind].verbs == nil && g.IntN(6) == 0 {
		typ = everyDocument
	}
	if g.profile.Namespaces && g.IntN(8) == 0 {
		typ = everyNamespace
	}
	g.faults = append(g.faults, name)
	g.add(Fault, []string{name, typ}, append(g.faultOf(kind), "namespace", g.sometimes(6, g.namespace()))...)
	switch definitions, discovery := concerns(NewOp(Fault, []string{name, typ}, "kind", kind)); {
	case definitions:
		g.add(Cut, []string{everyDefinition}) // only the next watch, and the list before it, notice the fault
	case g.IntN(2) == 0 && !discovery:
		g.add(Cut, []string{typ})
	}
}

// faultOf returns the parameters of a fault of this kind.
func (g *generator) faultOf(kind string) []string {
	params := []string{"kind", kind, "times", g.sometimes(3, pick(g, "1", "2")), "share", g.sometimes(4, "0.5"), "verb", g.sometimes(2, pick(g, "list", "watch"))}
	switch kind {
	case "fail":
		params = append(params, "code", pick(g, "500", "503", "404", "405", "429", "401"))
	case "breakdefinitions", "breakdiscovery":
		params = append(params, "code", pick(g, "500", "503", "404", "405", "429", "401", "403", "403"))
	case "delaybookmarks":
		params = append(params, "ms", pick(g, "20", "200", "2000", "10000"))
	case "hangat", "cutat", "truncate", "garble":
		params = append(params, "at", pick(g, "0", "50", "300", "700", "1500"))
	case "garbleframe", "duplicateframe", "expirecontinue":
		params = append(params, "at", pick(g, "1", "2", "3"))
	case "bandwidth":
		params = append(params, "at", pick(g, "2000", "20000"))
	}
	return params
}

// RandomFault returns an operation that injects a fault of a random kind and with random parameters into
// requests for a type.
func RandomFault(r *rand.Rand, name, typ string) Op {
	g := &generator{Rand: r}
	return NewOp(Fault, []string{name, typ}, g.faultOf(pick(g, kindsOfFaults()...))...)
}

// permission revokes or grants a permission. Often, objects change before it is granted again.
func (g *generator) permission() {
	typ, namespace, verb := g.typ(), pick(g, "", "a", "a", "b"), g.sometimes(2, pick(g, "list", "watch"))
	if g.IntN(3) == 0 {
		g.add(Allow, []string{typ}, "namespace", namespace)
		return
	}
	g.add(Forbid, []string{typ}, "namespace", namespace, "verb", verb)
	for range g.IntN(5) {
		g.changeObject()
	}
	if g.IntN(2) == 0 {
		g.add(Pause, []string{"300ms"})
	}
	if g.IntN(3) == 0 {
		g.add(Settle, nil)
	}
	if g.IntN(2) == 0 {
		g.add(Allow, []string{typ}, "namespace", namespace, "verb", verb)
	}
}

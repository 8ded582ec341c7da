package churn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Config is how scripts are run.
type Config struct {
	// Servers are the API servers, which have the same etcd. The first one gets the writes of the script. If there is a
	// second one, requests of the subject can alternate between the two. Further servers have no effect.
	// They must allow everything that an administrator may do: each run creates CRDs of its own, and deletes them. Do not use
	// the servers of a cluster that others use.
	Servers []*rest.Config
	// Subject starts the program under test.
	Subject NewSubject
	// Backup backs up etcd, and Restore restores the last backup, so that resourceVersions go back. If one of them is nil, the
	// operations are skipped. Other scripts must not use the servers at the same time.
	Backup, Restore func(ctx context.Context) error
	// Aggregated is another API server, with its own etcd, which serves the types while they are moved. The first server must serve
	// APIServices and Services, and reach localhost. If Aggregated is nil, types are not moved.
	Aggregated *rest.Config
	// Lag makes the second server learn of changes late. If it is nil, the operation lag is skipped.
	Lag *ServerLag
	// Patience is how long the subject may take until it is at rest. Zero is 45 s. It must be longer than the longest pause between two
	// attempts of the subject, unless Settle ends such pauses. A script that fails at rest takes this long, and so does each such
	// script that [Shortest] tries.
	Patience time.Duration
	// Unaided is the time after which Settle of the subject is called if the subject is not at rest. Settle is then called every second. Zero is 5 s.
	// If Unaided is longer than Patience, the subject must come to rest by itself.
	Unaided time.Duration
	// Log gets the progress. It may be nil.
	Log func(format string, args ...any)
}

// Result is the result of a run.
type Result struct {
	Script Script
	// Done is the number of operations that were carried out. If one of them has failed, it is the last one.
	Done int
	// Violations are empty if the subject has broken no invariant.
	Violations []Violation
	// Group is the API group of the run.
	Group string
	// Effects is how many responses the faults of each kind have changed. A fault that is injected may meet no request that it can change.
	Effects map[string]int
}

// Failed reports whether there are violations.
func (r Result) Failed() bool { return len(r.Violations) > 0 }

// String returns the violations, one per line, at most twenty.
func (r Result) String() string {
	var b strings.Builder
	for i, v := range r.Violations {
		if i == 20 {
			fmt.Fprintf(&b, "and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintln(&b, v)
	}
	return b.String()
}

// run is one run of a script.
type run struct {
	Config
	world   *World
	writer  *writer
	faults  *Faults
	streams *streams
	subject Subject
	env     Environment
	second  http.RoundTripper // to the second server; nil: there is none
	close   []func()

	direct     []*httpServer // the servers
	aggregated *aggregated   // nil: types were never moved
}

var runs atomic.Int64

// Run runs a script against fresh types and a fresh subject. It returns an error if the script
// can't be run, for example because the server does not respond to writes, ctx has ended before its end, or the types can't be
// deleted; the result may then have violations, too. The types are deleted at the end, and the namespaces a, b and c stay. Run may be
// called concurrently for one server, unless Config.Restore is set. It ignores operations whose verb it does not know: [Parse] reports them.
func Run(ctx context.Context, cfg Config, script Script) (Result, error) {
	r := &run{Config: cfg, world: newWorld(fmt.Sprintf("churn%d-%x.example.com", runs.Add(1), rand.Uint32()))}
	result := Result{Script: script, Group: r.world.Group}
	r.Patience, r.Unaided = cmp.Or(r.Patience, 45*time.Second), cmp.Or(r.Unaided, 5*time.Second)
	defer func() {
		for _, f := range slices.Backward(r.close) {
			f()
		}
	}()
	r.Lag.join(r.world)
	defer r.Lag.leave(r.world)
	if err := r.open(ctx); err != nil {
		return result, err
	}
	err := r.script(ctx, script, &result)
	if err == nil && !result.Failed() {
		result.Violations, err = r.settle(ctx)
	}
	result.Violations = append(result.Violations, r.streams.resumes(r.env.Proxy.Past(faultproxy.All(r.ofType(everyType), faultproxy.Verb("watch"))))...)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	r.writer.serving().confirm(stopping) // the script may have ended before settle did so
	r.ofSubject(stopping, func() { result.Violations = append(result.Violations, r.subject.Stop(stopping)...) })
	if err == nil {
		result.Violations = append(result.Violations, r.quiet(stopping)...)
		result.Violations = append(result.Violations, r.streams.check(r.world)...)
	}
	if r.aggregated != nil {
		err = errors.Join(err, r.aggregated.end(context.WithoutCancel(ctx)))
	}
	for _, typ := range r.world.Types() {
		err = errors.Join(err, r.writer.undefine(context.WithoutCancel(ctx), typ)) // retries
	}
	if r.writer.converter != nil {
		r.writer.converter.close()
	}
	err = errors.Join(err, r.writer.endNamespaces(context.WithoutCancel(ctx)))
	result.Effects = r.faults.Effects()
	return result, err
}

// open starts proxy, clients and subject.
func (r *run) open(ctx context.Context) error {
	switch {
	case len(r.Servers) == 0:
		return errors.New("churn: Config.Servers is empty: add the configuration of an API server")
	case r.Subject == nil:
		return errors.New("churn: Config.Subject is nil: set it to a function that starts the program under test")
	}
	var clients []*http.Client
	for _, server := range r.Servers {
		client, err := rest.HTTPClientFor(server)
		if err != nil {
			return err
		}
		r.close = append(r.close, client.CloseIdleConnections)
		clients = append(clients, client)
		r.direct = append(r.direct, &httpServer{server.Host, client})
	}
	if len(clients) > 1 {
		r.second = cmp.Or(clients[1].Transport, http.DefaultTransport) // nil without TLS and credentials
	}
	direct, err := dynamic.NewForConfigAndClient(unlimited(r.Servers[0]), clients[0])
	if err != nil {
		return err
	}
	r.writer = &writer{world: r.world, client: direct}
	if err := r.writer.ensureNamespaces(ctx, "a", "b", "c"); err != nil {
		return err
	}
	proxy, err := faultproxy.Start(r.Servers[0].Host, clients[0].Transport) //nolint:contextcheck // close ends it
	if err != nil {
		return err
	}
	r.close = append(r.close, func() { _ = proxy.Close() })
	r.streams = newStreams()
	r.streams.world = r.world
	proxy.Inject(func(req faultproxy.Request) bool { return req.Group == r.world.Group }, r.streams.record)
	r.faults = NewFaults(proxy, r.world.Group, r.ofType)
	proxy.Inject(ofDefinitions, recordDefinitions(r.world, r.faults.hide))
	r.streams.garbles = r.faults.garble
	r.close = append(r.close, func() { r.faults.Heal("") })
	config := &rest.Config{Host: proxy.URL(), QPS: -1}
	front, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	r.close = append(r.close, front.CloseIdleConnections)
	r.env = Environment{Config: config, HTTP: front, World: r.world, Proxy: proxy, DiscoveryFails: func() bool {
		return r.faults.concernDiscovery() || r.world.Down()
	}}
	r.ofSubject(ctx, func() { r.subject, err = r.Subject(ctx, r.env) })
	return err
}

// goroutineLabel is the label that the goroutines of a subject have in profiles. Its value is the group of the run.
const goroutineLabel = "churn"

// ofSubject calls a function of the subject. The goroutines that it starts, and those that they start, have the label of
// the run.
func (r *run) ofSubject(ctx context.Context, call func()) {
	pprof.Do(ctx, pprof.Labels(goroutineLabel, r.world.Group), func(context.Context) { call() })
}

// unlimited returns a copy of cfg without a rate limit.
func unlimited(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	return cfg
}

func (r *run) logf(format string, args ...any) {
	if r.Log != nil {
		r.Log(format, args...)
	}
}

// script carries out the operations until there are violations.
func (r *run) script(ctx context.Context, script Script, result *Result) error {
	for i, op := range script {
		if err := ctx.Err(); err != nil {
			return err
		}
		result.Done = i + 1
		begun := time.Now()
		if op.Verb == Settle {
			found, err := r.settle(ctx)
			if result.Violations = found; err != nil || result.Failed() {
				return err
			}
		} else if err := r.do(ctx, op); err != nil {
			return fmt.Errorf("churn: operation %d, %s: %w", i+1, op, err)
		}
		r.logf("%s %v: %s", begun.Format(clock), since(begun), op)
	}
	return nil
}

// do carries out one operation.
func (r *run) do(ctx context.Context, op Op) error {
	switch op.Verb {
	case Define, Undefine, Redefine, Serve, Terminate:
		return r.writer.change(ctx, op)
	case Create, Update, Delete, Replace, Fill, Hold, Free:
		err := r.writer.serving().write(ctx, op)
		if o, is := r.subject.(Observer); is && err == nil {
			r.ofSubject(ctx, func() { o.Wrote(ctx, op.Arg("type")) })
		}
		return err
	case NewNamespace, Label:
		return r.writer.setNamespace(ctx, op)
	case EndNamespace:
		return r.writer.endNamespace(ctx, op)
	case BreakConversion, MendConversion:
		r.writer.convert(op)
		return nil
	case Move, Return, Down, Up:
		return r.aggregate(ctx, op)
	case Pause:
		d, err := time.ParseDuration(op.Arg("duration"))
		if err != nil {
			return err
		}
		return wait(ctx, d)
	case Backup, Advance, Restore:
		return r.rewind(ctx, op)
	}
	if Verbs[op.Verb].Subject {
		var err error
		r.ofSubject(ctx, func() { err = r.subject.Do(ctx, op) })
		return err
	}
	return r.disturb(ctx, op)
}

// aggregate moves the types to the aggregated server, if there is one, or back.
func (r *run) aggregate(ctx context.Context, op Op) error {
	moved := r.world.Moved()
	switch {
	case r.Aggregated == nil, moved == (op.Verb == Move), op.Verb == Move && !r.world.hasTypes():
		return nil
	case op.Verb == Return:
		return r.aggregated.giveBack(ctx)
	case op.Verb != Move:
		return r.aggregated.setDown(ctx, op.Verb == Down)
	}
	if r.aggregated == nil {
		r.aggregated = &aggregated{world: r.world, lag: r.Lag, client: r.writer.client, servers: r.direct}
		if err := r.aggregated.open(ctx, r.Aggregated); err != nil {
			return err
		}
		r.writer.behind = r.aggregated.behind
	}
	return r.aggregated.takeFirst(ctx)
}

// disturb carries out an operation of the proxy.
func (r *run) disturb(ctx context.Context, op Op) error {
	typ, namespace := op.Arg("type"), op.With["namespace"]
	switch op.Verb {
	case Cut:
		r.env.Proxy.CutWatches(r.ofType(typ))
	case Fault:
		if hides, _ := concerns(op); hides {
			r.world.hide(time.Now())
		}
		return r.faults.Inject(ctx, op)
	case Heal:
		r.faults.Heal(op.Arg("name"))
	case Forbid:
		match := r.ofType(typ)
		if namespace != "" {
			match = faultproxy.All(match, faultproxy.Namespace(namespace))
		}
		for _, verb := range verbsOf(op) {
			r.world.forbid(typ, permission{namespace, verb}, true)
			r.faults.inject(ctx, permissionName(typ, namespace, verb), faultproxy.All(match, faultproxy.Verb(verb)), faultproxy.Fail(403))
		}
		r.env.Proxy.CutWatches(match)
	case Allow:
		for _, verb := range verbsOf(op) {
			r.world.forbid(typ, permission{namespace, verb}, false)
			r.faults.Heal(permissionName(typ, namespace, verb))
		}
	case Alternate:
		r.alternate(ctx, number(op.With["period"], 2))
	case Lag:
		r.Lag.ask(r.world, time.Duration(number(op.With["ms"], 500))*time.Millisecond)
	}
	return nil
}

// verbsOf returns the verbs that an operation forbids or allows.
func verbsOf(op Op) []string {
	if verbs := op.List("verb"); verbs != nil {
		return verbs
	}
	return []string{"list", "watch"}
}

func permissionName(typ, namespace, verb string) string {
	return fmt.Sprintf("forbid %s %s/%s", verb, typ, namespace)
}

func isPermission(name string) bool { return strings.HasPrefix(name, "forbid ") }

// alternation is the name of what alternate injects. No fault of a script has it.
const alternation = "alternate servers"

// alternate sends requests to the second server.
func (r *run) alternate(ctx context.Context, period int) {
	if r.second == nil || period <= 0 {
		r.faults.Heal(alternation)
		r.world.alternates(false, time.Now())
		return
	}
	r.world.alternates(true, time.Now())
	r.faults.inject(ctx, alternation, nil, faultproxy.Share(1/float64(period), faultproxy.Server(r.Servers[1].Host, r.second)))
}

// settle heals all faults, ends the lag that the script has asked for, and waits until the subject is at rest. Permissions stay revoked
// or, if there are none, requests still alternate between the servers: a subject can come to rest with both. It returns an error if ctx
// ends before.
func (r *run) settle(ctx context.Context) ([]Violation, error) {
	begun := time.Now()
	r.Lag.ask(r.world, 0)
	if r.heal(ctx) { // watches whose connections break count as open for a moment
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	for next := begun.Add(r.Unaided); ; {
		if now := time.Now(); !now.Before(next) {
			r.writer.serving().confirm(ctx)
			r.ofSubject(ctx, r.subject.Settle)
			next = now.Add(time.Second)
		}
		var found []Violation
		if r.ofSubject(ctx, func() { found = r.subject.AtRest(ctx) }); len(found) == 0 {
			r.world.rested(time.Now(), r.streams.lists)
			r.logf("settled in %v", since(begun))
			return nil, nil
		}
		if time.Since(begun) > r.Patience {
			r.logf("not at rest after %v", since(begun))
			return append(found, Violation{Rest, fmt.Sprintf("not at rest after %v", since(begun))}), nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// heal heals all faults, and ends alternate if a permission is revoked. It reports whether there was something to do.
func (r *run) heal(ctx context.Context) (healed bool) {
	names := slices.Collect(maps.Keys(r.faults.active))
	// A fault concerns only what the faults before it pass on: a permission that was revoked later is not that of the second server.
	forbids := slices.ContainsFunc(names, isPermission)
	for _, name := range names {
		switch {
		case name == alternation && forbids:
			r.alternate(ctx, 0)
		case name == alternation || isPermission(name):
			continue
		default:
			r.faults.Heal(name)
		}
		healed = true
	}
	return healed
}

// quiet waits until the subject, which has been stopped, has no watches and no goroutines.
func (r *run) quiet(ctx context.Context) []Violation {
	for begun := time.Now(); ; {
		r.env.HTTP.CloseIdleConnections()
		open := r.env.Proxy.OpenWatches(nil)
		left, err := goroutinesOf(r.world.Group)
		if open == 0 && left == nil && err == nil {
			return nil
		}
		if time.Since(begun) > 10*time.Second || wait(ctx, 10*time.Millisecond) != nil {
			if err != nil {
				left = append(left, err.Error())
			}
			return []Violation{{Released, fmt.Sprintf("after the end of the subject, open watches: %d; its goroutines: %s", open, cmp.Or(strings.Join(left, "\n"), "none"))}}
		}
	}
}

// goroutinesOf returns the stacks of the goroutines with the label of a run.
func goroutinesOf(group string) (stacks []string, err error) {
	var profile strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return nil, err
	}
	label := fmt.Sprintf("%q:%q", goroutineLabel, group)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, label) {
			stacks = append(stacks, stack)
		}
	}
	return stacks, nil
}

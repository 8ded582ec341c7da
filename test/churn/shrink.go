package churn

import (
	"context"
	"slices"
)

// Shrink returns the shortest script that it can find for which fails returns true, until ctx
// ends. Fails must be true for script itself. It removes parts, which get smaller, and at last
// single operations, as delta debugging does (Zeller and Hildebrandt, 2002), and then single
// parameters.
func Shrink(ctx context.Context, script Script, fails func(ctx context.Context, script Script) bool) Script {
	accept := func(candidate Script) bool {
		if ctx.Err() != nil || !fails(ctx, candidate) || ctx.Err() != nil {
			return false
		}
		script = candidate
		return true
	}
	for size := max(1, len(script)/2); ; {
		smaller := false
		for at := 0; at < len(script) && ctx.Err() == nil; {
			if accept(slices.Delete(slices.Clone(script), at, min(len(script), at+size))) {
				smaller = true
			} else {
				at += size
			}
		}
		if ctx.Err() != nil || size == 1 && !smaller {
			break
		}
		if !smaller || size > len(script) {
			size = max(1, size/2)
		}
	}
	for i := range script {
		for key := range script[i].With {
			candidate := slices.Clone(script)
			candidate[i] = candidate[i].without(key)
			accept(candidate)
		}
	}
	return script
}

// without returns the operation without a parameter.
func (o Op) without(key string) Op {
	with := map[string]string{}
	for other, value := range o.With {
		if other != key {
			with[other] = value
		}
	}
	return Op{Verb: o.Verb, Args: o.Args, With: with}
}

// Shortest returns the shortest failing script that it can find until ctx ends, with the result of
// its last run. Each script is run against fresh types. A script counts as failing if it breaks an
// invariant that failed breaks, other than [Rest]. A script that can't be run does not count. The
// search begins with the operations of failed up to the one that has failed. If it finds no shorter
// script, the result has these operations, and the violations of failed.
func Shortest(ctx context.Context, cfg Config, failed Result) Result {
	cfg.Log = nil
	if failed.Done > 0 {
		failed.Script = failed.Script[:failed.Done]
	}
	Shrink(ctx, failed.Script, func(ctx context.Context, script Script) bool {
		result, err := Run(ctx, cfg, script)
		if err != nil || !result.Failed() || !failed.like(result) {
			return false
		}
		failed = result
		return true
	})
	return failed
}

// like reports whether both results break one invariant, beside [Rest], which has many causes.
func (r Result) like(other Result) bool {
	for _, v := range r.Violations {
		if v.Invariant != Rest && slices.ContainsFunc(other.Violations, func(o Violation) bool { return o.Invariant == v.Invariant }) {
			return true
		}
	}
	return false
}

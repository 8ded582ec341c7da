package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/leases/report"
	"github.com/gvrkit/gvrkit/bench/leases/trial"
	"github.com/gvrkit/gvrkit/bench/measure"
	environment "github.com/gvrkit/gvrkit/bench/report"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// command is how this program is called.
const command = "go run ./bench/leases"

// bench does what the command line asks for.
func bench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if s.from != "" {
		results, err := report.Read(s.from)
		if err != nil {
			return err
		}
		return results.WriteTable(stdout)
	}
	if s.out != "" {
		if err := os.MkdirAll(s.out, 0o755); err != nil {
			return err
		}
	}
	results := &report.Results{Environment: environment.CurrentEnvironment(command, args), Size: s.size}
	failed := measureAll(ctx, s, results, stderr)
	if len(results.Rounds) == 0 {
		return failed
	}
	if err := results.WriteTable(stdout); err != nil || s.out == "" {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, results.Write(filepath.Join(s.out, "leases.json"))) // what there is
}

// measureAll starts the servers that are needed and measures all parts on them, round by
// round.
func measureAll(ctx context.Context, s settings, results *report.Results, stderr io.Writer) (err error) {
	fmt.Fprintln(stderr, "leases: starting the servers")
	servers := map[bool]measure.Server{} // by whether they are real
	if slices.ContainsFunc(s.parts, func(p trial.Part) bool { return !p.Real() }) {
		c, err := cluster.Start(ctx, cluster.Size{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Stop()) }()
		servers[false] = measure.Server{Host: c.Host, Discovery: true}
	}
	if slices.ContainsFunc(s.parts, trial.Part.Real) {
		server, err := embedded.Start(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		servers[true] = measure.Reached(server.Config())
	}
	if results.Warmup, err = measureRound(ctx, s.parts, s.short(), servers, 0, progress(stderr, "the round that does not count")); err != nil {
		return err
	}
	for n := 1; n <= s.rounds; n++ {
		round, err := measureRound(ctx, s.parts, s.size, servers, n, progress(stderr, fmt.Sprintf("round %d/%d", n, s.rounds)))
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		results.Rounds = append(results.Rounds, round)
	}
	return nil
}

// progress returns what says that something has been measured, which took so long.
func progress(stderr io.Writer, round string) func(trial.Job, time.Duration) {
	return func(job trial.Job, took time.Duration) {
		fmt.Fprintf(stderr, "leases: %s, %s, %s: %.1f s\n", round, job.Part, job.System, took.Seconds())
	}
}

// measureRound measures each part of each system that has it. Each round begins with
// another system.
func measureRound(ctx context.Context, parts []trial.Part, size trial.Size, servers map[bool]measure.Server, n int, measured func(trial.Job, time.Duration)) (report.Round, error) {
	round := report.Round{}
	for _, part := range parts {
		systems := part.Systems()
		for k := range systems {
			job := trial.Job{Part: part, System: systems[(n+k)%len(systems)], Server: servers[part.Real()], Size: size}
			begin := time.Now()
			figures, err := trial.InProcess(ctx, job)
			if err != nil {
				return nil, err
			}
			round[job.System] = round[job.System].With(figures)
			measured(job, time.Since(begin))
		}
	}
	return round, nil
}

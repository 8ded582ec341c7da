package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
	"github.com/gvrkit/gvrkit/bench/discovery/report"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
	environment "github.com/gvrkit/gvrkit/bench/report"
)

// command is how this program is called.
const command = "go run ./bench/discovery"

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
		results.WriteTable(stdout)
		return nil
	}
	if s.out != "" {
		if err := os.MkdirAll(s.out, 0o755); err != nil {
			return err
		}
	}
	results := &report.Results{
		Environment: environment.CurrentEnvironment(command, args),
		Settings:    report.Settings{Lag: s.lag, Rest: s.rest, Poll: s.poll, Asks: s.asks},
	}
	if err := measureAll(ctx, s, results, stderr); err != nil {
		return err
	}
	results.WriteTable(stdout)
	if s.out == "" {
		return nil
	}
	return results.Write(filepath.Join(s.out, "discovery.json"))
}

// clusters are the servers, each a process.
type clusters struct{ plain, crowded *cluster.Process }

// measureAll starts the clusters and measures all systems on them, round by round.
func measureAll(ctx context.Context, s settings, results *report.Results, stderr io.Writer) (err error) {
	var c clusters
	fmt.Fprintln(stderr, "discovery: starting the clusters")
	if c.plain, err = cluster.Start(ctx, cluster.Size{Lag: s.lag}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.plain.Stop()) }()
	if c.crowded, err = cluster.Start(ctx, cluster.Size{CRDs: s.crds, SchemaBytes: s.schema, Lag: s.lag}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.crowded.Stop()) }()
	results.Plain, results.Crowded = c.plain.Facts, c.crowded.Facts
	for n := range s.rounds + 1 {
		round, err := measureRound(ctx, s, c, n, stderr)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if n == 0 {
			results.Warmup = round
		} else {
			results.Rounds = append(results.Rounds, round)
		}
	}
	return nil
}

// measureRound runs each system once on each cluster. Each round begins with another
// system.
func measureRound(ctx context.Context, s settings, c clusters, n int, stderr io.Writer) (report.Round, error) {
	systems := mappers.All()
	round := report.Round{}
	for k := range systems {
		system := systems[(n+k)%len(systems)]
		begin := time.Now()
		var run report.Run
		var err error
		plain, crowded := jobs(s, system, n)
		plain.Host, crowded.Host = c.plain.Host, c.crowded.Host
		if run.Plain, err = trial.InProcess(ctx, plain); err != nil {
			return nil, err
		}
		if run.Crowded, err = trial.InProcess(ctx, crowded); err != nil {
			return nil, err
		}
		round[system.Name] = run
		fmt.Fprintf(stderr, "discovery: round %d/%d, %s: %.1f s\n", n, s.rounds, system.Name, time.Since(begin).Seconds())
	}
	return round, nil
}

// jobs returns what is measured of a system in round n on the two clusters.
func jobs(s settings, system mappers.System, n int) (plain, crowded trial.Job) {
	plain = trial.Job{System: system.Name, Rest: s.rest, Brief: true}
	crowded = trial.Job{
		System: system.Name, CRDs: s.crds, Rest: s.rest, Poll: s.poll, Phase: phase(n, s.rounds), Asks: s.asks,
	}
	return plain, crowded
}

// phase returns when in a round the type that comes does so between two polls: for all
// systems at the same time, and in all rounds together at all times.
func phase(n, rounds int) float64 { return (float64(n%rounds) + .5) / float64(rounds) }

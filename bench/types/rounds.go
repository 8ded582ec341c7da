package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	environment "github.com/gvrkit/gvrkit/bench/report"
	"github.com/gvrkit/gvrkit/bench/types/report"
	"github.com/gvrkit/gvrkit/bench/types/server"
	"github.com/gvrkit/gvrkit/bench/types/trial"
)

// command is how this program is called.
const command = "go run ./bench/types"

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
	results := &report.Results{Environment: environment.CurrentEnvironment(command, args)}
	failed := measureAll(ctx, s, results, stderr)
	if err := results.WriteTable(stdout); err != nil || s.out == "" {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, results.Write(filepath.Join(s.out, "types.json"))) // what there is
}

// measureAll starts one server after the other, and measures all cases on each.
func measureAll(ctx context.Context, s settings, results *report.Results, stderr io.Writer) error {
	for _, name := range s.servers {
		for _, schema := range s.schemas {
			size := s.size
			size.SchemaBytes = schema
			cases, err := measureServer(ctx, s, name, size, stderr)
			results.Cases = append(results.Cases, cases...)
			if err != nil {
				return fmt.Errorf("%s, CRDs with schemas of %d bytes: %w", name, schema, err)
			}
		}
	}
	return nil
}

// measureServer measures all cases on one server, round by round.
func measureServer(ctx context.Context, s settings, name string, size server.Size, stderr io.Writer) (cases []*report.Case, err error) {
	fmt.Fprintf(stderr, "types: starting %s, with %d CRDs with schemas of %d bytes\n", name, size.CRDs, size.SchemaBytes)
	begin := time.Now()
	running, stop, err := server.Start(ctx, name, size, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Fprintf(stderr, "types: it is filled after %.1f s\n", time.Since(begin).Seconds())
	for _, types := range s.types {
		c := &report.Case{Server: name, Size: size, Types: types}
		cases = append(cases, c)
		begin := time.Now()
		for n := range s.rounds + 1 {
			round, err := measureRound(ctx, trial.Job{Server: running, Types: types, Objects: size.Objects, Rest: s.rest}, n)
			if err != nil {
				return cases, fmt.Errorf("round %d: %w", n, err)
			}
			if n == 0 {
				c.Warmup = round
			} else {
				c.Rounds = append(c.Rounds, round)
			}
		}
		fmt.Fprintf(stderr, "types: %d types, %d rounds: %.1f s\n", types, s.rounds, time.Since(begin).Seconds())
	}
	return cases, nil
}

// measureRound does job with each system. Each round begins with another one.
func measureRound(ctx context.Context, job trial.Job, n int) (report.Round, error) {
	round, systems := report.Round{}, trial.All()
	for k := range systems {
		job.System = systems[(n+k)%len(systems)].Name
		figures, err := trial.InProcess(ctx, job)
		if err != nil {
			return nil, err
		}
		round[job.System] = figures
	}
	return round, nil
}

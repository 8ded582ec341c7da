package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/plots"
	"github.com/gvrkit/gvrkit/bench/report"
	"github.com/gvrkit/gvrkit/bench/servers"
	"github.com/gvrkit/gvrkit/bench/systems"
)

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
		if s.plots != "" {
			err = plots.Draw(results, s.plots)
		}
		return errors.Join(results.WriteTable(stdout), err)
	}
	for _, dir := range []string{s.out, s.cpuProfile, s.memProfile} {
		if dir != "" {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
	}
	results, err := measureAll(ctx, s, args, stderr)
	if err != nil {
		return err
	}
	if err := results.WriteTable(stdout); err != nil || s.out == "" {
		return err
	}
	return errors.Join(results.Write(filepath.Join(s.out, "results.json")), plots.Draw(results, s.out))
}

// measureAll measures all cases.
func measureAll(ctx context.Context, s settings, args []string, stderr io.Writer) (*report.Results, error) {
	results := &report.Results{Environment: report.CurrentEnvironment("go run ./bench", args), Reference: systems.Reference}
	steps := plan(s)
	p := newProgress(stderr, steps, s.rounds)
	for _, st := range steps {
		c, err := measureCase(ctx, s, st, p)
		if err != nil {
			return nil, err
		}
		results.Cases = append(results.Cases, c)
	}
	return results, nil
}

// measureCase starts the server of a step and runs all systems against it, round by
// round. It returns the first failure.
func measureCase(ctx context.Context, s settings, st step, p *progress) (c *report.Case, err error) {
	c = &report.Case{Server: st.server.Name, Kind: st.kind.Name, Objects: st.objects, Events: st.events, Paced: st.server.Paced}
	for _, system := range st.systems {
		c.Systems = append(c.Systems, system.Name)
	}
	p.say("%s: %s begins", c.Title(), st.server.About)
	if c.Corpus, err = describe(ctx, st.kind, st.objects); err != nil {
		return nil, err
	}
	server, err := st.server.Start(ctx, st.kind, st.objects)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Title(), err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	for n := range s.rounds + 1 {
		round, err := measureRound(ctx, s, st, server, n, p)
		if err != nil {
			return nil, fmt.Errorf("%s, round %d: %w", c.Title(), n, err)
		}
		if n == 0 {
			c.Warmup = round
		} else {
			c.Rounds = append(c.Rounds, round)
		}
	}
	return c, nil
}

// measureRound runs each system once. Each round begins with another one.
func measureRound(ctx context.Context, s settings, st step, server servers.Server, n int, p *progress) (report.Round, error) {
	round := report.Round{}
	for k := range st.systems {
		system := st.systems[(n+k)%len(st.systems)]
		name := fmt.Sprintf("%s-%s-%d-%s-%d", st.server.Name, st.kind.Name, st.objects, system.Name, n)
		job := measure.Job{
			System: system.Name, Kind: st.kind.Name, Objects: st.objects, Events: st.events, Server: server.Connection(),
			CPUProfile: profileName(s.cpuProfile, name), MemProfile: profileName(s.memProfile, name),
		}
		start := time.Now()
		figures, err := measure.InProcess(ctx, job, server.Change)
		if err != nil {
			return nil, err
		}
		round[system.Name] = figures
		p.ran(st, fmt.Sprintf("%s %s %d, round %d/%d, %s", st.server.Name, st.kind.Name, st.objects, n, s.rounds, system.Name), time.Since(start))
	}
	return round, nil
}

func profileName(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// describe measures the objects themselves.
func describe(ctx context.Context, kind objects.Kind, n int) (report.Corpus, error) {
	corpus, err := objects.NewCorpus(ctx, kind, n)
	if err != nil {
		return report.Corpus{}, err
	}
	compressed, err := corpus.CompressedBytes()
	return report.Corpus{
		BytesPerObject:           float64(corpus.Bytes()) / float64(n),
		CompressedBytesPerObject: float64(compressed) / float64(n),
	}, err
}

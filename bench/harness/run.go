package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/gvrkit/gvrkit/bench/process"
)

// Role is the role of a process that does a [Job].
const Role = "measure"

// patience is how long a job may take.
const patience = 10 * time.Minute

// Options say how much is measured.
type Options struct {
	Quick bool
	// Rounds is how many rounds count, or 0 for what each case has.
	Rounds int
	// Cases selects cases by their names. Nil selects all.
	Cases *regexp.Regexp
	// Profiles is a directory for CPU and memory profiles, or empty.
	Profiles string
	// Progress takes a line for each run.
	Progress io.Writer
}

// Run measures the cases of s. With an error it returns the results up to then.
func Run(ctx context.Context, s Scenario, o Options) (*Results, error) {
	results := &Results{Scenario: s.Name, About: s.About, Environment: CurrentEnvironment()}
	for _, c := range s.Cases(o.Quick) {
		if o.Cases != nil && !o.Cases.MatchString(c.Name) {
			continue
		}
		if o.Rounds > 0 {
			c.Rounds = o.Rounds
		}
		measured := &CaseResults{Case: c}
		results.Cases = append(results.Cases, measured)
		if err := runCase(ctx, s, measured, o); err != nil {
			return results, fmt.Errorf("%s, %s: %w", s.Name, c.Name, err)
		}
	}
	return results, nil
}

// runCase starts the servers of a case and measures all rounds.
func runCase(ctx context.Context, s Scenario, c *CaseResults, o Options) (err error) {
	fmt.Fprintf(o.Progress, "%s: %s\n", s.Name, c.Title)
	fixture, err := c.Start(ctx, o.Progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fixture.Stop()) }()
	for n := range c.Case.Rounds + 1 {
		round := Round{}
		for k := range c.Contestants {
			contestant := c.Contestants[(n+k)%len(c.Contestants)]
			begin := time.Now()
			figures, err := runContestant(ctx, s, c.Case, contestant, n, fixture, o.Profiles)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", n, contestant.Name, err)
			}
			round[contestant.Name] = figures
			fmt.Fprintf(o.Progress, "%s: %s, round %d/%d, %s: %.1f s\n", s.Name, c.Name, n, c.Case.Rounds, contestant.Name, time.Since(begin).Seconds())
		}
		if n == 0 {
			c.Warmup = round
		} else {
			c.Rounds = append(c.Rounds, round)
		}
	}
	return nil
}

// runContestant measures all parts of a case for one contestant.
func runContestant(ctx context.Context, s Scenario, c Case, contestant Contestant, round int, fixture *Fixture, profiles string) (Figures, error) {
	parts := c.Parts
	if parts == nil {
		parts = []string{""}
	}
	figures := Figures{}
	for _, part := range parts {
		job := Job{Scenario: s.Name, Contestant: contestant.Name, Part: part, Round: round, Rounds: c.Rounds}
		if profiles != "" {
			job.Profile = filepath.Join(profiles, fmt.Sprintf("%s-%s%s-%s-%d", s.Name, c.Name, part, contestant.Name, round))
		}
		measured, err := inProcess(ctx, job, fixture.Params[part], contestant.Env, fixture.Ready)
		if err != nil {
			return nil, err
		}
		for name, value := range measured {
			if part != "" {
				name = part + ": " + name
			}
			figures[name] = value
		}
	}
	if c.Finish != nil {
		c.Finish(figures)
	}
	return figures, nil
}

// answer is what a process sends: that it is ready, if it calls Ready, and then its figures.
type answer struct {
	Ready   bool    `json:"ready,omitempty"`
	Figures Figures `json:"figures,omitempty"`
}

// request is what a process is sent.
type request struct {
	Job

	Params any `json:"params"`
}

// inProcess does a job in a process of its own. It calls ready when the process asks for it,
// in another goroutine, which has ended when inProcess returns.
func inProcess(ctx context.Context, job Job, params any, env []string, ready func(context.Context) error) (figures Figures, err error) {
	ctx, cancel := context.WithCancelCause(ctx) // kills the process, and ends ready
	defer cancel(nil)
	p, err := process.Start(ctx, Role, env, request{job, params})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		var a answer
		if err := p.Read(&a); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			cancel(err)
			return nil, err
		}
		if !a.Ready {
			calls.Wait()
			return a.Figures, context.Cause(ctx)
		}
		if ready == nil {
			continue
		}
		calls.Go(func() {
			if err := ready(ctx); err != nil {
				cancel(err)
			}
		})
	}
}

// RunProcess makes this process do the job that its parent has sent.
func RunProcess(ctx context.Context, scenarios []Scenario) error {
	var job Job
	ctx, err := process.Request(ctx, &job)
	if err != nil {
		return err
	}
	s, err := Find(scenarios, job.Scenario, func(s Scenario) string { return s.Name })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("given up after %v", patience))
	defer cancel()
	job.Ready = func() error { return process.Answer(answer{Ready: true}) }
	figures, err := s.Measure(ctx, job)
	if err != nil {
		return err
	}
	return process.Answer(answer{Figures: figures})
}

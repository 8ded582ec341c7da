package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/gvrkit/gvrkit/bench/process"
)

// Role is the role of a process that runs a [Job].
const Role = "measure"

// jobTimeout is the longest time of a job. The longest one takes four minutes on an idle machine.
const jobTimeout = 30 * time.Minute

// Options select what to measure.
type Options struct {
	Quick bool
	// Rounds is the number of rounds that count; 0 is the number of each case.
	Rounds uint
	// Cases selects cases by name; nil selects all.
	Cases *regexp.Regexp
	// Progress gets a line for each run.
	Progress io.Writer
}

// Run measures the cases of s. With an error, it returns the results before the error.
func Run(ctx context.Context, s Scenario, o Options) (*Results, error) {
	results := &Results{Scenario: s.Name, About: s.About, Environment: CurrentEnvironment()}
	for i, c := range s.Cases(o.Quick) {
		if o.Cases != nil && !o.Cases.MatchString(c.Name) {
			continue
		}
		if o.Rounds > 0 {
			c.Rounds = int(o.Rounds) //nolint:gosec // a small number
		}
		measured := &CaseResults{Case: c}
		results.Cases = append(results.Cases, measured)
		if err := measured.run(ctx, Job{Scenario: s.Name, Quick: o.Quick, Case: i, Rounds: c.Rounds}, o); err != nil {
			return results, fmt.Errorf("%s, %s: %w", s.Name, c.Name, err)
		}
	}
	return results, nil
}

// run starts the server of the case and measures all rounds.
func (c *CaseResults) run(ctx context.Context, job Job, o Options) (err error) {
	fmt.Fprintf(o.Progress, "%s: %s\n", job.Scenario, c.Title)
	server, stop, err := c.Start(ctx, o.Progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if job.Connection, err = json.Marshal(server); err != nil {
		return err
	}
	for job.Round = range job.Rounds + 1 {
		round := Round{}
		for k := range c.Contestants {
			job.Contestant = (job.Round + k) % len(c.Contestants)
			contestant, begin := c.Contestants[job.Contestant], time.Now()
			if round[contestant.Name], err = measure(ctx, job, contestant.Env); err != nil {
				return fmt.Errorf("round %d, %s: %w", job.Round, contestant.Name, err)
			}
			fmt.Fprintf(o.Progress, "%s: %s, round %d/%d, %s: %.1f s\n", job.Scenario, c.Name, job.Round, job.Rounds, contestant.Name, time.Since(begin).Seconds())
		}
		if job.Round > 0 {
			c.Rounds = append(c.Rounds, round)
		}
	}
	return nil
}

// measure runs a job in a process.
func measure(ctx context.Context, job Job, env []string) (figures Figures, err error) {
	p, err := process.Start(ctx, Role, env, job)
	if err == nil {
		err = errors.Join(p.Read(&figures), p.Stop())
	}
	return figures, err
}

// RunProcess runs the job that the parent of this process has sent.
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
	ctx, cancel := context.WithTimeoutCause(ctx, jobTimeout, fmt.Errorf("timeout after %v", jobTimeout))
	defer cancel()
	figures, err := s.Cases(job.Quick)[job.Case].Contestants[job.Contestant].Measure(ctx, job)
	if err != nil {
		return err
	}
	return process.Answer(figures)
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/gvrkit/gvrkit/bench/launch"
)

// settings are what the command line says.
type settings struct {
	rounds int
	crds   int
	schema int // bytes
	lag    time.Duration
	poll   time.Duration
	rest   time.Duration
	asks   int
	out    string // directory, or empty for none
	from   string // results to show in place of measuring
}

// parse reads the command line.
func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("discovery", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.rounds, "rounds", 5, "how many `rounds` count, after one that does not")
	flags.IntVar(&s.crds, "crds", 300, "how many `CRDs` the crowded cluster has")
	flags.IntVar(&s.schema, "schema", 100_000, "about how many `bytes` of schemas each of them has")
	flags.DurationVar(&s.lag, "lag", 0, "how long after a CRD is established the documents tell of it")
	flags.DurationVar(&s.poll, "poll", 100*time.Millisecond, "how often who is not told asks for a type that is to come")
	flags.DurationVar(&s.rest, "rest", 700*time.Millisecond, "how long a system must not have asked anything to be at rest; gvrkit may ask again after half a second")
	flags.IntVar(&s.asks, "asks", 1000, "how many warm resolves are one measurement, and how often a type is asked for that is not there")
	flags.StringVar(&s.out, "out", launch.Results(), "`directory` for discovery.json; none if empty")
	quick := flags.Bool("quick", false, "a run of a minute: 30 CRDs, 2 rounds, no files unless -out says where")
	flags.StringVar(&s.from, "from", "", "measure nothing: show the results of this `file`")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(help)
		flags.PrintDefaults()
		return s, err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	if *quick {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		s.hasten(given)
	}
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return s, fmt.Errorf("%w; %w", err, launch.ErrUsage)
	}
	return s, nil
}

// hasten makes settings that were not given small.
func (s *settings) hasten(given map[string]bool) {
	if !given["rounds"] {
		s.rounds = 2
	}
	if !given["crds"] {
		s.crds = 30
	}
	if !given["out"] {
		s.out = ""
	}
}

func (s *settings) validate() error {
	for _, f := range []struct {
		name  string
		wrong bool
		value any
	}{
		{"rounds", s.rounds < 1, s.rounds},
		{"crds", s.crds < 1, s.crds},
		{"schema", s.schema < 0, s.schema},
		{"lag", s.lag < 0, s.lag},
		{"poll", s.poll <= 0, s.poll},
		{"rest", s.rest <= 0, s.rest},
		{"asks", s.asks < 1, s.asks},
	} {
		if f.wrong {
			return fmt.Errorf("-%s %v", f.name, f.value)
		}
	}
	return nil
}

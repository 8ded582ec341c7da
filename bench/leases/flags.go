package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/leases/trial"
)

// settings are what the command line says.
type settings struct {
	rounds int
	parts  []trial.Part
	size   trial.Size
	out    string // directory, or empty for none
	from   string // results to show in place of measuring
}

// parse reads the command line.
func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("leases", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.rounds, "rounds", 3, "how many `rounds` count, after a short one that does not")
	flags.IntVar(&s.size.Pairs, "pairs", 100_000, "how many `times` a lease is acquired and released for one figure")
	flags.IntVar(&s.size.Armed, "armed", 1000, "how many `informers` are on types that are not there")
	flags.DurationVar(&s.size.Settle, "settle", time.Minute, "how long they get before their requests are counted: client-go's back-off grows that long")
	flags.DurationVar(&s.size.Count, "count", 20*time.Second, "how long their requests are counted")
	flags.IntVar(&s.size.Parked, "parked", 30, "how many `types` go from under their informers")
	flags.IntVar(&s.size.Objects, "objects", 10, "how many `objects` a type has that goes")
	flags.IntVar(&s.size.Cycles, "cycles", 7, "how many `times` a type goes and comes back in each run, after one that does not count")
	parts := flags.String("parts", strings.Join(names(trial.Parts()), ","), "what is measured")
	flags.StringVar(&s.out, "out", launch.Results(), "`directory` for leases.json; none if empty")
	quick := flags.Bool("quick", false, "a run of less than three minutes: less of everything, one round, no files unless -out says where")
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
	if err == nil {
		s.parts, err = parseParts(*parts)
	}
	if err == nil && *quick {
		err = launch.Hasten(flags, hasty)
	}
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return s, fmt.Errorf("%w; %w", err, launch.ErrUsage)
	}
	return s, nil
}

// hasty is what flags say in a quick run, unless they are given.
var hasty = map[string]string{
	"rounds": "1", "armed": "200", "settle": "10s", "count": "5s", "parked": "10", "cycles": "3", "out": "",
}

// short is the size of the round that does not count: what is made once is made by it.
func (s settings) short() trial.Size {
	size := s.size
	size.Settle, size.Count = min(size.Settle, 5*time.Second), min(size.Count, time.Second)
	size.Cycles = 1
	return size
}

func parseParts(list string) ([]trial.Part, error) {
	var parts []trial.Part
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(trial.Parts(), trial.Part(name)) {
			return nil, fmt.Errorf("no part %q; there are %s", name, strings.Join(names(trial.Parts()), ", "))
		}
		parts = append(parts, trial.Part(name))
	}
	return parts, nil
}

func names(parts []trial.Part) []string {
	var all []string
	for _, p := range parts {
		all = append(all, string(p))
	}
	return all
}

func (s *settings) validate() error {
	for _, f := range []struct {
		name  string
		wrong bool
		value any
	}{
		{"rounds", s.rounds < 1, s.rounds},
		{"pairs", s.size.Pairs < 1, s.size.Pairs},
		{"armed", s.size.Armed < 1, s.size.Armed},
		{"settle", s.size.Settle < 0, s.size.Settle},
		{"count", s.size.Count <= 0, s.size.Count},
		{"parked", s.size.Parked < 1, s.size.Parked},
		{"objects", s.size.Objects < 1, s.size.Objects},
		{"cycles", s.size.Cycles < 1, s.size.Cycles},
	} {
		if f.wrong {
			return fmt.Errorf("-%s %v", f.name, f.value)
		}
	}
	return nil
}

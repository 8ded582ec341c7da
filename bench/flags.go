package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/servers"
	"github.com/gvrkit/gvrkit/bench/systems"
)

// large is the number of objects that -large adds.
const large = 50_000

// settings are what the command line says.
type settings struct {
	objects []int
	kinds   []objects.Kind
	systems []systems.System
	servers []servers.Sort
	// chosen says that systems were named, and are run on slow servers too.
	chosen bool
	events int // 0: what suits the server
	rounds int

	cpuProfile, memProfile string // directories

	out   string // directory, or empty for none
	from  string // results to read in place of measuring
	plots string // directory for the plots of those
}

// parse reads the command line.
func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	sizes := flags.String("objects", "1000,10000", "how many `objects` there are")
	kinds := flags.String("kinds", strings.Join(objects.Names(), ","), "`kinds` of objects")
	names := flags.String("systems", "", "`systems` to compare, besides "+systems.Reference+" (default most; on slow servers a few)\nout of "+strings.Join(systems.Names(), ", "))
	sorts := flags.String("servers", strings.Join(servers.Names(), ","), "`servers` to run against")
	flags.IntVar(&s.events, "events", 0, "how many `events` are followed (default 5000; on slow servers 2000)")
	flags.IntVar(&s.rounds, "rounds", 5, "how many `rounds` count, after one that does not")
	flags.StringVar(&s.out, "out", launch.Results(), "`directory` for results.json and plots; none if empty")
	quick := flags.Bool("quick", false, "a run of less than two minutes: 1000 objects, the stub, 3 rounds, no files unless -out says where")
	more := flags.Bool("large", false, fmt.Sprintf("%d objects, too", large))
	flags.StringVar(&s.from, "from", "", "measure nothing: show the results of this `file`")
	flags.StringVar(&s.plots, "plots", "", "with -from: `directory` to draw its plots in")
	flags.StringVar(&s.cpuProfile, "cpuprofile", "", "`directory` for a CPU profile of each phase of each run")
	flags.StringVar(&s.memProfile, "memprofile", "", "`directory` for memory profiles, likewise")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(help)
		flags.PrintDefaults()
		return s, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	if *quick {
		s.hasten(given, sizes, sorts)
	}
	if *more {
		*sizes += "," + strconv.Itoa(large)
	}
	if s.chosen = *names != ""; !s.chosen {
		*names = strings.Join(systems.Defaults(), ",")
	}
	err = errors.Join(err, s.choose(*sizes, *kinds, withReference(*names), *sorts), s.validate())
	if err != nil {
		return s, fmt.Errorf("%s; %w", strings.ReplaceAll(err.Error(), "\n", "; "), launch.ErrUsage)
	}
	return s, nil
}

// hasten makes settings that were not given small.
func (s *settings) hasten(given map[string]bool, sizes, sorts *string) {
	if !given["objects"] {
		*sizes = "1000"
	}
	if !given["servers"] {
		*sorts = "stub"
	}
	if !given["rounds"] {
		s.rounds = 3
	}
	if !given["events"] {
		s.events = 1000
	}
	if !given["out"] {
		s.out = ""
	}
}

// choose sets what is given by lists of names.
func (s *settings) choose(sizes, kinds, names, sorts string) error {
	return errors.Join(
		launch.Each(sizes, &s.objects, func(text string) (int, error) {
			n, err := strconv.Atoi(text)
			if err == nil && n <= 0 {
				err = fmt.Errorf("-objects %d", n)
			}
			return n, err
		}),
		launch.Each(kinds, &s.kinds, objects.Named),
		launch.Each(names, &s.systems, systems.Named),
		launch.Each(sorts, &s.servers, servers.Named),
	)
}

func (s *settings) validate() error {
	switch {
	case s.rounds < 1:
		return fmt.Errorf("-rounds %d", s.rounds)
	case s.events < 0:
		return fmt.Errorf("-events %d", s.events)
	case s.plots != "" && s.from == "":
		return errors.New("-plots goes with -from; where plots of new results go is -out")
	}
	return nil
}

// withReference puts the reference in front of a list, once.
func withReference(names string) string {
	list := []string{systems.Reference}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != systems.Reference {
			list = append(list, name)
		}
	}
	return strings.Join(list, ",")
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/types/server"
)

// settings are what the command line says.
type settings struct {
	rounds  int
	servers []string
	size    server.Size // of SchemaBytes there are several
	schemas []int       // bytes
	types   []int
	rest    time.Duration
	out     string // directory, or empty for none
	from    string // results to show in place of measuring
}

// hasty is what flags say in a quick run, unless they are given.
var hasty = map[string]string{"rounds": "2", "servers": server.Embedded, "crds": "30", "types": "1,30", "out": ""}

// parse reads the command line.
func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("types", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.rounds, "rounds", 5, "how many `rounds` count, after one that does not")
	names := flags.String("servers", server.Embedded+","+server.KubeAPIServer, "on which `servers`, or addresses of others")
	flags.IntVar(&s.size.CRDs, "crds", 200, "how many `CRDs` a server has")
	flags.IntVar(&s.size.Objects, "objects", 5, "how many `objects` each of them has")
	schemas := flags.String("schemas", "300,84000", "about how many `bytes` of schemas each of them has")
	types := flags.String("types", "1,200", "how many `types` are watched")
	flags.DurationVar(&s.rest, "rest", 700*time.Millisecond, "how long a program must not have asked or read anything to be at rest")
	flags.StringVar(&s.out, "out", launch.Results(), "`directory` for types.json; none if empty")
	quick := flags.Bool("quick", false, "a run of a minute or two: the embedded server, 30 CRDs, 2 rounds, no files unless -out says where")
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
	if err == nil && *quick {
		err = launch.Hasten(flags, hasty)
	}
	if err == nil {
		err = errors.Join(launch.Each(*names, &s.servers, server.Named), launch.Each(*schemas, &s.schemas, strconv.Atoi), launch.Each(*types, &s.types, strconv.Atoi))
	}
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		return s, fmt.Errorf("%w; %w", err, launch.ErrUsage)
	}
	return s, nil
}

func (s *settings) validate() error {
	for _, f := range []struct {
		name  string
		wrong bool
		value any
	}{
		{"rounds", s.rounds < 1, s.rounds},
		{"crds", s.size.CRDs < 1, s.size.CRDs},
		{"objects", s.size.Objects < 1, s.size.Objects},
		{"schemas", slices.Min(s.schemas) < 0, s.schemas},
		{"types", slices.Min(s.types) < 1 || slices.Max(s.types) > s.size.CRDs, s.types},
		{"rest", s.rest <= 0, s.rest},
	} {
		if f.wrong {
			return fmt.Errorf("-%s %v", f.name, f.value)
		}
	}
	return nil
}

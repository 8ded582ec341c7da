package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// usage is what --help prints before the flags.
const usage = `ipamblock [flags] [resource]

It watches Calico's IPAMBlocks: with no flags on an API server of its own, which it starts.
Another resource is named by plural, singular, short name or kind, alone or followed by
a group, or a version and a group, such as ipamblocks.v1.crd.projectcalico.org.
`

// settings are the command line.
type settings struct {
	ref        string // what to watch
	kubeconfig string
	context    string
	demoWrites bool
	crdChurn   bool
	duration   time.Duration
	resync     time.Duration
	output     string
	http       string // where to serve pages; empty: nowhere
}

// real reports whether a real cluster is meant, and not the embedded server.
func (s settings) real() bool { return s.kubeconfig != "" || s.context != "" }

// errUsage marks errors of the command line.
var errUsage = errors.New("see --help")

// parse reads the command line. It returns flag.ErrHelp after printing help.
func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("ipamblock", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error is one line, printed by whoever called
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "watch the cluster of this kubeconfig `file` until Ctrl-C")
	flags.StringVar(&s.context, "context", "", "watch the cluster of this context of the kubeconfig until Ctrl-C")
	flags.BoolVar(&s.demoWrites, "demo-writes", false, "on a real cluster, also write: make a few blocks of documentation addresses and remove them")
	flags.BoolVar(&s.crdChurn, "crd-churn", false, "on the embedded server, also delete the CRD under the running informer and create it again")
	flags.DurationVar(&s.duration, "duration", 0, "end after this time; by default after the demonstration, or with Ctrl-C")
	flags.DurationVar(&s.resync, "resync", 0, "show every block again in this period; by default never")
	flags.StringVar(&s.output, "output", "text", "text or json, one object a line")
	flags.StringVar(&s.http, "http", "", "serve pages about the informers and the blocks at this `address`; a port alone, such as :0, is on this machine only")
	err := flags.Parse(args)
	s.ref = "ipamblocks"
	if flags.NArg() > 0 {
		s.ref = flags.Arg(0)
	}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(help, strings.TrimSuffix(usage, "\n"))
		flags.SetOutput(help)
		flags.PrintDefaults()
		return s, err
	}
	if err == nil {
		err = s.validate(flags)
	}
	if err == nil && s.http != "" {
		if s.http, err = siteAddress(s.http); err != nil {
			err = fmt.Errorf("--http: %w", err)
		}
	}
	if err != nil {
		return s, fmt.Errorf("%w; %w", err, errUsage)
	}
	return s, nil
}

// validate returns what is wrong with the command line, or nil.
func (s settings) validate(flags *flag.FlagSet) error {
	_, badRef := discovery.ParseRef(s.ref)
	switch {
	case flags.NArg() > 1:
		return fmt.Errorf("unexpected argument %q", flags.Arg(1))
	case badRef != nil:
		return badRef
	case isEmpty(flags, "kubeconfig") || isEmpty(flags, "context"):
		return errors.New("--kubeconfig and --context are not empty; leave them out for the embedded server")
	case isEmpty(flags, "http"):
		return errors.New("--http is not empty; :0 is a port that is free")
	case s.output != "text" && s.output != "json":
		return fmt.Errorf("--output is text or json, not %q", s.output)
	case s.duration < 0 || s.resync < 0:
		return errors.New("--duration and --resync are not below zero")
	case s.crdChurn && (s.real() || s.ref != "ipamblocks"):
		return errors.New("--crd-churn is for the embedded server and its ipamblocks: it deletes a CRD and all that is of it")
	case s.demoWrites && !s.real():
		return errors.New("--demo-writes goes with --kubeconfig or --context; the embedded server is always written to")
	}
	return nil
}

// isEmpty reports whether the flag called name was given, and nothing with it, as
// by a script whose variable is not set.
func isEmpty(flags *flag.FlagSet, name string) (empty bool) {
	flags.Visit(func(f *flag.Flag) { empty = empty || f.Name == name && f.Value.String() == "" })
	return empty
}

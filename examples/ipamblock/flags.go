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

// usage is the text of --help before the flags.
const usage = `ipamblock [flags] [resource]

ipamblock watches Calico's IPAMBlocks. Without flags, it starts an API server, and writes to it. To
watch another resource, give its plural, singular, short name or kind. A group, or a version and a
group, may follow, as in ipamblocks.v1.crd.projectcalico.org.
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
	http       string // address of the pages; empty: none
}

// real reports whether to watch a real cluster instead of the embedded server.
func (s settings) real() bool { return s.kubeconfig != "" || s.context != "" }

// errUsage marks errors of the command line.
var errUsage = errors.New("see --help")

// parse reads the command line. It returns flag.ErrHelp after printing help.
func parse(args []string, help io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("ipamblock", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error, as one line
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "watch the cluster of this kubeconfig `file` until Ctrl-C")
	flags.StringVar(&s.context, "context", "", "watch the cluster of this context of the kubeconfig until Ctrl-C")
	flags.BoolVar(&s.demoWrites, "demo-writes", false, "on a real cluster, also create some blocks with addresses reserved for documentation, and delete them")
	flags.BoolVar(&s.crdChurn, "crd-churn", false, "on the embedded server, also delete the CRD while the informer runs, and create it again")
	flags.DurationVar(&s.duration, "duration", 0, "end after this time; by default after the demonstration, or with Ctrl-C")
	flags.DurationVar(&s.resync, "resync", 0, "resync period, after which every block is shown again; by default none")
	flags.StringVar(&s.output, "output", "text", "text, or json with one object per line")
	flags.StringVar(&s.http, "http", "", "serve pages about the informers and the blocks at this `address`; a port without a host, such as :0, listens on localhost")
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
		return errors.New("--kubeconfig and --context must not be empty; omit them for the embedded server")
	case isEmpty(flags, "http"):
		return errors.New("--http must not be empty; :0 is any free port")
	case s.output != "text" && s.output != "json":
		return fmt.Errorf("--output must be text or json, not %q", s.output)
	case s.duration < 0 || s.resync < 0:
		return errors.New("--duration and --resync must not be negative")
	case s.crdChurn && (s.real() || s.ref != "ipamblocks"):
		return errors.New("--crd-churn is only for ipamblocks on the embedded server: it deletes a CRD and its objects")
	case s.demoWrites && !s.real():
		return errors.New("--demo-writes requires --kubeconfig or --context; without them, the program always writes to its own server")
	}
	return nil
}

// isEmpty reports whether the flag called name has an empty value, as in a script with an unset
// variable.
func isEmpty(flags *flag.FlagSet, name string) (empty bool) {
	flags.Visit(func(f *flag.Flag) { empty = empty || f.Name == name && f.Value.String() == "" })
	return empty
}

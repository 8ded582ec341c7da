package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gvrkit/gvrkit/discovery"
)

// usage is what --help prints before the flags.
const usage = `everything [flags]

It prints the types of a cluster as they come and go (+ and -), what becomes of those that can't
be listed or watched (!), and their objects as they are added, updated and deleted, until Ctrl-C.
`

// settings are the command line.
type settings struct {
	kubeconfig string
	context    string
	selector   discovery.Selector
	starts     int
}

// errUsage marks errors of the command line.
var errUsage = errors.New("see --help")

// parse reads the command line. It returns flag.ErrHelp after printing help.
func parse(args []string, help io.Writer) (settings, error) {
	var (
		s                          settings
		groups, categories, chosen string
		builtIn                    bool
	)
	flags := flag.NewFlagSet("everything", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error is one line, printed by whoever called
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the kubeconfig `file`; by default kubectl's")
	flags.StringVar(&s.context, "context", "", "the context of the kubeconfig; by default the current one")
	flags.StringVar(&groups, "group", "", "only types of these API `groups`, separated by commas")
	flags.StringVar(&categories, "category", "", "only types of one of these `categories`, separated by commas")
	flags.StringVar(&chosen, "crd-selector", "", "only types whose CRD's labels match this `selector`")
	flags.BoolVar(&builtIn, "all", false, "also types that no CustomResourceDefinition defines")
	flags.IntVar(&s.starts, "start-limit", 0, "types on their way to their first list at a time; 0 is the library's default")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(help, strings.TrimSuffix(usage, "\n"))
		flags.SetOutput(help)
		flags.PrintDefaults()
		return s, err
	}
	s.selector.Groups, s.selector.Categories = list(groups), list(categories)
	if !builtIn {
		s.selector.Backing = discovery.BackingCRD
	}
	if err == nil && chosen != "" {
		s.selector.CRDLabels, err = labels.Parse(chosen)
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = s.selector.Validate()
	}
	if err != nil {
		return s, fmt.Errorf("%w; %w", err, errUsage)
	}
	return s, nil
}

// list returns the parts of a list with commas.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

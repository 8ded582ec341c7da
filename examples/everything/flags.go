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

// usage is the text of --help before the flags.
const usage = `everything [flags]

everything prints types of a cluster when they are added (+) and removed (-), the states of types that
can't be listed or watched (!), and objects when they are added, updated and deleted. Ctrl-C ends it.
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
		s                             settings
		groups, categories, crdLabels string
		builtIn                       bool
	)
	flags := flag.NewFlagSet("everything", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error, as one line
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the kubeconfig `file`; by default that of kubectl")
	flags.StringVar(&s.context, "context", "", "the context of the kubeconfig; by default the current one")
	flags.StringVar(&groups, "group", "", "only types of these API `groups`, separated by commas")
	flags.StringVar(&categories, "category", "", "only types of one of these `categories`, separated by commas")
	flags.StringVar(&crdLabels, "crd-selector", "", "only types whose CRDs have labels that match this `selector`")
	flags.BoolVar(&builtIn, "all", false, "also types without a CustomResourceDefinition")
	flags.IntVar(&s.starts, "start-limit", 0, "how many types may wait for their first list at the same time; 0 is the default of the library")
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
	if err == nil && crdLabels != "" {
		s.selector.CRDLabels, err = labels.Parse(crdLabels)
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

// list returns the elements of a list with commas.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

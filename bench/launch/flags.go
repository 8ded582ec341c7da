package launch

import (
	"flag"
	"strings"
)

// Hasten sets the flags of a quick run to values, by their names, unless they are given.
func Hasten(flags *flag.FlagSet, values map[string]string) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range values {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// Each appends what parse makes of each part of a list to into.
func Each[T any](list string, into *[]T, parse func(string) (T, error)) error {
	for part := range strings.SplitSeq(list, ",") {
		v, err := parse(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*into = append(*into, v)
	}
	return nil
}

package typestate

import (
	"errors"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// Namespaces returns the status of each namespace of a source.
func Namespaces(of []source.Namespace) []status.Namespace {
	if of == nil {
		return nil
	}
	all := make([]status.Namespace, len(of))
	for i, n := range of {
		all[i] = status.Namespace{
			Name: n.Name, Listed: n.Listed, Terminating: n.Terminating, ResourceVersion: n.Version,
			Verb: n.Failure.Verb, Err: n.Failure.Err, Since: n.Failure.Since, Attempts: n.Failure.Attempts,
		}
		switch {
		case n.Failure.Err != nil:
			all[i].Reason = Classify(n.Failure.Err)
		case !n.Listed:
			all[i].Reason = status.ReasonSyncing
		}
	}
	return all
}

// namespaceOf returns the namespace that the failure err of a request is about, or namespace.
func namespaceOf(err error, namespace string) string {
	if in, is := errors.AsType[*source.NamespaceError](err); is {
		return in.Namespace
	}
	return namespace
}

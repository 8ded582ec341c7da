package churn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Parameter describes a parameter of operations.
type Parameter struct {
	Does string
	// Values are the values that it may have: those that the text lists, or what the text describes.
	Values string
	valid  func(value string) bool
}

// Parameters has all parameters of operations, by key. [Verbs] has those of each verb.
var Parameters = map[string]Parameter{
	// of types and objects
	"scope":      oneOf("the scope of the CRD; without it, Namespaced", "Namespaced", "Cluster"),
	"versions":   listOf("the served versions; without it, v1", "v1", "v1beta1"),
	"conversion": oneOf("how objects are converted to other versions; without it, only their apiVersion changes", "webhook"),
	"color":      text("the value of the label color"),
	"count":      integer("how many objects; without it, 10"),

	// of faults
	"kind":      oneOf("what the fault does: FaultKinds describes each kind", kindsOfFaults()...),
	"at":        integer("the number in the description of the fault kind: of bytes (without it, 100), events or pages (1), or bytes per second (5000)"),
	"code":      integer("the HTTP status of a failure; without it, 503"),
	"verb":      listOf("the verbs of the requests that a fault or a permission concerns; without it, all; kinds of faults that concern only one verb ignore it", "list", "watch"),
	"times":     integer("how many requests the fault concerns; without it, or with 0, all"),
	"share":     {Does: "the share of the requests that the fault concerns", Values: "a number from 0 to 1", valid: isShare},
	"namespace": text("the namespace of the requests that a fault or forbid concerns; without it, all"),
	"period":    integer("each request whose number is a multiple of it goes to the second server; without it, 2; 0: none"),

	// of leases
	"version":    oneOf("the requested version, or the policy FollowPreferred; without it, v1", "v1", "v1beta1", "preferred"),
	"form":       oneOf("the form of the objects; without it, unstructured", "metadata", "typed"),
	"selector":   text("the color of the objects that the lease selects by their label"),
	"namespaces": text("the namespaces of the lease, separated by commas; its objects are those of its own informer"),
	"names":      text("the new namespaces of the lease, separated by commas; without it, none"),
	"labeled":    text("the color of the Namespace objects whose objects the lease has"),
	"transform":  oneOf("the lease has a transform", "yes"),
	"packed":     oneOf("the lease has a packed cache", "yes"),
	"coalescing": oneOf("the lease merges waiting events", "yes"),
	"recovery":   oneOf("panics of handlers of the lease are recovered", "yes"),
	"removal":    oneOf("what becomes of the cache when the type is deleted; without it, handlers get deletions", "keep"),
	"separate":   oneOf("the lease shares its informer with no other lease", "yes"),
	"pagesize":   integer("the size of the pages of lists; without it, the default of the library"),
	"watchlist":  oneOf("whether the initial state is requested by a watch, also from aggregated servers; without it, the default of the library", "never", "anywhere"),
	"polling":    oneOf("types that can't be watched are listed each second", "yes"),

	// of handlers and calls of Follow
	"ms":     integer("milliseconds: how long each call of a handler takes (without it, 0), its calls are blocked (1000), bookmarks are late (100), the second server is behind (500, and 2000 at most), or the pause before each deletion of endnamespace is (100)"),
	"after":  integer("the number of the call in which the handler does something"),
	"does":   oneOf("what that call does: remove the handler, release the lease, acquire and release another one, or retry", "remove", "release", "acquire", "retry"),
	"panics": integer("each call whose number is a multiple of it panics, if the lease has recovery"),
	"types":  listOf("the types that are followed; without it, both", "t1", "t2"),
	"by":     oneOf("how the types are selected; without it, as resources of a group", "kind", "plural"),
}

func oneOf(does string, values ...string) Parameter {
	return Parameter{Does: does, Values: strings.Join(values, " or "), valid: func(value string) bool { return slices.Contains(values, value) }}
}

func listOf(does string, values ...string) Parameter {
	return Parameter{Does: does, Values: "some of " + strings.Join(values, ",") + ", separated by commas", valid: func(value string) bool {
		return !slices.ContainsFunc(strings.Split(value, ","), func(one string) bool { return !slices.Contains(values, one) })
	}}
}

func integer(does string) Parameter {
	return Parameter{Does: does, Values: "an integer, not negative", valid: func(value string) bool {
		_, err := strconv.ParseUint(value, 10, 31)
		return err == nil
	}}
}

func text(does string) Parameter {
	return Parameter{Does: does, Values: "text", valid: func(value string) bool { return value != "" }}
}

func isShare(value string) bool {
	share, err := strconv.ParseFloat(value, 64)
	return err == nil && share >= 0 && share <= 1
}

// checkParameters returns an error for the first parameter that its verb does not have, or whose value it can't have.
func checkParameters(op Op) error {
	usage := Verbs[op.Verb]
	for _, key := range slices.Sorted(maps.Keys(op.With)) {
		if !slices.Contains(usage.With, key) {
			return fmt.Errorf("%s has the parameters %v, and not %q", op.Verb, usage.With, key)
		}
		if p := Parameters[key]; !p.valid(op.With[key]) {
			return fmt.Errorf("the value of %s must be %s, and not %q", key, p.Values, op.With[key])
		}
	}
	return nil
}

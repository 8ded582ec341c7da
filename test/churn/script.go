package churn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Op is one operation of a script. Its text is one line, such as
//
//	define t1 scope=Namespaced versions=v1,v1beta1
//	create t1 a/x color=red
//	fault f1 t1 kind=garble at=300 verb=list
//
// Every operation may stand anywhere in a script: one that has nothing to do, such as the
// update of an object that does not exist, is skipped. So each part of a script is a script.
//
// An object is named as namespace/name, with one of the namespaces a, b and c, which all runs have in common, or d1 and d2, which are
// Namespace objects of the run. An object of a type of scope Cluster is called namespace-name. Faults and cuts concern all types with the
// argument all, CRDs with definitions, and Namespace objects with namespaces; faults concern discovery documents with discovery.
type Op struct {
	Verb string
	Args []string
	With map[string]string
}

// Names of the verbs. [Verbs] describes them.
const (
	Define          = "define"
	Undefine        = "undefine"
	Redefine        = "redefine"
	Serve           = "serve"
	Create          = "create"
	Update          = "update"
	Delete          = "delete"
	Replace         = "replace"
	Hold            = "hold"
	Free            = "free"
	Terminate       = "terminate"
	BreakConversion = "breakconversion"
	MendConversion  = "mendconversion"
	Fill            = "fill"
	Pause           = "pause"
	Settle          = "settle"
	Cut             = "cut"
	Fault           = "fault"
	Heal            = "heal"
	Forbid          = "forbid"
	Allow           = "allow"
	Alternate       = "alternate"
	Lag             = "lag"
	Move            = "move"
	Return          = "return"
	Down            = "down"
	Up              = "up"
	Backup          = "backup"
	Advance         = "advance"
	Restore         = "restore"
	NewNamespace    = "newnamespace"
	Label           = "label"
	EndNamespace    = "endnamespace"
	Acquire         = "acquire"
	Release         = "release"
	Follow          = "follow"
	Unfollow        = "unfollow"
	Handle          = "handle"
	Unhandle        = "unhandle"
	Block           = "block"
	Unblock         = "unblock"
	Namespace       = "namespaces"
	Retry           = "retry"
	Restart         = "restart"
)

// Usage describes a verb.
type Usage struct {
	Args []string // the names of the arguments
	With []string // the keys of the parameters, which [Parameters] describes
	Does string
	// Subject means that the program under test carries out the operation, and not the runner.
	Subject bool
}

// Verbs has all verbs.
var Verbs = map[string]Usage{
	Define:          {Args: []string{"type"}, With: []string{"scope", "versions", "conversion"}, Does: "creates the CRD of a type; conversion=webhook has a webhook of the run"},
	Undefine:        {Args: []string{"type"}, Does: "deletes the CRD, and waits until it is gone"},
	Redefine:        {Args: []string{"type"}, With: []string{"scope", "versions", "conversion"}, Does: "deletes the CRD, and creates another one as soon as possible"},
	Serve:           {Args: []string{"type"}, With: []string{"versions"}, Does: "sets the served versions of a type"},
	Create:          {Args: []string{"type", "object"}, With: []string{"color"}, Does: "creates an object"},
	Update:          {Args: []string{"type", "object"}, With: []string{"color"}, Does: "changes an object and, with color, its label"},
	Delete:          {Args: []string{"type", "object"}, Does: "deletes an object"},
	Replace:         {Args: []string{"type", "object"}, With: []string{"color"}, Does: "deletes an object, and creates another one with its name"},
	Hold:            {Args: []string{"type", "object"}, Does: "adds a finalizer to an object: its deletion waits"},
	Free:            {Args: []string{"type", "object"}, Does: "removes the finalizer, which completes a deletion that waits"},
	Terminate:       {Args: []string{"type"}, Does: "deletes the CRD; it waits for objects with finalizers, and does not accept others"},
	BreakConversion: {Args: []string{"type"}, Does: "makes the webhook of a type fail; Settle does not end this"},
	MendConversion:  {Args: []string{"type"}, Does: "ends what breakconversion began"},
	Fill:            {Args: []string{"type", "namespace"}, With: []string{"count"}, Does: "creates objects whose names begin with f, or changes them"},
	Pause:           {Args: []string{"duration"}, Does: "waits"},
	Settle:          {Does: "heals all faults, waits until the subject is at rest, and compares it with the model"},
	Cut:             {Args: []string{"type"}, Does: "breaks the watches of a type, of all types, of definitions, which are the CRDs, or of namespaces"},
	Fault:           {Args: []string{"name", "type"}, With: []string{"kind", "at", "code", "ms", "verb", "namespace", "times", "share"}, Does: "injects a fault into requests for a type, all requests for types, or those for namespaces, definitions or discovery"},
	Heal:            {Args: []string{"name"}, Does: "removes a fault, and breaks the connections that it has changed"},
	Forbid:          {Args: []string{"type"}, With: []string{"namespace", "verb"}, Does: "forbids lists and watches of a type, in a namespace or everywhere, and breaks its watches; Settle does not end this"},
	Allow:           {Args: []string{"type"}, With: []string{"namespace", "verb"}, Does: "ends what forbid with this type and namespace began, for these verbs"},
	Alternate:       {With: []string{"period"}, Does: "sends every period-th request to the second server; 0 ends this, and so does Settle while a permission is revoked"},
	Lag:             {With: []string{"ms"}, Does: "makes the second server learn of changes late, for all scripts on it: the longest lag counts; 0 ends that of this script, and so does Settle"},
	Move:            {Does: "makes the aggregated server serve the group; what serves it otherwise stays, and can't be changed until return"},
	Return:          {Does: "ends what move began"},
	Down:            {Does: "makes the aggregated server respond 503 while the group is moved, until up or return, and breaks its watches; Settle does not end this"},
	Up:              {Does: "ends what down began"},
	Backup:          {Does: "calls the hook that backs up etcd"},
	Advance:         {Does: "makes versions grow, creates last-red and last-blue in each namespace, and waits until the subject is at rest; it does nothing if there is no backup or no type, a permission is revoked, a version of a type is not served, a type ends, or a conversion fails"},
	Restore:         {Does: "calls the hook that restores the last backup of etcd, after what advance does, unless that was done since the backup; it does nothing if the subject is not at rest after 10 s, or lists are forbidden"},
	NewNamespace:    {Args: []string{"namespace"}, With: []string{"color"}, Does: "creates the Namespace object of d1 or d2"},
	Label:           {Args: []string{"namespace"}, With: []string{"color"}, Does: "changes the label of a Namespace object"},
	EndNamespace:    {Args: []string{"namespace"}, With: []string{"ms"}, Does: "deletes a Namespace object with the objects in it, with a pause before each"},
	Acquire:         {Args: []string{"lease", "type"}, With: []string{"version", "form", "selector", "namespaces", "labeled", "transform", "packed", "coalescing", "recovery", "removal", "separate", "pagesize", "watchlist", "polling"}, Does: "acquires a lease", Subject: true},
	Release:         {Args: []string{"lease"}, Does: "releases a lease", Subject: true},
	Follow:          {Args: []string{"following"}, With: []string{"types", "by"}, Does: "follows types, by their names or kinds: holds a lease with a handler on each while it is served", Subject: true},
	Unfollow:        {Args: []string{"following"}, Does: "ends what follow began", Subject: true},
	Handle:          {Args: []string{"lease", "handler"}, With: []string{"ms", "after", "does", "panics"}, Does: "adds a handler; with panics, every such call of it panics if the lease has recovery", Subject: true},
	Unhandle:        {Args: []string{"lease", "handler"}, Does: "removes a handler", Subject: true},
	Block:           {Args: []string{"lease", "handler"}, With: []string{"ms"}, Does: "makes the calls of a handler wait for that time, or until unblock", Subject: true},
	Unblock:         {Args: []string{"lease", "handler"}, Does: "ends what block began", Subject: true},
	Namespace:       {Args: []string{"lease"}, With: []string{"names"}, Does: "replaces the namespaces of a lease", Subject: true},
	Retry:           {Args: []string{"lease"}, Does: "makes a lease retry", Subject: true},
	Restart:         {With: []string{"pagesize", "watchlist"}, Does: "shuts the subject down, and starts it again with these options", Subject: true},
}

// NewOp returns an operation. The parameters are alternating keys and values; those with an
// empty value are left out.
func NewOp(verb string, args []string, params ...string) Op {
	op := Op{Verb: verb, Args: args, With: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		if params[i+1] != "" {
			op.With[params[i]] = params[i+1]
		}
	}
	return op
}

// String returns the operation as a line that [ParseOp] reads.
func (o Op) String() string {
	words := append([]string{o.Verb}, o.Args...)
	for _, key := range slices.Sorted(maps.Keys(o.With)) {
		words = append(words, key+"="+o.With[key])
	}
	return strings.Join(words, " ")
}

// Arg returns the argument with this name, or "".
func (o Op) Arg(name string) string {
	if i := slices.Index(Verbs[o.Verb].Args, name); i >= 0 && i < len(o.Args) {
		return o.Args[i]
	}
	return ""
}

// List returns the values of a parameter that has several, separated by commas.
func (o Op) List(key string) []string {
	if o.With[key] == "" {
		return nil
	}
	return strings.Split(o.With[key], ",")
}

// Script is a list of operations.
type Script []Op

// String returns the script as lines that Parse reads.
func (s Script) String() string {
	var b strings.Builder
	for _, op := range s {
		fmt.Fprintln(&b, op)
	}
	return b.String()
}

// Parse reads a script: an operation per line. Empty lines and lines that begin with # are
// comments. The error names the line. Parse checks verbs, parameters, the number of arguments, that a fault has a kind, and the duration of a
// pause. It does not check names: other types and namespaces than those of this package are created too.
func Parse(text string) (Script, error) {
	var s Script
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		op, err := ParseOp(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		s = append(s, op)
	}
	return s, nil
}

// ParseOp reads the text of one operation.
func ParseOp(line string) (Op, error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return Op{}, fmt.Errorf("churn: %q has no verb", line)
	}
	usage, known := Verbs[words[0]]
	if !known {
		return Op{}, fmt.Errorf("churn: %q: there is no verb %q; there are %v", line, words[0], slices.Sorted(maps.Keys(Verbs)))
	}
	op := Op{Verb: words[0], With: map[string]string{}}
	for _, word := range words[1:] {
		key, value, is := strings.Cut(word, "=")
		switch {
		case !is && len(op.With) == 0:
			op.Args = append(op.Args, word)
		case !is:
			return Op{}, fmt.Errorf("churn: %q: argument %q stands behind a parameter", line, word)
		default:
			op.With[key] = value
		}
	}
	if err := checkParameters(op); err != nil {
		return Op{}, fmt.Errorf("churn: %q: %w", line, err)
	}
	if len(op.Args) != len(usage.Args) {
		return Op{}, fmt.Errorf("churn: %q: %s has the arguments %v", line, op.Verb, usage.Args)
	}
	if err := op.complete(); err != nil {
		return Op{}, fmt.Errorf("churn: %q: %w", line, err)
	}
	return op, nil
}

// complete returns an error for a pause without a duration, and for a fault without a kind.
func (op Op) complete() error {
	if op.Verb == Pause {
		if _, err := time.ParseDuration(op.Arg("duration")); err != nil {
			return fmt.Errorf("the duration must be one such as 300ms or 2s: %w", err)
		}
		return nil
	}
	if op.Verb == Fault && op.With["kind"] == "" {
		return fmt.Errorf("the parameter kind is missing; the kinds are %v", kindsOfFaults())
	}
	return nil
}

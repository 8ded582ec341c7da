package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// Namespace is the status of one namespace of an informer on a set of namespaces.
type Namespace struct {
	Name string `json:"name"`
	// Listed reports whether the cache has all objects of the namespace. It stays true while requests fail later.
	Listed bool `json:"listed"`
	// Reason is why requests in the namespace fail, or ReasonSyncing before its list is complete; empty if there is
	// no problem. Verb is the verb of the failed request, and Err its error.
	Reason Reason `json:"reason,omitempty"`
	Verb   string `json:"verb,omitempty"`
	Err    error  `json:"-"`
	// Terminating reports whether the namespace is being deleted, as far as that is known: with a selector of namespaces.
	Terminating bool `json:"terminating,omitempty"`
	// Since is when the failure began, and Attempts the number of failed attempts since then.
	Since    time.Time `json:"since,omitzero"`
	Attempts int       `json:"attempts,omitempty"`
	// ResourceVersion is the version of the namespace's objects. Each namespace has its own.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// MarshalJSON writes the namespace with the keys of its fields' tags, and error: the text of Err.
func (n Namespace) MarshalJSON() ([]byte, error) {
	type fields Namespace // without MarshalJSON
	return json.Marshal(struct {
		fields
		Error string `json:"error,omitempty"`
	}{fields(n), errorText(n.Err)})
}

// NamespaceCounts are numbers of namespaces.
type NamespaceCounts struct {
	// All is the number of all, Failing of those in which requests fail, Syncing of those whose list is not complete, and
	// Terminating of those that are being deleted.
	All         int `json:"all"`
	Failing     int `json:"failing,omitempty"`
	Syncing     int `json:"syncing,omitempty"`
	Terminating int `json:"terminating,omitempty"`
}

// Add counts n.
func (c *NamespaceCounts) Add(n *Namespace) {
	c.All++
	if n.Err != nil {
		c.Failing++
	}
	if n.Reason == ReasonSyncing {
		c.Syncing++
	}
	if n.Terminating {
		c.Terminating++
	}
}

// problem describes why the namespace fails.
func (n *Namespace) problem(at time.Time) string {
	failed := NotSyncedError{Namespace: n.Name, Verb: n.Verb, Reason: n.Reason, Err: n.Err}
	text := fmt.Sprintf("namespace %q (%s)", n.Name, n.Reason)
	if !n.Since.IsZero() {
		text = fmt.Sprintf("namespace %q (%s for %s, %s)", n.Name, n.Reason, elapsed(n.Since, at), count(n.Attempts, "attempt"))
	}
	return text + ": " + failed.Problem()
}

// namedNamespaces is the number of namespaces that a text names.
const namedNamespaces = 5

// NamespacesText describes the set of namespaces: their number, and how many of them fail or are not listed. It
// returns "" if the informer has no set.
func (i Informer) NamespacesText() string {
	if i.Namespaces == nil {
		return ""
	}
	counts := i.namespaceCounts()
	text := count(counts.All, "namespace")
	switch counts.Failing {
	case 0:
	case 1:
		text += ", 1 fails"
	default:
		text += fmt.Sprintf(", %d fail", counts.Failing)
	}
	if counts.Terminating > 0 {
		text += fmt.Sprintf(", %d terminating", counts.Terminating)
	}
	if counts.Syncing > 0 && i.Listed {
		text += fmt.Sprintf(", %d not listed yet", counts.Syncing)
	}
	return text
}

// namespaceCounts counts all namespaces, also those that are left out.
func (i *Informer) namespaceCounts() NamespaceCounts {
	counts := i.MoreNamespaces
	for n := range i.Namespaces {
		counts.Add(&i.Namespaces[n])
	}
	return counts
}

// failingNamespaces returns the namespaces in which requests fail.
func (i *Informer) failingNamespaces() (failing []Namespace) {
	for _, n := range i.Namespaces {
		if n.Err != nil {
			failing = append(failing, n)
		}
	}
	return failing
}

// namespaceAdvice returns what a person can do about the first namespace that fails.
func (i *Informer) namespaceAdvice() string {
	for _, n := range i.failingNamespaces() {
		failed := NotSyncedError{GVR: i.GVR, Namespace: n.Name, Verb: n.Verb, Reason: n.Reason, Err: n.Err}
		return failed.Advice()
	}
	return ""
}

// namespaceSentences describes the namespaces in which requests fail, with a space before each sentence.
func (i *Informer) namespaceSentences(at time.Time) string {
	failing := i.failingNamespaces()
	var all []string
	for n := range failing[:min(len(failing), namedNamespaces)] {
		text := failing[n].problem(at)
		all = append(all, " "+sentence(strings.ToUpper(text[:1])+text[1:]))
	}
	switch more := i.namespaceCounts().Failing - namedNamespaces; {
	case more == 1:
		all = append(all, " 1 more namespace fails.")
	case more > 1:
		all = append(all, fmt.Sprintf(" %d more namespaces fail.", more))
	}
	return strings.Join(all, "")
}

// ErrIncomplete is matched by every [*IncompleteError].
var ErrIncomplete = errors.New("the cache does not have all namespaces")

// IncompleteError reports that a cache does not have the objects of some namespaces that were read: they have not been
// listed, for example because the user may not do that. It unwraps to the first error of their requests.
type IncompleteError struct {
	GVR schema.GroupVersionResource
	// Namespaces are the namespaces whose objects are missing, sorted by name. It is empty if the namespaces of the set
	// are not known yet.
	Namespaces []Namespace
	// Err is why they are not known: the error of a list of Namespace objects. It is nil if there was none.
	Err error
}

func (e *IncompleteError) Error() string {
	if len(e.Namespaces) == 0 {
		text := discovery.RefOf(e.GVR).String() + ": the cache has no objects: it is not known yet which namespaces to list"
		if e.Err != nil {
			text += ": cannot list namespaces: " + e.Err.Error()
		}
		return text
	}
	texts := make([]string, 0, namedNamespaces+1)
	for _, n := range e.Namespaces[:min(len(e.Namespaces), namedNamespaces)] {
		text := fmt.Sprintf("%q: %s", n.Name, n.Reason)
		if n.Err != nil {
			text = fmt.Sprintf("%q: %s", n.Name, requestText(n.Verb, "", n.Err))
		}
		texts = append(texts, text)
	}
	if more := len(e.Namespaces) - namedNamespaces; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s: the cache does not have the objects of %s: %s", discovery.RefOf(e.GVR),
		count(len(e.Namespaces), "namespace"), strings.Join(texts, "; "))
}

// Is reports whether target is ErrIncomplete.
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }

// Unwrap returns Err, or the error of the first namespace that has one.
func (e *IncompleteError) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	for _, n := range e.Namespaces {
		if n.Err != nil {
			return n.Err
		}
	}
	return nil
}

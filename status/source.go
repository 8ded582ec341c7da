package status

import (
	"encoding/json"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// DiscoverySource is one source of discovery's knowledge.
type DiscoverySource struct {
	Name string
	discovery.SourceStatus
}

// DiscoverySources returns the sources of d, or nil if discovery does not run.
func DiscoverySources(d *discovery.Status) []DiscoverySource {
	if d == nil || !d.Running {
		return nil
	}
	return []DiscoverySource{{"CustomResourceDefinitions", d.CRDs}, {"APIServices", d.APIServices}, {"Discovery documents", d.Documents}}
}

// Summary describes the source: its state, the duration of the state, and the error.
func (s DiscoverySource) Summary(at time.Time) string {
	if s.State == discovery.SourceAbsent { // Err has the same text
		return "not served by this server"
	}
	text := string(s.State)
	if !s.Since.IsZero() {
		text += " for " + elapsed(s.Since, at)
	}
	if s.Err == nil {
		return text
	}
	text += ": "
	if s.Verb != "" {
		text += "cannot " + s.Verb + ": "
	}
	return text + s.Err.Error()
}

// MarshalJSON writes name, state, since, verb and error.
func (s DiscoverySource) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name  string                `json:"name"`
		State discovery.SourceState `json:"state"`
		Since time.Time             `json:"since,omitzero"`
		Verb  string                `json:"verb,omitempty"`
		Error string                `json:"error,omitempty"`
	}{s.Name, s.State, s.Since, s.Verb, errorText(s.Err)})
}

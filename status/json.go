package status

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
)

// MarshalJSON writes the informer as an object with the keys of its fields' tags. It also has:
//
//   - name, group, version, resource: GVR, as a reference and in parts;
//   - message, advice: the results of [Informer.Message] and [Informer.Advice];
//   - error: the text of Err;
//   - served: name, kind, namespaced, backing, crdUID and terminating of Resource, if it has
//     been resolved;
//   - pollPeriod: PollPeriod, such as "1m0s", if it is not zero;
//   - evidence: kind, crdUID and at of Evidence, if the type is gone.
//
// The keys keep their names and meanings. Keys without a value are left out, unless zero is
// a meaningful value.
func (i Informer) MarshalJSON() ([]byte, error) {
	type fields Informer // without MarshalJSON
	return json.Marshal(struct {
		Name     string    `json:"name"`
		Group    string    `json:"group"`
		Version  string    `json:"version"`
		Resource string    `json:"resource"`
		Served   *served   `json:"served,omitempty"`
		Message  string    `json:"message,omitempty"`
		Advice   string    `json:"advice,omitempty"`
		Error    string    `json:"error,omitempty"`
		Poll     string    `json:"pollPeriod,omitempty"`
		Evidence *evidence `json:"evidence,omitempty"`
		fields
	}{
		i.Name(), i.GVR.Group, i.GVR.Version, i.GVR.Resource, i.served(), i.Message(), i.Advice(), errorText(i.Err), i.pollPeriod(), i.evidence(), fields(i),
	})
}

// pollPeriod returns PollPeriod as text, or "".
func (i *Informer) pollPeriod() string {
	if i.PollPeriod == 0 {
		return ""
	}
	return i.PollPeriod.String()
}

type served struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	Namespaced  bool              `json:"namespaced"`
	Backing     discovery.Backing `json:"backing,omitempty"`
	CRDUID      types.UID         `json:"crdUID,omitempty"`
	Terminating bool              `json:"terminating,omitempty"`
}

func (i *Informer) served() *served {
	if !i.resolved() {
		return nil
	}
	res := &i.Resource
	return &served{discovery.RefOf(res.GVR).String(), res.GVK.Kind, res.Namespaced, res.Backing, res.CRDUID, res.Terminating}
}

type evidence struct {
	Kind   discovery.EvidenceKind `json:"kind"`
	CRDUID types.UID              `json:"crdUID,omitempty"`
	At     time.Time              `json:"at,omitzero"`
}

func (i *Informer) evidence() *evidence {
	if i.Evidence.Kind == "" {
		return nil
	}
	return &evidence{i.Evidence.Kind, i.Evidence.CRDUID, i.Evidence.At}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// MarshalJSON writes the explanation as an object with the keys of its fields' tags. It also has:
//
//   - name: GVR as a reference;
//   - elsewhere: the other versions that have informers, as references;
//   - discovery: running, types, requests, the numbers of answers by outcome, and, while
//     discovery runs, the sources with name, state, since, verb and error.
func (e Explanation) MarshalJSON() ([]byte, error) {
	type fields Explanation // without MarshalJSON
	if e.Informers == nil {
		e.Informers = []Informer{}
	}
	var d *discoveryStatus
	if s := e.Discovery; s != nil {
		d = &discoveryStatus{s.Running, s.Types, s.Requests, answers(s.Answers), DiscoverySources(s)}
	}
	return json.Marshal(struct {
		Name string `json:"name"`
		fields
		Elsewhere []string         `json:"elsewhere,omitempty"`
		Discovery *discoveryStatus `json:"discovery,omitempty"`
	}{e.Name(), fields(e), e.ElsewhereNames(), d})
}

type discoveryStatus struct {
	Running  bool              `json:"running"`
	Types    int               `json:"types"`
	Requests uint64            `json:"requests"`
	Answers  answers           `json:"answers"`
	Sources  []DiscoverySource `json:"sources,omitempty"`
}

type answers struct {
	Served       uint64 `json:"served"`
	NotServed    uint64 `json:"notServed"`
	Inconclusive uint64 `json:"inconclusive"`
	Ambiguous    uint64 `json:"ambiguous"`
}

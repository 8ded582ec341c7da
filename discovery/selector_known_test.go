package discovery_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gvrkit/gvrkit/discovery"
)

func ofTeam(team string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"team": team})
}

func TestSelects_ByWhatIsKnownAtTheMoment(t *testing.T) {
	labelled := define(gadgetsCRD, "1")
	labelled.labels = map[string]string{"team": "net"}
	s, crds := crdServer(t, labelled)
	r := run(t, s, never())
	l := listen(t, r, discovery.WithLabelChanges())
	gadget, err := r.ResolveGVR(t.Context(), gadgets)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := r.Resolve(t.Context(), "pods")
	if err != nil {
		t.Fatal(err)
	}
	net := discovery.Selector{CRDLabels: ofTeam("net")}
	unknownBacking := gadget
	unknownBacking.Backing = discovery.BackingUnknown
	for _, tc := range []struct {
		name     string
		selector discovery.Selector
		res      discovery.Resource
		want     bool
	}{
		{"label", net, gadget, true},
		{"another label", discovery.Selector{CRDLabels: ofTeam("other")}, gadget, false},
		{"label and group", discovery.Selector{CRDLabels: ofTeam("net"), Groups: []string{"other"}}, gadget, false},
		{"label and backing", discovery.Selector{CRDLabels: ofTeam("net"), Backing: discovery.BackingBuiltIn}, gadget, false},
		{"label of no CRD", net, pod, false},
		{"backing", discovery.Selector{Backing: discovery.BackingCRD}, gadget, true},
		{"backing of no CRD", discovery.Selector{Backing: discovery.BackingCRD}, pod, false},
		{"built in", discovery.Selector{Backing: discovery.BackingBuiltIn}, pod, true},
		{"not built in, as is known since", discovery.Selector{Backing: discovery.BackingBuiltIn}, unknownBacking, false},
		{"everything", discovery.Selector{}, pod, true},
	} {
		if got, err := r.Selects(tc.selector, tc.res); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}

	labelled.labels = map[string]string{"team": "other"}
	crds.put(labelled.object())
	l.wants("Changed gadgets.v1.example.org [Labels]")
	if got, err := r.Selects(net, gadget); err != nil || got {
		t.Errorf("after the change: %v, %v", got, err)
	}

	labelled.uid = "2"
	crds.put(labelled.object())
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org")
	_, err = r.Selects(net, gadget) // of the first
	checkKind(t, err, discovery.ErrInconclusive)
	crds.remove(gadgetsCRD)
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
	_, err = r.Selects(net, gadget)
	checkKind(t, err, discovery.ErrInconclusive)
}

func TestSelects_IsInconclusiveWhereNothingIsKnown(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	res := discovery.Resource{GVR: gadgets}
	byLabel, byBacking := discovery.Selector{CRDLabels: labels.Everything()}, discovery.Selector{Backing: discovery.BackingAggregated}
	for _, selector := range []discovery.Selector{byLabel, byBacking} {
		_, err := s.resolver(t).Selects(selector, res)
		checkKind(t, err, discovery.ErrInconclusive)
	}
	s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	r := run(t, s, never())
	for _, selector := range []discovery.Selector{byLabel, byBacking} {
		_, err := r.Selects(selector, res)
		checkKind(t, err, discovery.ErrInconclusive)
	}
	if got, err := r.Selects(discovery.Selector{Groups: []string{gadgets.Group}}, res); err != nil || !got {
		t.Errorf("by group: %v, %v", got, err)
	}
}

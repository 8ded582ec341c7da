package status_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// namespaces returns a number of namespaces in which requests fail.
func namespaces(failing int) (all []status.Namespace) {
	for i := range failing {
		all = append(all, status.Namespace{Name: fmt.Sprint("n", i), Reason: status.ReasonUnavailable, Verb: "list", Err: errors.New("down"), Since: time.Unix(100, 0), Attempts: 3})
	}
	return all
}

func TestInformer_DescribesItsNamespaces(t *testing.T) {
	good, waiting := status.Namespace{Name: "good", Listed: true}, status.Namespace{Name: "later", Reason: status.ReasonSyncing}
	for want, i := range map[string]status.Informer{
		"":             {},
		"0 namespaces": {Namespaces: []status.Namespace{}},
		"1 namespace":  {Namespaces: []status.Namespace{good}},
		"2 namespaces": {Namespaces: []status.Namespace{good, waiting}}, // none is listed
		"3 namespaces, 1 fails, 1 not listed yet": {Listed: true, Namespaces: append(namespaces(1), good, waiting)},
		"2 namespaces, 2 fail":                    {Namespaces: namespaces(2)},
	} {
		if got := i.NamespacesText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestExplanation_NamesSomeFailingNamespaces(t *testing.T) {
	for failing, want := range map[int]string{
		1: `Namespace "n0" (Unavailable for 60s, 3 attempts): cannot list in namespace "n0": down.`,
		6: `1 more namespace fails.`,
		7: `2 more namespaces fail.`,
	} {
		for _, i := range []status.Informer{
			{State: status.StateSynced, Listed: true, Traffic: status.Traffic{Lists: 1}},
			{State: status.StateSynced, Listed: true, Traffic: status.Traffic{Lists: 1}, PollPeriod: time.Minute},
			{State: status.StateStarting, Reason: status.ReasonSyncing}, // the other namespaces are being listed
		} {
			i.GVR, i.Namespaces = gvr, namespaces(failing)
			text := status.NewExplanation(gvr, time.Unix(160, 0), []status.Informer{i}, nil, nil).String()
			if !strings.Contains(text, want) || strings.Contains(text, `"n5"`) || !strings.Contains(text, "To do: check that the API server") {
				t.Errorf("%q is not in:\n%s", want, text)
			}
		}
	}
}

func TestIncompleteError_NamesTheNamespaces(t *testing.T) {
	err := &status.IncompleteError{GVR: gvr, Namespaces: append([]status.Namespace{{Name: "later", Reason: status.ReasonSyncing}}, namespaces(6)...)}
	const want = `widgets.v1.example.com: the cache does not have the objects of 7 namespaces: "later": Syncing; "n0": cannot list: down; "n1": cannot list: down; "n2": cannot list: down; "n3": cannot list: down; 2 more`
	if err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
	if errors.Unwrap(err).Error() != "down" {
		t.Errorf("it unwraps to %v", errors.Unwrap(err))
	}
	for _, unknown := range []*status.IncompleteError{{GVR: gvr}, {GVR: gvr, Err: errors.New("down")}} {
		want := discovery.RefOf(gvr).String() + ": the cache has no objects: it is not known yet which namespaces to list"
		if unknown.Err != nil {
			want += ": cannot list namespaces: down"
		}
		if unknown.Error() != want || errors.Unwrap(unknown) != unknown.Err || !errors.Is(unknown, status.ErrIncomplete) { //nolint:errorlint // the same error
			t.Errorf("%v", unknown)
		}
	}
	if none := errors.Unwrap(&status.IncompleteError{Namespaces: err.Namespaces[:1]}); none != nil {
		t.Errorf("without an error, it unwraps to %v", none)
	}
}

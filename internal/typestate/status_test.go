package typestate

import (
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// A status is of one moment: while lists fail and succeed in turn, its counters, its reason and its
// attempts never contradict each other.
func TestSnapshot_StatusIsOfOneMoment(t *testing.T) {
	s := newShips(t)
	yes(served("a"))(s)
	var turns sync.WaitGroup
	turns.Go(func() {
		for range 2000 {
			s.Failed(source.VerbList, apierrors.NewServiceUnavailable("down"))
			s.Succeeded(source.VerbList)
		}
	})
	look := func() (done bool) {
		now := s.Snapshot()
		i := now.Status("")
		failing := i.Traffic.Failures[status.ReasonUnavailable] - i.Traffic.Lists
		wrong := i.Err == nil || i.Reason != status.ReasonUnavailable || i.Verb != source.VerbList || i.Attempts != 1 || i.Since.IsZero()
		if failing > 1 || (failing == 1) == wrong {
			t.Errorf("after %d failures and %d lists: %+v", i.Traffic.Failures[status.ReasonUnavailable], i.Traffic.Lists, i)
			return true
		}
		return i.Traffic.Lists == 2000
	}
	for !look() {
	}
	turns.Wait()
}

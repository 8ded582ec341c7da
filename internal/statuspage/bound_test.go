package statuspage

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A client may ask a thousand different questions.
func TestAnswers_FewAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers[int]()
		ask := func(i int) {
			got, _, err := a.get(t.Context(), strconv.Itoa(i), func(context.Context) (int, time.Time, error) {
				return i, time.Now().Add(keep), nil
			})
			if got != i || err != nil {
				t.Errorf("answer %d = %d, %v", i, got, err)
			}
		}
		for i := range 1000 {
			ask(i)
		}
		if got := len(a.stored); got != answersAtMost {
			t.Errorf("%d answers are stored, want %d", got, answersAtMost)
		}
		time.Sleep(keep)
		ask(1000)
		if got := len(a.stored); got != 1 {
			t.Errorf("%d answers are stored after their time, want 1", got)
		}
	})
}

package source

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// overdueAfter is how long after its time a watch may end. A server ends it in time;
// one that does not is out of reach, and nothing else may ever say so.
const overdueAfter = 30 * time.Second

var errOverdue = fmt.Errorf("the server has not ended the watch %v after the time that it was asked for: the connection hangs", overdueAfter)

// deadline is when a watch is overdue.
type deadline struct{ timer *time.Timer }

// newDeadline returns that of a watch with opts; never, if they set no time.
func newDeadline(opts metav1.ListOptions) *deadline {
	if opts.TimeoutSeconds == nil || *opts.TimeoutSeconds <= 0 {
		return &deadline{}
	}
	return &deadline{time.NewTimer(time.Duration(*opts.TimeoutSeconds)*time.Second + overdueAfter)}
}

// elapsed returns a channel that delivers when the watch is overdue.
func (d *deadline) elapsed() <-chan time.Time {
	if d.timer == nil {
		return nil
	}
	return d.timer.C
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

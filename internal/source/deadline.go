package source

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// overdueAfter is how long after its timeout a watch may end. A server ends a watch at its
// timeout. If it does not, the connection is broken, and there may be no other sign of that.
const overdueAfter = 30 * time.Second

var errOverdue = fmt.Errorf("the server has not ended the watch %v after its timeout: the connection hangs", overdueAfter)

// deadline is the time at which a watch is overdue.
type deadline struct{ timer *time.Timer }

// newDeadline returns the deadline of a watch with opts. There is none if opts have no timeout.
func newDeadline(opts metav1.ListOptions) *deadline {
	timeout := timeoutOf(opts)
	if timeout == 0 {
		return &deadline{}
	}
	return &deadline{time.NewTimer(timeout + overdueAfter)}
}

// timeoutOf returns the time after which the server ends a watch with opts; zero: it chooses.
func timeoutOf(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return 0
	}
	return max(0, time.Duration(*opts.TimeoutSeconds)*time.Second)
}

// elapsed returns a channel that receives a value when the watch is overdue.
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

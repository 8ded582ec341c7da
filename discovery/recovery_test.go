package discovery

import "testing"

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestRecovery_AnotherPathEndsTheBackOffAndItsOwnDoesNot(t *testing.T) {
	var r recovery
	r.succeeded("/apis") // nothing has failed
	healed := r.failed("/crds")
	r.succeeded("/crds") // its list, and the watch fails again
	if again := r.failed("/crds"); closed(healed) || closed(again) {
		t.Fatal("a path has ended its own back-off")
	}
	healed = r.failed("/crds")
	r.succeeded("/apis")
	if !closed(healed) {
		t.Error("the first success of another path did not end it")
	}
	if closed(r.failed("/crds")) {
		t.Error("the next back-off has ended before it began")
	}
}

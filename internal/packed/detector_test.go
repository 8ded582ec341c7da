package packed

import "testing"

func TestDetectsMutations_AsClientGoDoes(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "true": true, "1": true} {
		t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", value)
		if got := DetectsMutations(); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

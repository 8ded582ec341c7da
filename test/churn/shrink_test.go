package churn_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gvrkit/gvrkit/test/churn"
)

// count returns a script of n operations.
func count(n int) (script churn.Script) {
	for i := range n {
		script = append(script, churn.NewOp(churn.Create, []string{"t1", fmt.Sprint("a/", i)}, "color", "red"))
	}
	return script
}

// has reports whether a script has operations on these objects, in any order.
func has(script churn.Script, objects ...string) bool {
	found := map[string]bool{}
	for _, op := range script {
		found[op.Arg("object")] = true
	}
	for _, object := range objects {
		if !found[object] {
			return false
		}
	}
	return true
}

func TestShrink_FindsTheCauses(t *testing.T) {
	for _, causes := range [][]string{{"a/0"}, {"a/99"}, {"a/3", "a/50"}, {"a/0", "a/1", "a/2", "a/97", "a/98", "a/99"}} {
		runs := 0
		got := churn.Shrink(t.Context(), count(100), func(_ context.Context, script churn.Script) bool {
			runs++
			return has(script, causes...)
		})
		if len(got) != len(causes) || !has(got, causes...) || runs > 200 {
			t.Errorf("%v: after %d runs\n%v", causes, runs, got)
		}
		for _, op := range got {
			if len(op.With) > 0 {
				t.Errorf("%v keeps its parameters", op)
			}
		}
	}
}

func TestShrink_KeepsParametersThatAreCauses(t *testing.T) {
	got := churn.Shrink(t.Context(), count(10), func(_ context.Context, script churn.Script) bool {
		return has(script, "a/4") && script[0].With["color"] == "red"
	})
	if want := "create t1 a/4 color=red\n"; got.String() != want {
		t.Errorf("got %v", got)
	}
}

func TestShrink_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	got := churn.Shrink(ctx, count(100), func(context.Context, churn.Script) bool {
		if runs++; runs == 2 {
			cancel()
		}
		return true
	})
	if runs != 2 || len(got) != 50 { // the result of the second run does not count
		t.Errorf("%d runs, %d operations", runs, len(got))
	}
}

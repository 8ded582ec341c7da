package churn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/test/churn"
)

func TestScript_ParseReadsItsText(t *testing.T) {
	for seed := range uint64(200) {
		script := churn.Generate(seed, churn.Profile{Servers: 2, Restore: true})
		parsed, err := churn.Parse(script.String())
		if diff := cmp.Diff(script, parsed); err != nil || diff != "" {
			t.Fatalf("seed %d: %v\n%s", seed, err, diff)
		}
	}
}

func TestParse_IgnoresCommentsAndNamesTheLine(t *testing.T) {
	script, err := churn.Parse("\n# comment\n  create t1 a/x color=red\n")
	if want := "create t1 a/x color=red\n"; err != nil || script.String() != want {
		t.Errorf("got %q, %v", script, err)
	}
	for _, text := range []string{"dance t1", "create t1", "create t1 a/x b/y", "create t1 a/x size=3", "create color=red t1 a/x"} {
		if _, err := churn.Parse("settle\n" + text); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOp_ArgAndList(t *testing.T) {
	op, err := churn.ParseOp("acquire l1 t2 namespaces=a,b selector=red")
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{op.Arg("lease"), op.Arg("type"), op.Arg("object")}; !slices.Equal(got, []string{"l1", "t2", ""}) {
		t.Errorf("arguments %q", got)
	}
	if got := op.List("namespaces"); !slices.Equal(got, []string{"a", "b"}) || op.List("form") != nil {
		t.Errorf("list %q", got)
	}
}

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
	for _, text := range []string{"dance t1", "create t1", "create t1 a/x b/y", "create t1 a/x size=3", "create color=red t1 a/x", "pause 3", "fault f t1"} {
		if _, err := churn.Parse("settle\n" + text); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseOp_ChecksParameters(t *testing.T) {
	for _, text := range []string{
		"define t1 scope=cluster", "define t1 versions=v1,v2", "define t1 conversion=none", "create t1 a/x color=", "fill t1 a count=-1",
		"fault f t1 kind=flood", "fault f t1 kind=fail share=1.5", "fault f t1 kind=fail verb=list,get", "acquire l t1 packed=no", "alternate period=x",
	} {
		key := text[strings.LastIndex(text, " ")+1 : strings.LastIndex(text, "=")]
		if _, err := churn.ParseOp(text); err == nil || !strings.Contains(err.Error(), "the value of "+key+" must be ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An error says which values there are.
func TestParseOp_ErrorsSayWhatIsValid(t *testing.T) {
	for text, want := range map[string]string{
		"fault f t1 kind=gon": "gonestatus", "fault f t1": "gonestatus", "pause 3": "such as 300ms", "creat t1 a/x": "create",
	} {
		if _, err := churn.ParseOp(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

func TestVerbs_ParametersAreDescribed(t *testing.T) {
	used := map[string]bool{}
	for verb, usage := range churn.Verbs {
		for _, key := range usage.With {
			used[key] = true
			if p := churn.Parameters[key]; p.Does == "" || p.Values == "" {
				t.Errorf("%s: the parameter %q is not described", verb, key)
			}
		}
	}
	for key := range churn.Parameters {
		if !used[key] {
			t.Errorf("no verb has the parameter %q", key)
		}
	}
	for kind, does := range churn.FaultKinds() {
		if does == "" {
			t.Errorf("the fault kind %q is not described", kind)
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

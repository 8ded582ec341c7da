package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/types/report"
	"github.com/gvrkit/gvrkit/bench/types/server"
	"github.com/gvrkit/gvrkit/bench/types/trial"
)

func TestMain(m *testing.M) {
	if child.Role() != "" {
		main() // the child processes of tests are this program, too
	}
	goleak.VerifyTestMain(m)
}

// serve serves a cluster whose types have objects, until the test ends. Their watches never
// say anything.
func serve(t *testing.T, crds, objects int) string {
	t.Helper()
	c, err := cluster.New(cluster.Size{CRDs: crds, SchemaBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", c)
	for _, d := range cluster.Definitions(crds) {
		of := d.Types[0]
		list := map[string]any{"kind": of.GVK.Kind + "List", "apiVersion": of.GVK.GroupVersion().String(), "metadata": map[string]any{"resourceVersion": "7"}}
		var items []any
		for i := range objects {
			obj := server.Object(of, i)
			obj.SetResourceVersion("5")
			items = append(items, obj.Object)
		}
		list["items"] = items
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		mux.HandleFunc("/apis/"+of.GVK.GroupVersion().String()+"/"+of.GVR.Resource, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch q := r.URL.Query(); {
			case q.Get("sendInitialEvents") != "":
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
			case q.Get("watch") != "":
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			default:
				_, _ = w.Write(text)
			}
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestProgram_MeasuresInChildProcesses(t *testing.T) {
	// The race detector keeps each of the processes for a second after its end.
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-servers", serve(t, 6, 2), "-crds", "6", "-objects", "2", "-schemas", "2000", "-types", "1,6", "-rounds", "1", "-rest", "100ms", "-out", dir}
	if code := program(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "6 of their types are watched, with 2 objects each") || !strings.Contains(stderr.String(), "6 types, 1 rounds") {
		t.Errorf("output:\n%s\n%s", &stdout, &stderr)
	}
	results, err := report.Read(filepath.Join(dir, "types.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Cases) != 2 || results.Cases[0].Types != 1 || results.Cases[1].Types != 6 {
		t.Fatalf("results: %+v", results.Cases)
	}
	for _, c := range results.Cases {
		for _, round := range append(c.Rounds, c.Warmup) {
			checkRound(t, round, int64(c.Types))
		}
	}
	var again bytes.Buffer
	if code := program([]string{"-from", filepath.Join(dir, "types.json")}, &again, &stderr); code != 0 {
		t.Fatalf("-from: exit code %d: %s", code, &stderr)
	}
	if again.String() != stdout.String() {
		t.Errorf("-from shows:\n%s\nwant:\n%s", &again, &stdout)
	}
}

// checkRound checks what has to hold for programs that watch so many types.
func checkRound(t *testing.T, round report.Round, types int64) {
	t.Helper()
	for _, system := range trial.All() {
		f := round[system.Name]
		if f.Returned <= 0 || f.Synced <= 0 || f.ReturnedCPU <= 0 || f.RestCPU < f.ReturnedCPU || f.Objects < types {
			t.Errorf("%s: %+v", system.Name, f)
		}
		switch discovers := system.Name == trial.Acquire || system.Name == trial.ForResource; {
		case discovers && (f.Documents == 0 || f.Definitions == 0 || f.Bytes == 0):
			t.Errorf("%s has no discovery: %+v", system.Name, f)
		case !discovers && (f.Documents+f.Definitions+f.Before+f.Bytes) != 0:
			t.Errorf("%s has discovery: %+v", system.Name, f)
		}
	}
}

func TestProgram_FailsIfAnObjectIsMissing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := program([]string{"-servers", serve(t, 1, 2), "-crds", "1", "-objects", "3", "-schemas", "1", "-types", "1", "-rounds", "1", "-rest", "1ms", "-out", ""}, &stdout, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "has 2 objects, of 3") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

func TestProgram_UsageErrorsAreOneLineAndCode2(t *testing.T) {
	for _, args := range [][]string{
		{"-no-such-flag"},
		{"now"},
		{"-rounds", "0"},
		{"-servers", "kind"},
		{"-crds", "0"},
		{"-objects", "0"},
		{"-schemas", "-1"},
		{"-schemas", "many"},
		{"-types", "0"},
		{"-types", "1,201"},
		{"-rest", "0"},
	} {
		var stdout, stderr bytes.Buffer
		if code := program(args, &stdout, &stderr); code != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

func TestProgram_HelpIsNoError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-help"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "-schemas") {
		t.Errorf("exit code %d, %q", code, &stdout)
	}
}

func TestParse_QuickIsLessAndLeavesWhatWasGiven(t *testing.T) {
	usual, err := parse(nil, nil)
	if err != nil || usual.rounds < 5 || usual.size.CRDs != 200 || !slices.Equal(usual.types, []int{1, 200}) || len(usual.servers) != 2 || usual.out == "" {
		t.Errorf("usual: %+v, %v", usual, err)
	}
	quick, err := parse([]string{"-quick", "-crds", "40", "-out", "x"}, nil)
	if err != nil || quick.rounds >= usual.rounds || quick.size.CRDs != 40 || !slices.Equal(quick.types, []int{1, 30}) || len(quick.servers) != 1 || quick.out != "x" {
		t.Errorf("quick: %+v, %v", quick, err)
	}
}

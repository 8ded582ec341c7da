package plots_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/plots"
	"github.com/gvrkit/gvrkit/bench/report"
)

func TestDraw_WritesAChartOfEachCase(t *testing.T) {
	f := measure.Figures{
		Objects: 10, Events: 10, SyncCPU: time.Second, EventCPU: time.Second, EventWall: time.Second, SyncAllocs: 10,
		RetainedHeap: 10, PeakRSS: 10, GCCPU: time.Second,
	}
	round := report.Round{"old": f, "new": f}
	results := &report.Results{Reference: "old"}
	for _, kind := range []string{"a", "b"} {
		results.Cases = append(results.Cases, &report.Case{
			Server: "stub", Kind: kind, Objects: 10, Systems: []string{"old", "new"}, Rounds: []report.Round{round},
		})
	}
	dir := filepath.Join(t.TempDir(), "made")
	if err := plots.Draw(results, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stub-a-10.svg", "stub-b-10.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{">new<", ">old = 1<", ">sync CPU<", ">one full GC<", "less is better"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no SVG: %v", name, err)
			}
		}
	}
}

package soak_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result counts what happens in a soak.
type result struct {
	definitions, writes, events, acquired, faults, shown, errors, lines, leaked atomic.Int64

	failed chan struct{} // closes with the first violation

	mu    sync.Mutex
	found int
	since time.Time // of the first violation
	texts []string  // of the first violations
	notes []note    // the last ones
}

// note is something that was done with a type, or with all types, for the report of a violation.
type note struct {
	at     time.Time
	plural string
	text   string
}

// maxNotes is how many notes are kept.
const maxNotes = 20000

// note records what is done with a type, until shortly after the first violation: log lines may follow their cause.
func (r *result) note(plural, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == 0 || time.Since(r.since) < time.Second {
		r.notes = append(r.notes[max(0, len(r.notes)-maxNotes+1):], note{time.Now(), plural, fmt.Sprintf(format, args...)})
	}
}

// forget removes the notes, unless there is a violation.
func (r *result) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == 0 {
		r.notes = nil
	}
}

// notesOf returns the notes of the types that texts name, and of all types.
func (r *result) notesOf(texts []string) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(texts, "\n")
	for _, n := range r.notes {
		if n.plural == everyType || strings.Contains(all, n.plural) {
			lines = append(lines, fmt.Sprintf("%s %s: %s", n.at.Format(clock), n.plural, n.text))
		}
	}
	return lines
}

// clock is the layout of times in reports.
const clock = "15:04:05.000"

// maxTexts is how many violations have a text.
const maxTexts = 20

// report reports a violation: an event that was lost or invented, or a promise that was not kept.
func (r *result) report(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found++; r.found == 1 {
		r.since = time.Now()
		close(r.failed)
	}
	if len(r.texts) < maxTexts {
		r.texts = append(r.texts, time.Now().Format(clock)+" "+fmt.Sprintf(format, args...))
	}
}

// count returns the number of violations.
func (r *result) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// violations returns the texts of the first violations, and the number of the others.
func (r *result) violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := slices.Clone(r.texts)
	if more := r.found - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return texts
}

// figures are what is there when nothing is used.
type figures struct {
	goroutines int
	heap       uint64
	watches    int
	informers  int
	series     []string
}

// measure collects garbage, and measures the process.
func measure() (goroutines int, heap uint64) {
	for range 3 { // what weak pointers, finalizers and pools keep
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), stats.HeapAlloc
}

// series returns the names and labels of all series, sorted.
func series(t *testing.T, from prometheus.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			all = append(all, family.GetName()+"{"+strings.Join(labels, ",")+"}")
		}
	}
	slices.Sort(all)
	return all
}

// grown returns what is more than in the base. The heap may grow a little: fill does not fill the client's tables
// to the last slot.
func (f figures) grown(base figures) (found []string) {
	if f.goroutines > base.goroutines {
		found = append(found, fmt.Sprintf("%d goroutines are left", f.goroutines-base.goroutines))
	}
	if limit := base.heap + base.heap/10 + 1<<20; f.heap > limit {
		found = append(found, fmt.Sprintf("the heap has %d KB, and may have %d KB", f.heap>>10, limit>>10))
	}
	if f.watches > 0 {
		found = append(found, fmt.Sprintf("%d watches are open", f.watches))
	}
	if f.informers > 0 {
		found = append(found, fmt.Sprintf("%d informers are left", f.informers))
	}
	left := slices.DeleteFunc(slices.Clone(f.series), func(name string) bool {
		_, before := slices.BinarySearch(base.series, name)
		return before
	})
	if len(left) > 0 {
		found = append(found, fmt.Sprintf("%d metric series are left, such as %s", len(left), left[0]))
	}
	return found
}

// table returns the figures of the base and of the end.
func table(base, end figures, violations int) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name string, base, end any) { fmt.Fprintf(w, "%s\t%v\t%v\t\n", name, base, end) }
	row("", "base", "end")
	row("goroutines", base.goroutines, end.goroutines)
	row("heap, KB", base.heap>>10, end.heap>>10)
	row("watches of the types", base.watches, end.watches)
	row("informers", base.informers, end.informers)
	row("metric series", len(base.series), len(end.series))
	row("violations, such as lost events", "", violations)
	_ = w.Flush() // of a strings.Builder
	return b.String()
}

package report

import (
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/measure"
)

// Metric is one thing that was measured.
type Metric struct {
	Name string
	// Of returns its value in one run.
	Of func(measure.Figures) float64
	// Text writes a value with its unit.
	Text func(float64) string
	// Rate says that more is better. Such a metric is known on a paced server only.
	Rate bool
}

// Metrics returns what is compared.
func Metrics() []Metric {
	return []Metric{
		{
			Name: "sync CPU", Text: unit("%.0f µs/object"),
			Of: func(f measure.Figures) float64 { return micros(f.SyncCPU) / float64(f.Objects) },
		},
		{
			Name: "event CPU", Text: unit("%.0f µs/event"),
			Of: func(f measure.Figures) float64 { return micros(f.EventCPU) / float64(f.Events) },
		},
		{
			Name: "events/s", Text: unit("%.0f"), Rate: true,
			Of: func(f measure.Figures) float64 { return float64(f.Events) / f.EventWall.Seconds() },
		},
		{
			Name: "allocations", Text: unit("%.0f /object"),
			Of: func(f measure.Figures) float64 { return float64(f.SyncAllocs) / float64(f.Objects) },
		},
		{
			Name: "retained heap", Text: unit("%.0f B/object"),
			Of: func(f measure.Figures) float64 { return float64(f.RetainedHeap) / float64(f.Objects) },
		},
		{
			Name: "peak RSS", Text: unit("%.0f MiB"),
			Of: func(f measure.Figures) float64 { return float64(f.PeakRSS) / (1 << 20) },
		},
		{
			Name: "one full GC", Text: unit("%.1f ms"),
			Of: func(f measure.Figures) float64 { return micros(f.GCCPU) / 1000 },
		},
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func unit(format string) func(float64) string {
	return func(v float64) string { return fmt.Sprintf(format, v) }
}

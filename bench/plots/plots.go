// Package plots draws results as bar charts.
package plots

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/gvrkit/gvrkit/bench/report"
)

const (
	width  = 26 * vg.Centimeter
	height = 11 * vg.Centimeter
	// group is how wide the bars of one metric are together.
	group = 2.6 * vg.Centimeter
)

// palette has a colour for each system, which can be told apart by all.
var palette = []color.Color{
	color.RGBA{R: 0xbb, G: 0xbb, B: 0xbb, A: 0xff},
	color.RGBA{R: 0xee, G: 0xaa, B: 0x44, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x66, B: 0x77, A: 0xff},
	color.RGBA{R: 0x33, G: 0x77, B: 0xbb, A: 0xff},
	color.RGBA{R: 0x77, G: 0xbb, B: 0xdd, A: 0xff},
	color.RGBA{R: 0x22, G: 0x88, B: 0x55, A: 0xff},
	color.RGBA{R: 0x99, G: 0xbb, B: 0x55, A: 0xff},
	color.RGBA{R: 0x88, G: 0x55, B: 0x99, A: 0xff},
}

// Draw writes a chart of each case to dir.
func Draw(results *report.Results, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range results.Cases {
		p, err := chart(c, results.Reference)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s-%d.svg", c.Server, c.Kind, c.Objects)
		if err := write(p, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// chart has a group of bars for each metric of which less is better, and a line
// where the reference is.
func chart(c *report.Case, reference string) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s: ratios to %s, less is better", c.Title(), reference)
	p.Y.Label.Text = "ratio, median of " + fmt.Sprint(len(c.Rounds)) + " rounds"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.XOffs, p.Legend.Padding = true, 0, vg.Millimeter

	var metrics []report.Metric
	var names []string
	for _, m := range report.Metrics() {
		if !m.Rate {
			metrics, names = append(metrics, m), append(names, m.Name)
		}
	}
	p.NominalX(names...)
	var others []string
	for _, system := range c.Systems {
		if system != reference {
			others = append(others, system)
		}
	}
	bar := group / vg.Length(max(len(others), 1))
	for i, system := range others {
		values := make(plotter.Values, len(metrics))
		for k, m := range metrics {
			s, _ := c.Ratios(m, system, reference) // no bar for what is not known
			values[k] = s.Median
		}
		bars, err := plotter.NewBarChart(values, bar)
		if err != nil {
			return nil, err
		}
		bars.LineStyle.Width, bars.Color = 0, palette[i%len(palette)]
		bars.Offset = bar * (vg.Length(i) - vg.Length(len(others)-1)/2)
		p.Add(bars)
		p.Legend.Add(system, bars)
	}
	one := plotter.NewFunction(func(float64) float64 { return 1 })
	one.Width, one.Dashes = vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(one)
	p.Legend.Add(reference+" = 1", one)
	p.X.Min, p.X.Max = -.6, float64(len(metrics))+.6 // the legend is on the right
	p.Y.Max = max(p.Y.Max, 1.1)
	if p.Y.Max < 3 { // as a rule; the library's own ticks are odd ones there
		p.Y.Tick.Marker = plot.TickerFunc(quarters)
	}
	return p, nil
}

// quarters are ticks at 0, 0.25, 0.5 …
func quarters(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for v := low; v <= high; v += .25 {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.2f", v)})
	}
	return ticks
}

func write(p *plot.Plot, path string) error {
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close() // the first error tells more
		return err
	}
	return file.Close()
}

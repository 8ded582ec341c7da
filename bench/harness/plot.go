package harness

import (
	"bytes"
	_ "embed"
	"html/template"
)

//go:embed chart.svg.tmpl
var chartText string

// chart is a bar chart: a group of bars for each metric, whose heights are ratios, and a line at 1
// for the reference.
var chart = template.Must(template.New("").Parse(chartText))

// palette has a colour for each contestant. Readers with colour vision deficiency can
// distinguish them.
var palette = []string{"#bbbbbb", "#eeaa44", "#cc6677", "#3377bb", "#77bbdd", "#228855"}

type mark struct {
	X, Y, Width, Height float64
	Colour, Text        string
}

// drawing is the data of chart.
type drawing struct {
	*CaseResults

	Texts, Bars, Keys   []mark
	Width, Right, Scale float64
}

// draw returns a chart of the ratios of all metrics without More, as SVG.
func (c *CaseResults) draw() []byte {
	const left, group, gap, highest = 40., 140., 20., 260.
	d := drawing{CaseResults: c, Right: left, Scale: highest}
	others := c.Contestants[1:]
	width := group / float64(len(others))
	for _, m := range c.Metrics {
		if m.More {
			continue
		}
		d.Texts = append(d.Texts, mark{X: d.Right, Y: 340, Text: m.Name})
		for i, contestant := range others {
			if ratio := c.Ratios(m.Name, contestant.Name, c.Reference()); ratio != nil {
				d.Bars = append(d.Bars, mark{X: d.Right + float64(i)*width, Width: width, Height: ratio.Median, Colour: palette[i%len(palette)], Text: contestant.Name})
				d.Scale = min(d.Scale, highest/ratio.Median)
			}
		}
		d.Right += group + gap
	}
	for i, contestant := range others {
		y := 50 + float64(i)*20
		d.Keys = append(d.Keys, mark{X: d.Right, Y: y, Colour: palette[i%len(palette)]})
		d.Texts = append(d.Texts, mark{X: d.Right + 18, Y: y + 10, Text: contestant.Name})
	}
	d.Width = d.Right + 180
	var out bytes.Buffer
	if err := chart.Execute(&out, d); err != nil {
		panic("harness: bug: the chart: " + err.Error())
	}
	return out.Bytes()
}

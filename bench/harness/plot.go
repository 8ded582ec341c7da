package harness

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
)

// chart is a bar chart: a group of bars for each metric, and a line at 1 for the reference.
var chart = template.Must(template.New("").Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} 360" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="10" y="20" font-size="14">{{.Title}}</text>
{{range .Texts}}<text x="{{.X}}" y="{{.Y}}">{{.Text}}</text>
{{end}}{{range .Bars}}<rect x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="{{.Height}}" fill="{{.Colour}}"><title>{{.Text}}</title></rect>
{{end}}<line x1="40" x2="{{.Right}}" y1="{{.One}}" y2="{{.One}}" stroke="black" stroke-dasharray="4 3"/>
</svg>
`))

// palette has a colour for each contestant. Readers with colour vision deficiency can
// distinguish them.
var palette = []string{"#bbbbbb", "#eeaa44", "#cc6677", "#3377bb", "#77bbdd", "#228855"}

type mark struct {
	X, Y, Width, Height float64
	Colour, Text        string
}

// Draw writes a chart of each case that asks for one to dir, as SVG.
func (r *Results) Draw(dir string) error {
	for _, c := range r.Cases {
		if !c.Plot || len(c.Rounds) == 0 {
			continue
		}
		var out strings.Builder
		if err := chart.Execute(&out, c.chart()); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, r.Scenario+"-"+c.Name+".svg"), []byte(out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// chart returns the data of the template: the ratios of all metrics of which less is better.
func (c *CaseResults) chart() map[string]any {
	const left, bottom, group, gap = 40., 320., 140., 20.
	others := c.Contestants[1:]
	highest := 1.
	var bars, texts []mark
	for _, m := range c.Metrics {
		if m.More {
			continue
		}
		x := left + float64(len(texts))*(group+gap)
		texts = append(texts, mark{X: x, Y: bottom + 20, Text: m.Name})
		for i, contestant := range others {
			ratio, _ := c.Ratios(m.Name, Pair{contestant.Name, c.Reference()}) // no bar without a ratio
			width := group / float64(len(others))
			bars = append(bars, mark{
				X: x + float64(i)*width, Width: width, Height: ratio.Median, Colour: palette[i%len(palette)],
				Text: fmt.Sprintf("%s %.2f", contestant.Name, ratio.Median),
			})
			highest = max(highest, ratio.Median)
		}
	}
	scale := 260 / highest
	for i := range bars {
		bars[i].Height *= scale
		bars[i].Y = bottom - bars[i].Height
	}
	right := left + float64(len(texts))*(group+gap)
	for i, contestant := range others {
		y := 60 + float64(i)*20
		bars = append(bars, mark{X: right, Y: y - 10, Width: 12, Height: 12, Colour: palette[i%len(palette)]})
		texts = append(texts, mark{X: right + 18, Y: y, Text: contestant.Name})
	}
	title := fmt.Sprintf("%s: ratios to %s (dashed), less is better; medians of %d rounds", c.Title, c.Reference(), len(c.Rounds))
	return map[string]any{"Title": title, "Width": right + 180, "Right": right, "One": bottom - scale, "Bars": bars, "Texts": texts}
}

package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// grid is lines of cells, written one below the other. A line of one cell is a title, as
// long as it likes.
type grid struct{ lines [][]string }

func (g *grid) add(cells ...string) { g.lines = append(g.lines, cells) }

func (g *grid) write(w io.Writer) {
	var widths []int
	for _, cells := range g.lines {
		if len(cells) == 1 {
			continue
		}
		for i, text := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, cells := range g.lines {
		var line strings.Builder
		for i, text := range cells {
			line.WriteString(text)
			if i+1 < len(cells) {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

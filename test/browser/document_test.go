package browser_test

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

var (
	tableRow = regexp.MustCompile(`(?s)<tr data-key=.*?</tr>`)
	cell     = regexp.MustCompile(`(?s)<t[dh][ >].*?</t[dh]>`)
	tag      = regexp.MustCompile(`(?s)<[^>]*>`)
	listItem = regexp.MustCompile(`(?s)<li>.*?</li>`)
	statusOf = regexp.MustCompile(`(?s)<p id="connection"[^>]*>.*?</p>`)
)

// words returns the visible text of a part of a document.
func words(markup string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(markup, " "))), " ")
}

// table returns the cells of the row of each informer.
func table(document string) [][]string {
	var rows [][]string
	for _, markup := range tableRow.FindAllString(document, -1) {
		var cells []string
		for _, c := range cell.FindAllString(markup, -1) {
			cells = append(cells, words(c))
		}
		rows = append(rows, cells)
	}
	return rows
}

// items returns the items of lists.
func items(document string) []string {
	var all []string
	for _, markup := range listItem.FindAllString(document, -1) {
		all = append(all, words(markup))
	}
	return all
}

// connection returns the page's text about its connection.
func connection(document string) string { return words(statusOf.FindString(document)) }

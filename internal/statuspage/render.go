package statuspage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"

	"github.com/gvrkit/gvrkit/status"
)

//go:embed page.html page.css page.js
var files embed.FS

var (
	pages  = template.Must(template.ParseFS(files, "page.html"))
	style  = template.CSS(content("page.css")) //nolint:gosec // our own
	script = template.JS(content("page.js"))   //nolint:gosec // our own
	// policy is a content security policy: only the script and the style of the page, only requests to
	// the page.
	policy = "default-src 'none'; script-src '" + digest(string(script)) + "'; style-src '" + digest(string(style)) +
		"'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

// content returns the content of an embedded file.
func content(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic("statuspage: bug: " + err.Error())
	}
	return string(data)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// renderTable writes t in the format of q.
func renderTable(t *Table, q query) ([]byte, error) {
	switch q.format {
	case asJSON:
		return asLines(t)
	case asHTML:
		return execute(tableView(t, q))
	}
	return textOfTable(tableView(t, q)), nil
}

// renderDetail writes e in the format of q.
func renderDetail(e *status.Explanation, q query) ([]byte, error) {
	switch q.format {
	case asJSON:
		return asLines(e)
	case asHTML:
		return execute(viewOfDetail(e, q))
	}
	return textOfDetail(viewOfDetail(e, q)), nil
}

// asLines writes value as indented JSON.
func asLines(value any) ([]byte, error) {
	body, err := json.MarshalIndent(value, "", "  ")
	return append(body, '\n'), err
}

func execute(v *view) ([]byte, error) {
	var b bytes.Buffer
	err := pages.Execute(&b, v)
	return b.Bytes(), err
}

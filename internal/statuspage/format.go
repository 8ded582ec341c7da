package statuspage

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// format is how an answer is written.
type format string

const (
	asText format = "text"
	asHTML format = "html"
	asJSON format = "json"
)

// contentType returns what f is called in headers.
func (f format) contentType() string {
	switch f {
	case asHTML:
		return "text/html; charset=utf-8"
	case asJSON:
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// formatOf returns the format that is named or, if none is, that which header prefers.
func formatOf(name string, header http.Header) (format, error) {
	switch f := format(name); f {
	case asText, asHTML, asJSON:
		return f, nil
	case "":
		return accepted(header.Values("Accept")), nil
	}
	return asText, errors.New("format is text, html or json")
}

// accepted returns the format that an Accept header likes best, the first one of several.
// HTML and JSON have to be named: whoever takes anything gets text.
func accepted(lines []string) format {
	best, weight := asText, 0.0
	for item := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		kind, parameters, _ := strings.Cut(item, ";")
		var f format
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/html", "application/xhtml+xml":
			f = asHTML
		case "application/json":
			f = asJSON
		case "text/plain":
			f = asText
		default:
			continue
		}
		if w := quality(parameters); w > weight {
			best, weight = f, w
		}
	}
	return best
}

// quality returns the q among parameters; 1 if there is none that can be read.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.ToLower(strings.TrimSpace(name)) != "q" {
			continue
		}
		if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			return q
		}
	}
	return 1
}

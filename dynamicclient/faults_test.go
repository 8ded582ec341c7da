package dynamicclient_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// nested returns a document that is depth levels deep, made of opening and closing.
func nested(depth int, opening, closing string) string {
	return strings.Repeat(opening, depth-1) + "[]" + strings.Repeat(closing, depth-1)
}

// badBodies are what stands in the place of JSON.
var badBodies = map[string]string{
	"nothing":                            "",
	"white space":                        " \n\t\r\n",
	"HTML":                               "<!DOCTYPE html>\n<html><body><h1>Sign in</h1></body></html>\n",
	"text":                               "upstream connect error or disconnect/reset before headers",
	"a NUL byte":                         "\x00",
	"many NUL bytes":                     strings.Repeat("\x00", 5000),
	"a byte order mark":                  "\ufeff" + widgetA,
	"UTF-16":                             "{\x00\"\x00k\x00",
	"gzip without a header that says so": "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xaaV*.",
	"a number":                           "12345",
	"a string":                           `"12345"`,
	"null":                               "null",
	"true":                               "true",
	"an array":                           "[" + widgetA + "]",
	"an empty object":                    "{}",
	"an empty array":                     "[]",
	"an opening brace":                   "{",
	"a closing brace":                    "}",
	"a thousand opening braces":          strings.Repeat("{", 1000),
	"brackets that do not fit":           `{"a":[}`,
	"garbage after an object":            widgetA + "x",
	"an object after an object":          widgetA + widgetA,
	"NUL after an object":                widgetA + "\x00",
	"single quotes":                      `{'kind':'Widget'}`,
	"a comment":                          "/* */" + widgetA,
	"YAML":                               "kind: Widget\napiVersion: example.com/v1\n",
	"an endless string":                  `{"kind":"` + strings.Repeat("a", 100_000),
	"an event":                           stubserver.Event("ADDED", widgetA),
	"too deep an array":                  nested(10_001, "[", "]"),
	"far too deep an array":              nested(100_000, "[", "]"),
	"an unclosed deep array":             strings.Repeat("[", 100_000),
	"an unclosed deep object":            strings.Repeat(`{"a":`, 100_000),
}

func TestClient_ReadsWhatIsNoAnswerAsClientGo(t *testing.T) {
	s := serve(t)
	for name, body := range badBodies {
		for _, c := range readers {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				s.compare(t, exchange{replies: []stubserver.Reply{stubserver.JSON(body)}, call: c.call})
			})
		}
	}
}

// badValues stand in the place of a field's value.
var badValues = map[string]string{
	"an int64":                  "-9223372036854775808",
	"beyond int64":              "9223372036854775808",
	"below int64":               "-9223372036854775809",
	"beyond uint64":             "18446744073709551616",
	"a number of 400 digits":    strings.Repeat("9", 400),
	"beyond float64":            "1e309",
	"far beyond float64":        "1e99999999999999999999",
	"below float64":             "1e-400",
	"minus zero":                "-0",
	"minus zero as a float":     "-0.0",
	"leading zeros":             "007",
	"NaN":                       "NaN",
	"infinity":                  "-Infinity",
	"a hexadecimal number":      "0x1F",
	"NUL in a string":           "\"a\x00b\"",
	"NUL escaped":               `"a\u0000b"`,
	"NUL outside":               "\x00",
	"a newline in a string":     "\"a\nb\"",
	"a lone high surrogate":     `"\ud800"`,
	"a lone low surrogate":      `"\udc00x"`,
	"surrogates, swapped":       `"\udc00\ud800"`,
	"a cut escape":              `"\u12"`,
	"invalid UTF-8":             "\"\xff\xfe\"",
	"a surrogate in UTF-8":      "\"\xed\xa0\x80\"",
	"overlong UTF-8":            "\"\xc0\xaf\"",
	"cut UTF-8":                 "\"\xe6\x97\"",
	"a key twice":               `{"a":1,"b":2,"a":{"c":3}}`,
	"an object twice":           `{"a":{"b":1},"a":{"c":2}}`,
	"a key twice, once escaped": `{"ab":1,"a\u0062":2}`,
	"keys that are not UTF-8":   "{\"\xff\":1,\"\xfe\":2}",
	"an empty key":              `{"":{"":1}}`,
	"a key of 20 kilobytes":     `{"` + strings.Repeat("k", 20_000) + `":1}`,
	"a trailing comma":          `[1,]`,
	"9,998 levels of arrays":    nested(9_998, "[", "]"), // 10,000 in an object by itself
	"9,999 levels of arrays":    nested(9_999, "[", "]"),
	"10,001 levels of objects":  nested(10_001, `{"a":`, "}"),
	"100,000 levels of arrays":  nested(100_000, "[", "]"),
	"100,000 levels of objects": nested(100_000, `{"a":`, "}"),
	"a thousand empty objects":  "[" + strings.Repeat("{},", 1000) + "[]]",
}

// badObjects stand in the place of a whole object.
func badObjects() map[string]string {
	objects := map[string]string{
		"no kind":               `{"apiVersion":"example.com/v1","metadata":{"name":"x"}}`,
		"no version":            `{"kind":"Widget","metadata":{"name":"x"}}`,
		"neither":               `{"metadata":{"name":"x"}}`,
		"a kind in capitals":    `{"APIVERSION":"example.com/v1","KIND":"Widget"}`,
		"a number for a kind":   `{"apiVersion":"example.com/v1","kind":7}`,
		"null for a kind":       `{"apiVersion":"example.com/v1","kind":null}`,
		"a list for a version":  `{"apiVersion":["example.com/v1"],"kind":"Widget"}`,
		"an invalid version":    `{"apiVersion":"a/b/c","kind":"Widget"}`,
		"two kinds":             `{"apiVersion":"example.com/v1","kind":"Widget","kind":"Gadget"}`,
		"two kinds, one number": `{"apiVersion":"example.com/v1","kind":1,"kind":"Widget"}`,
		"metadata of a number":  `{"apiVersion":"example.com/v1","kind":"Widget","metadata":7}`,
		"metadata of null":      `{"apiVersion":"example.com/v1","kind":"Widget","metadata":null}`,
		"metadata of a list":    `{"apiVersion":"example.com/v1","kind":"Widget","metadata":[{"name":"x"}]}`,
		"a name of a number":    `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":7,"labels":[]}}`,
		"metadata twice":        `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","labels":{"a":"b"}},"metadata":{"name":"y"}}`,
		"a Status":              expired,
		"a Status of a group":   `{"apiVersion":"example.com/v1","kind":"Status","status":"Failure","code":500}`,
		"a Status of nonsense":  `{"apiVersion":"v1","kind":"Status","status":7}`,
		"a list":                stubserver.WidgetList(widgetA, widgetB),
		"items of objects":      `{"apiVersion":"example.com/v1","kind":"Widget","items":[{"a":1}]}`,
		"items of a number":     `{"apiVersion":"example.com/v1","kind":"Widget","items":7}`,
		"a watch event":         `{"apiVersion":"v1","kind":"WatchEvent","type":"ADDED","object":{}}`,
		"list options":          `{"apiVersion":"v1","kind":"ListOptions","limit":3}`,
		"an empty object":       `{}`,
		"a number":              `7`,
		"a string":              `"x"`,
		"null":                  `null`,
		"an array":              `[]`,
		"nothing":               ``,
		"HTML":                  `<html>`,
	}
	for name, value := range badValues {
		objects[name] = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"value":` + value + `},"status":[1]}`
	}
	return objects
}

func TestClient_ReadsStrangeObjectsAsClientGo(t *testing.T) {
	added := stubserver.Event("ADDED", widgetB)
	s := serve(t)
	for name, object := range badObjects() {
		for i, body := range []string{object, stubserver.WidgetList(widgetB, object, widgetB), added + stubserver.Event("MODIFIED", object) + added} {
			c := readers[i]
			t.Run(name+"/"+c.name, func(t *testing.T) {
				s.compare(t, exchange{replies: []stubserver.Reply{stubserver.JSON(body)}, call: c.call})
			})
		}
	}
}

func TestClient_ReadsCutAnswersAsClientGo(t *testing.T) {
	s := serve(t)
	for i, body := range []string{widgetA, stubserver.WidgetList(widgetA, widgetB), stubserver.Event("ADDED", widgetB) + stubserver.Event("ADDED", widgetA)} {
		for cut := 1; cut < len(body); cut += 61 {
			c := readers[i]
			t.Run(fmt.Sprintf("%s/%d bytes", c.name, cut), func(t *testing.T) {
				s.compare(t, exchange{replies: []stubserver.Reply{stubserver.JSON(body[:cut])}, call: c.call})
				s.compare(t, exchange{replies: []stubserver.Reply{stubserver.Break(body[:cut])}, call: c.call})
			})
		}
	}
}

func TestClient_ReadsCutGzipAsClientGo(t *testing.T) {
	s := serve(t)
	for i, body := range []string{widgetA, stubserver.WidgetList(widgetA, widgetB), strings.Repeat(stubserver.Event("ADDED", widgetB), 3)} {
		for _, cut := range []int{1, 8, 9, 40, 1000} {
			c := readers[i]
			t.Run(fmt.Sprintf("%s/%d bytes less", c.name, cut), func(t *testing.T) {
				s.compare(t, exchange{replies: []stubserver.Reply{stubserver.Gzip(cut, body)}, call: c.call})
			})
		}
	}
	s.check(t, exchange{replies: []stubserver.Reply{stubserver.WithHeader("Content-Encoding", "gzip", stubserver.JSON(widgetA))}, call: get(), fails: "gzip: invalid header"})
	s.check(t, exchange{replies: []stubserver.Reply{stubserver.WithHeader("Content-Encoding", "gzip", stubserver.Stream(stubserver.Event("ADDED", widgetA)))}, call: watchToEnd(metav1.ListOptions{})})
}

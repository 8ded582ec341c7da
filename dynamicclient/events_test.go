package dynamicclient_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// badEvents stand in the place of an event, or between two.
var badEvents = map[string]string{
	"a plain event":                 stubserver.Event("ADDED", widgetA),
	"a type that is unknown":        stubserver.Event("REPLACED", widgetA),
	"a type in small letters":       stubserver.Event("added", widgetA),
	"an empty type":                 stubserver.Event("", widgetA),
	"an escaped type":               stubserver.Event(`\u0041DDED`, widgetA),
	"a type that is a number":       `{"type":1,"object":` + widgetA + "}\n",
	"a type that is null":           `{"type":null,"object":` + widgetA + "}\n",
	"no type":                       `{"object":` + widgetA + "}\n",
	"two types":                     `{"type":"ADDED","type":"DELETED","object":` + widgetA + "}\n",
	"no object":                     `{"type":"ADDED"}` + "\n",
	"an object that is null":        stubserver.Event("ADDED", "null"),
	"an object that is a number":    stubserver.Event("MODIFIED", "7"),
	"an object that is a string":    stubserver.Event("MODIFIED", `"x"`),
	"an object that is an array":    stubserver.Event("MODIFIED", "["+widgetA+"]"),
	"an object that is empty":       stubserver.Event("MODIFIED", "{}"),
	"an object without a kind":      stubserver.Event("MODIFIED", `{"apiVersion":"example.com/v1"}`),
	"an object that is broken":      stubserver.Event("MODIFIED", widgetA[:100]),
	"two objects":                   `{"type":"ADDED","object":` + widgetA + `,"object":` + widgetB + "}\n",
	"more than type and object":     `{"type":"ADDED","object":` + widgetB + `,"more":[1]}` + "\n",
	"type and object in capitals":   `{"TYPE":"ADDED","OBJECT":` + widgetB + "}\n",
	"the object first":              `{"object":` + widgetB + `,"type":"DELETED"}` + "\n",
	"the object first, and long":    `{"object":{"apiVersion":"v1","kind":"Blob","data":"` + strings.Repeat("a", 70_000) + `"},"type":"ADDED"}` + "\n",
	"a kind and a version":          `{"kind":"WatchEvent","apiVersion":"v1","type":"ADDED","object":` + widgetB + "}\n",
	"an error":                      stubserver.Event("ERROR", expired),
	"a Status":                      expired + "\n",
	"an object that is no event":    widgetA + "\n",
	"a list that is no event":       stubserver.WidgetList(widgetA, widgetB) + "\n",
	"an empty object, no event":     "{}\n",
	"a number, no event":            "12\n",
	"null, no event":                "null\n",
	"an array of events":            "[" + strings.TrimSpace(stubserver.Event("ADDED", widgetA)) + "]\n",
	"garbage":                       "garbage\n",
	"garbage in the line":           "x" + stubserver.Event("ADDED", widgetA),
	"HTML":                          "<html>\n<body>502 Bad Gateway</body>\n</html>\n",
	"HTTP":                          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
	"a chunk's length":              "1f4\r\n" + stubserver.Event("ADDED", widgetA) + "\r\n",
	"an event stream":               "data: " + stubserver.Event("ADDED", widgetA) + "\n",
	"NUL":                           "\x00",
	"a byte order mark":             "\ufeff" + stubserver.Event("ADDED", widgetA),
	"a record separator":            "\x1e" + stubserver.Event("ADDED", widgetA),
	"a comma":                       "," + stubserver.Event("ADDED", widgetA),
	"a brace too many":              strings.TrimSpace(stubserver.Event("ADDED", widgetA)) + "}\n",
	"a brace too few":               strings.TrimSuffix(stubserver.Event("ADDED", widgetA), "}\n") + "\n",
	"half an event":                 stubserver.Event("ADDED", widgetA)[:300] + "\n",
	"half an event, then the whole": stubserver.Event("ADDED", widgetA)[:300] + stubserver.Event("ADDED", widgetA),
	"an unclosed string":            `{"type":"ADDED","object":{"kind":"` + "\n",
	"empty lines":                   "\n\n\r\n\n",
	"an indented event":             "{\n  \"type\": \"ADDED\",\n  \"object\": " + widgetA + "\n}\n",
	"a line in an event":            `{"type":"ADDED",` + "\n" + `"object":` + widgetA + "}\n",
}

func TestClient_ReadsStrangeEventsAsClientGo(t *testing.T) {
	many := manyEvents(9)
	s := serve(t)
	for name, event := range badEvents {
		t.Run(name, func(t *testing.T) {
			for _, body := range []string{event, many + event + many} {
				s.compare(t, exchange{replies: []stubserver.Reply{stubserver.JSON(body)}, call: watchToEnd(metav1.ListOptions{})})
			}
		})
	}
}

// Without these, the test above might compare two streams that end at once.
func TestClient_GoesOnAfterAnEventThatIsOnlyUnusual(t *testing.T) {
	s := serve(t)
	for _, name := range []string{
		"a plain event", "an error", "two types", "two objects", "more than type and object", "the object first", "the object first, and long",
		"an escaped type", "empty lines", "an indented event", "a line in an event",
	} {
		t.Run(name, func(t *testing.T) {
			before, after := stubserver.Event("MODIFIED", widgetA), stubserver.Event("DELETED", widgetB)
			row := exchange{replies: []stubserver.Reply{stubserver.Stream(before + badEvents[name] + after)}, call: watchToEnd(metav1.ListOptions{})}
			events := s.outcome(t, row, made()).Value.([]watch.Event)
			if first, last := events[0].Type, events[len(events)-1].Type; first != watch.Modified || last != watch.Deleted {
				t.Errorf("the events are %v", events)
			}
		})
	}
}

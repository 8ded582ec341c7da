package stubserver

import (
	"fmt"
	"strings"
)

// Bookmark is the object of the bookmark that ends initial events.
const Bookmark = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}}}`

// Similar is the number of widgets of SimilarWidgets. A client stores a common part of objects
// when it is decoded for the second time.
const Similar = 50

// WidgetList returns a list with items. Its members have the order in which API servers send lists of custom resources: the items come
// before the kind. In lists of built-in types they come last.
func WidgetList(items ...string) string {
	return `{"apiVersion":"example.com/v1","items":[` + strings.Join(items, ",") + `],"kind":"WidgetList","metadata":{"resourceVersion":"9"}}`
}

// Event returns a watch event, with the newline that API servers send.
func Event(kind, object string) string {
	return `{"type":"` + kind + `","object":` + object + "}\n"
}

// Failure returns the Status of a failed request, with details and a pause of 3 s.
func Failure(code int, reason string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","message":"it failed","reason":%q,"code":%d,`+
		`"details":{"name":"a","group":"example.com","kind":"widgets","causes":[{"reason":"FieldValueInvalid","message":"m","field":"spec.x"}],"retryAfterSeconds":3}}`, reason, code)
}

// Refusal is Failure without details, so that clients may retry at once.
func Refusal(code int, reason string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","message":"it failed","reason":%q,"code":%d}`, reason, code)
}

// SimilarWidget returns widget i of a series with many common parts.
func SimilarWidget(i int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","namespace":"ns","resourceVersion":"%d","labels":{"app":"x"},"annotations":{},`+
		`"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:spec":{".":{},"f:replicas":{}}}}]},`+
		`"spec":{"template":{"labels":{"app":"x"},"args":["a","b"],"none":[]},"replicas":3},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, i, i+1)
}

// SimilarWidgets returns the series.
func SimilarWidgets() (objects []string) {
	for i := range Similar {
		objects = append(objects, SimilarWidget(i))
	}
	return objects
}

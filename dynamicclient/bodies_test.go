package dynamicclient_test

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What API servers send.
const (
	widgetA = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"ns","resourceVersion":"7","uid":"0b1e","generation":2,` +
		`"labels":{"x":"y"},"annotations":{"note":"h\u00e9 \ud83d\ude00 \"quoted\" \\ </b>","kubectl.kubernetes.io/last-applied-configuration":"{}"},` +
		`"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:spec":{".":{},"f:replicas":{}}}}]},` +
		`"spec":{"replicas":3,"whole":1.0,"ratio":0.25,"zero":-0.0,"exp":1e3,"max":9223372036854775807,"more":9223372036854775808,"min":-9223372036854775808,` +
		`"empty":{},"none":[],"nothing":null,"yes":true,"no":false,"text":"","list":[1,"x",null,[],{}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	widgetB = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b","namespace":"ns","resourceVersion":"8"}}`
	noList  = `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[]}`
	scale   = `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"ns"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"x=y"}}`
	success = `{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success","details":{"name":"a","kind":"widgets","uid":"0b1e"}}`
	expired = `{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Failure","message":"too old resource version: 1 (7)","reason":"Expired","code":410}`
)

// indented returns document as kubectl shows it.
func indented(t *testing.T, document string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(document), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

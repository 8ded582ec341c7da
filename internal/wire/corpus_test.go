package wire

import (
	"strings"
	"testing"
)

// values are the values in the objects, lists and events of the corpus: those that
// decoders are known to treat differently.
var values = []string{
	`0`, `-0`, `-0.0`, `0.0`, `1`, `-1`, `1.0`, `1e3`, `1E+2`, `1e-7`, `0.1`, `1e400`, `-1e400`, `1e-400`,
	`999999999999999999`, `-999999999999999999`, `1000000000000000000`, `9223372036854775807`, `9223372036854775808`,
	`-9223372036854775808`, `-9223372036854775809`, `18446744073709551616`, `123456789012345678901234567890`,
	`01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `0x1`, `NaN`, `Infinity`, `1_000`, `--1`, `1-`,
	`true`, `false`, `null`, `tru`, `nul`, `True`, `truex`,
	`""`, `"a"`, `"exactly8"`, `"a little longer than that"`, `"\""`, `"\\"`, `"\/"`, `"\b\f\n\r\t"`, `"\'"`, `"\x"`, `"\u12"`, `"\u"`, `"\`,
	`"\u0000"`, `"\u00e9"`, `"\u003c\u003e\u0026"`, `"\ud83d\ude00"`, `"\ud800"`, `"\ude00"`, `"\ud800x"`, `"\ud800\u0041"`, `"\ud800\ud800\udc00"`, `"\uD83D\uDE00"`, `"\ufffd"`,
	`"h` + "\u00e9" + `llo"`, `"` + "\u65e5\u672c\u8a9e" + `"`, `"` + "\xff\xfe" + `"`, `"` + "\xed\xa0\x80" + `"`, `"` + "\xc3" + `"`, `"abcdefg` + "\xc3" + `"`, `"` + "\xf4\x90\x80\x80" + `"`, `"\n` + "\xff" + `\u00e9"`,
	`"` + "\x00" + `"`, `"` + "\n" + `"`, `"` + "\x1f" + `"`, `"` + "\x7f" + `"`, `"tab	"`, `"unterminated`,
	`{}`, `[]`, `[[]]`, `[{}]`, `{"a":{}}`, ` { "a" : [ ] , "b" : { } } `, `[1,"x",null,true,false,{"z":[[]]}]`, `[null,0,null,1]`,
	`{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":1,"a":null}`, `{"a\u0062":1,"ab":2}`, `{"":1}`, `{"\ud800":1,"\udc00":2}`,
	`{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a" 1}`, `{1:2}`, `[1,]`, `[,]`, `[1 2]`, `[`, `{`, `]`, `}`, `[}`, `{]`, `[1}`, `{"a":1]`,
	strings.Repeat(`[`, 900) + strings.Repeat(`]`, 900),
	strings.Repeat(`[`, 1100) + strings.Repeat(`]`, 1100),
	strings.Repeat(`{"a":`, 9990) + `1` + strings.Repeat(`}`, 9990),
	strings.Repeat(`[`, 10001) + strings.Repeat(`]`, 10001),
	strings.Repeat(`[`, 20000),
	`"` + strings.Repeat("x", 255) + `"`, `"` + strings.Repeat("x", 257) + `"`, `"` + strings.Repeat("long", 10_000) + `"`,
	`[{"k":1},{"k":1},{"k":1.0},{"k":1},{"k":1e0}]`,
}

// large is the length from which a value is used in one place only, to save time.
const large = 4 << 10

// objects are the documents for single objects, items and events.
var objects = []string{
	`{}`, ``, ` `, `null`, `[]`, `1`, `"x"`, `<html>`, `{"kind":"A"}`, `{"apiVersion":"v1"}`,
	`{"apiVersion":"g/v1","kind":"A"}`, ` {"apiVersion":"g/v1","kind":"A"}` + "\n", `{"apiVersion":"g/v1","kind":"A"}x`, `{"apiVersion":"g/v1","kind":"A"}{}`, `{"apiVersion":"g/v1","kind":"A"}` + "\x00",
	`{"apiVersion":"g/v1/x","kind":"A"}`, `{"apiVersion":"/","kind":"A"}`, `{"apiVersion":"g/","kind":"A"}`, `{"apiVersion":"/v1","kind":"A"}`, `{"apiVersion":"","kind":"A"}`,
	`{"apiVersion":1,"kind":"A"}`, `{"apiVersion":"g/v1","kind":1}`, `{"apiVersion":"g/v1","kind":null}`, `{"apiVersion":null,"kind":"A"}`, `{"apiVersion":"g/v1","kind":""}`, `{"apiVersion":"g/v1","Kind":"A"}`,
	`{"apiVersion":"g/v1","apiversion":5,"kind":"A"}`, `{"apiVersion":"g/v1","kind":"A","Kind":{"a":1}}`, `{"apiVersion":"g/v1","apiversion":"a/b/c","kind":"A"}`, `{"apiVersion":"v1","kind":"A","KIND":"Status"}`, `{"apiVersion":"g/v1","kind":"A","\u212aind":5}`, `{"apiVersion":"g/v1","kind":"A","Items":[1],"spec":{"Kind":5}}`,
	`{"apiVersion":"g/v1","kind":"A","kind":"B"}`, `{"kind":"A","apiVersion":"g/v1","kind":1}`, `{"apiVersion":"g/v1","kind":1,"kind":"A"}`, `{"apiVersion":"g/v1","kind":"A","kind":null}`, `{"apiVersion":"g/v1","kind":"A","apiVersion":"a/b/c"}`,
	`{"apiVersion":"v1","kind":"Pod"}`, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":410,"reason":"Expired"}`, `{"apiVersion":"g/v1","kind":"Status"}`, `{"apiVersion":"g/v1","kind":"WatchEvent"}`, `{"apiVersion":"__internal","kind":"WatchEvent"}`, `{"apiVersion":"v1","kind":"APIGroup"}`, `{"apiVersion":"meta.k8s.io/v1","kind":"Table"}`, `{"apiVersion":"v1","kind":"ListOptions"}`,
	`{"apiVersion":"g/v1","kind":"A","metadata":1}`, `{"apiVersion":"g/v1","kind":"A","metadata":[{"a":1}]}`, `{"apiVersion":"g/v1","kind":"A","metadata":null}`, `{"apiVersion":"g/v1","kind":"A","metadata":{"name":1}}`,
	`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"x","labels":{"a":"b"}},"metadata":{"name":"y"}}`,
	`{"apiVersion":"g/v1","kind":"A","items":[]}`, `{"apiVersion":"g/v1","kind":"A","items":[{"apiVersion":"g/v1","kind":"B"}]}`,
	`{"apiVersion":"g/v1","kind":"\ud800"}`, `{"apiVersion":"g\/v1","kind":"\u0041"}`,
	"{\n  \"apiVersion\": \"g/v1\",\n  \"kind\": \"A\"\n}\n", "\ufeff" + `{"apiVersion":"g/v1","kind":"A"}`,
}

// sampled returns all documents, or each twelfth with -short: with the race detector, decoders take ten times as long.
func sampled(all []string) []string {
	if !testing.Short() {
		return all
	}
	var some []string
	for i := 0; i < len(all); i += 12 {
		some = append(some, all[i])
	}
	return some
}

func objectCorpus() []string { return sampled(allObjects()) }

func allObjects() []string {
	all := append([]string(nil), objects...)
	for _, v := range values {
		all = append(all, `{"apiVersion":"g/v1","kind":"A","metadata":{"name":"x","resourceVersion":"1"},"spec":`+v+`}`)
		if len(v) < large {
			all = append(all, `{"apiVersion":"g/v1","kind":"A","metadata":{"managedFields":`+v+`},"status":[`+v+`,`+v+`,`+v+`]}`)
		}
	}
	return append(all, `{"apiVersion":"g/v1","kind":"A","metadata":{"a":{"b":{"c":1}},"d":{"b":{"c":1}}},"spec":{"b":{"c":1}},"status":{"b":{"c":1}}}`)
}

func listCorpus() []string {
	all := allObjects()
	for _, o := range objects {
		all = append(all,
			`{"apiVersion":"g/v1","kind":"AList","metadata":{"resourceVersion":"1"},"items":[`+o+`]}`,
			`{"apiVersion":"g/v1","items":[`+o+`,`+o+`],"kind":"AList","metadata":{"continue":"x"}}`)
	}
	for _, v := range values {
		if len(v) >= large {
			continue
		}
		all = append(all,
			`{"apiVersion":"g/v1","kind":"AList","items":`+v+`}`,
			`{"apiVersion":"g/v1","kind":"AList","items":[{"kind":"A"},`+v+`]}`,
			`{"apiVersion":"g/v1","kind":"AList","metadata":`+v+`,"items":[{"spec":`+v+`}]}`)
	}
	return sampled(append(all,
		`{"apiVersion":"g/v1","kind":"AList","items":[{"spec":`+strings.Repeat(`[`, 1100)+strings.Repeat(`]`, 1100)+`}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"x"}},{"kind":"Other"},{"apiVersion":"v2"},{"kind":5,"apiVersion":6}]}`,
		`{"items":[],"items":[{"a":1}],"apiVersion":"v1","kind":"List"}`, `{"items":[{"a":1}],"items":[],"apiVersion":"v1","kind":"List"}`, `{"items":[{"a":1}],"items":null,"apiVersion":"v1","kind":"List"}`,
		`{"items":[],"Items":[{"a":1}],"apiVersion":"v1","kind":"List"}`, `{"\u0069tems":[{"a":1}],"apiVersion":"v1","kind":"List"}`,
		`{"apiVersion":"v1","kind":"AList","KIND":5,"items":[]}`, `{"apiVersion":"v1","kind":"AList","items":[{"kind":"A","Kind":5}]}`, `{"apiVersion":"v1","kind":"List","items":[]}`, `{"apiVersion":"v1","kind":"List"}`, `{"apiVersion":"v1","kind":"List","items":{}}`, `{"apiVersion":"v1","kind":"List","items":[`, `{"apiVersion":"v1","kind":"List","items":[{}`))
}

func streamCorpus(tb testing.TB) []string {
	tb.Helper()
	event := func(kind, object string) string { return `{"type":"` + kind + `","object":` + object + `}` }
	ordinary := `{"apiVersion":"g/v1","kind":"A","metadata":{"name":"x","resourceVersion":"1"},"spec":{"a":[1,2]}}`
	added := event("ADDED", ordinary) + "\n"
	// A few of these are enough for a batch.
	wide := event("MODIFIED", `{"apiVersion":"g/v1","kind":"A","metadata":{"name":"x"},"spec":"`+strings.Repeat("wide", 100)+`"}`)
	all := []string{
		"", "\n", "\n\n  \n", added, added + added + event("DELETED", ordinary), added + event("BOOKMARK", ordinary) + "\n" + event("ERROR", `{"apiVersion":"v1","kind":"Status","code":410}`) + "\n",
		event("ADDED", ordinary) + event("MODIFIED", ordinary) + added, event("ADDED", ordinary) + " \t\r\n \n" + event("ADDED", ordinary) + "   ",
		event("UNKNOWN", ordinary) + "\n" + added, event("added", ordinary) + "\n", event("", ordinary) + "\n", event(`ADD\u0045D`, ordinary) + "\n" + added,
		`{"object":` + ordinary + `,"type":"ADDED"}` + "\n" + added, `{"type":"ADDED","object":` + ordinary + `,"extra":1}` + "\n" + added, `{"type":"ADDED","type":"DELETED","object":` + ordinary + "}\n", `{"type":"ADDED","object":` + ordinary + `,"object":` + ordinary + "}\n",
		`{"type":"ADDED"}` + "\n" + added, `{"type":1,"object":` + ordinary + "}\n", `{"TYPE":"ADDED","object":` + ordinary + "}\n" + added, `{"kind":"A","apiVersion":"g/v1","type":"ADDED","object":` + ordinary + "}\n", `{"kind":"WatchEvent","apiVersion":"v1","type":"ADDED","object":` + ordinary + "}\n",
		`{ "type" : "ADDED" , "object" : ` + ordinary + " }\n" + added, "{\n  \"type\": \"ADDED\",\n  \"object\": " + ordinary + "\n}\n{\n  \"type\": \"ADDED\",\n  \"object\": " + ordinary + "\n}\n",
		added + `{"type":"ADDED","object":{"apiVersion":"g/v1","kind":"A","spec":"cut`, added + `{"type":"ADD`, added + "{", added + "}", added + "<html>\n", "<html>502</html>", added + "123 " + added, added + "12", `"x"` + "\n" + added, "null\n" + added, "[1]\n" + added, "true" + added,
		added + "\x00" + added, added + "{\n", added + `{"type":garbage}` + "\n" + added, added + `{"type":"ADDED","object":` + ordinary + "}}\n" + added, added + `{"type":"ADDED","object":` + ordinary + "\n" + added,
		added + `{"type":"ADDED","object":{"a":"` + "\n" + `"}}` + "\n", added + `{"type":"ADDED" "object":` + ordinary + "}\n",
		strings.Repeat(added, 300), strings.Repeat(wide+"\n", 50) + wide + wide + "\n" + strings.Repeat(wide+"\n", 50),
		strings.Repeat(wide+"\n", 50) + event("ERROR", `{"apiVersion":"v1","kind":"Status","code":410}`) + "\n" + strings.Repeat(wide+"\n", 50) + "{\n" + added, event("ADDED", `{"apiVersion":"g/v1","kind":"A","spec":"`+strings.Repeat("y", 200_000)+`"}`) + "\n" + added,
	}
	for _, o := range allObjects() {
		all = append(all, added+event("MODIFIED", o)+"\n"+added)
	}
	return sampled(all)
}

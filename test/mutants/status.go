package main

// ofStatus has mutants of statuses, the page, the metrics and the listers.
var ofStatus = []table{
	{"status", "dynamicinformer", []mutant{
		{"advice on a forbidden request has no rule", "NotSyncedError.Advice", replace(
			`"grant this rule to the user in a " + roleText(e.GVR, e.Namespace)`, `"grant it"`)},
		{"an error has the text of a forbidden request twice", "requestText", drop("text = rest")},
		{"Forbidden is not lasting", "Reason.Lasting", drop("ReasonForbidden")},
	}},
	{"status", "status", []mutant{
		{"an explanation does not say what to do", "Explanation.next", never(`advice != ""`)},
	}},
	{"internal/statuspage", "internal/statuspage", []mutant{
		{"each browser has its own call of Status", "answers.find", never("found != nil")},
		{"a response is never produced again", "answer.outdated", never("!now.Before(a.until)")},
		{"a panic leaves other requests waiting", "answer.produce", replace(
			"defer close(a.made); a.value, a.until, a.err = by(ctx)", "a.value, a.until, a.err = by(ctx); close(a.made)")},
		{"the end of a request ends the response for other requests", "answers.get", replace("context.WithoutCancel(ctx)", "ctx")},
		{"a request that has ended still waits", "answers.get", never("<-ctx.Done()")},
		{"the number of handlers on a page has no limit", "bounded", replace(
			"i.Handlers, i.MoreHandlers = i.Handlers[:b.items:b.items], more", "i.Handlers, i.MoreHandlers = i.Handlers, 0*more")},
		{"the page accepts any method", "Handler.ServeHTTP", never("r.Method != http.MethodGet && r.Method != http.MethodHead")},
		{"HEAD has a body", "response.send", always("to.Method == http.MethodGet")},
		{"a path below the page shows the table", "Handler.ServeHTTP", never(`at.resource != "" && q.resource == ""`)},
		{"a page without a slash at its end is a resource", "Handler.ServeHTTP", always("!q.unsure")},
		{"a client that accepts anything gets HTML", "accepted", replace(`"application/xhtml+xml"`, `"application/xhtml+xml", "*/*"`)},
		{"links lead to the root", "query.link", replace(`q.base + "?"`, `"/?"`)},
		{"any path below the page is a resource", "placeOf", replace("unknown: true", "resource: path[0]")},
		{"a part of the page's path may not be stripped", "below", replace("mount[1:]", "nil")},
		{"states are case-sensitive", "newQuery", replace("strings.EqualFold(string(s), string(q.state))", "s == q.state")},
		{"any script may run in the page", "digest", returns(`"unsafe-inline"`)},
		{"a row does not name stuck handlers", "newRow", drop("Stuck: plain(stuck(i, at))")},
		{"the number of rows of a table has no limit", "Table.cut", always("len(part.Informers) < rowsAtMost")},
		{"an informer with a stuck handler does not come first", "rank", drop("case i.Late(at): return 1")},
		{"the page contains control characters", "unprintable", always("unicode.IsPrint(r)")},
	}},
	{"metrics", "metrics", []mutant{
		{"counters decrease with the end of an informer", "past.pass", drop("next.ended.add(traffic)")},
		{"counters of an informer that has ended are kept", "past.pass", drop("if !goesOn { next.ended = counts{} }")},
	}},
	{"internal/objectlister", "lister", []mutant{
		{"a failed Get is a typed nil", "genericNamespace.Get", replace("if err != nil { return nil, err }; return object, nil", "return object, err")},
		{"NotFound has the wrong resource", "Of.Get", replace("l.GVR.GroupResource()", "schema.GroupResource{Resource: l.GVR.Resource}")},
		{"the selector is ignored", "Of.Each", always("selector == nil")},
	}},
	{"lister", "lister", []mutant{
		{"NotFound has the key instead of the name", "namespaceLister.Get", replace(
			`l.lister.Of.Get(l.namespace+"/"+name, name)`, `l.lister.Of.Get(l.namespace+"/"+name, l.namespace+"/"+name)`)},
		{"the lister of a namespace lists all namespaces", "namespaceLister.List", replace("l.namespace", `""`)},
		{"an object is not converted again when it changes", "conversions.get", always("known.state == s")},
		{"an object is converted for each read", "conversions.put", drop("c.of[name] = made")},
		{"an object in another API version is not converted again", "stateOf", replace("object.GetAPIVersion()", `""`)},
		{"a list keeps the conversions of deleted objects", "conversions.trim", never("len(c.of) > objects")},
		{"a Get keeps the conversion of a deleted object", "Typed.get", drop("t.conversions.drop(key)")},
		{"conversions count as one read", "conversions.put", drop("c.until -= readsPerConversion")},
		{"a sweep drops the conversions of cached objects", "Typed.cached", never("err == nil")},
		{"an object that can't be converted ends the list", "Typed.collect", within("failed = append(failed, err)", never("err != nil"))},
	}},
	{"internal/gotype", "internal/gotype", []mutant{
		{"an integer is cut to the size of its field", "Converter.Convert", always("c.integers.fit(content)")},
		{"an integer that was rounded is converted", "exact", never("math.Abs(value) >= 1<<63")},
		{"unsigned fields have negative integers", "integers.narrow", drop("i.min = 0")},
		{"an error has a value", "Converter.Convert", within("utiljson.Unmarshal(data, to)", replace("Misfit(err)", "err"))},
	}},
	{"internal/gotype", "dynamicinformer", []mutant{
		{"an error of a decoder has values of the object", "Misfit", replace(`errors.New("a value does not fit the Go type of its field")`, "err")},
		{"a form without a type of its own is accepted", "Of.Check", never("t == reflect.TypeFor[*unstructured.Unstructured]() || t == reflect.TypeFor[*metav1.PartialObjectMetadata]()")},
	}},
	{"metadatalister", "metadatalister", []mutant{
		{"NotFound of metadata has the key instead of the name", "namespaceLister.Get", replace(
			`l.lister.Of.Get(l.namespace+"/"+name, name)`, `l.lister.Of.Get(l.namespace+"/"+name, l.namespace+"/"+name)`)},
		{"the metadata lister of a namespace lists all namespaces", "namespaceLister.List", replace("l.namespace", `""`)},
	}},
}

package main

// ofPage are ways to break the page and what it is told.
var ofPage = []mutant{
	{
		name: "each browser has a Status of its own",
		file: "internal/page/answers.go",
		old:  "	if found := a.all[key]; found != nil {\n",
		new:  "	if found := a.all[key]; found != nil && false {\n",
	},
	{
		name: "an answer is good for ever",
		file: "internal/page/answers.go",
		old:  "a.err != nil || !now.Before(a.until)",
		new:  "a.err != nil",
	},
	{
		name: "a panic leaves others waiting",
		file: "internal/page/answers.go",
		old:  "	defer close(a.made)\n	a.value, a.until, a.err = by(ctx)\n",
		new:  "	a.value, a.until, a.err = by(ctx)\n	close(a.made)\n",
	},
	{
		name: "who goes away takes along what others wait for",
		file: "internal/page/answers.go",
		old:  "mine.produce(context.WithoutCancel(ctx), produce)",
		new:  "mine.produce(ctx, produce)",
	},
	{
		name: "who has gone away still waits",
		file: "internal/page/answers.go",
		old:  "	case <-ctx.Done():\n",
		new:  "	case <-make(chan struct{}):\n",
	},
	{
		name: "the page takes any method",
		file: "internal/page/handler.go",
		old:  "r.Method != http.MethodGet && r.Method != http.MethodHead",
		new:  "r.Method == http.MethodTrace",
	},
	{
		name: "HEAD has a body",
		file: "internal/page/response.go",
		old:  "	if to.Method == http.MethodGet {\n",
		new:  "	if to.Method != \"\" {\n",
	},
	{
		name: "any script may run in the page",
		file: "internal/page/render.go",
		old:  "script-src '\" + digest(string(script)) + \"';",
		new:  "script-src 'unsafe-inline';",
	},
	{
		name: "control characters get onto the page",
		file: "internal/page/words.go",
		old:  "return !unicode.IsPrint(r)",
		new:  "return !unicode.IsPrint(r) && false",
	},
	{
		name: "who takes anything gets HTML",
		file: "internal/page/format.go",
		old:  "		case \"text/html\", \"application/xhtml+xml\":\n",
		new:  "		case \"text/html\", \"application/xhtml+xml\", \"*/*\":\n",
	},
	{
		name: "a table has any number of rows",
		file: "internal/page/table.go",
		old:  " && len(part.Informers) < rowsAtMost",
		new:  "",
	},
	{
		name: "a stuck handler is nothing to see to",
		file: "internal/page/table.go",
		old:  "	case i.late(at):\n		return 1\n",
		new:  "",
	},
	{
		name: "a page has all handlers that there are",
		file: "internal/page/bounds.go",
		old:  "i.Handlers[:b.people:b.people], more\n",
		new:  "i.Handlers, 0*more\n",
	},
	{
		name: "links lead to the root",
		file: "internal/page/question.go",
		old:  "	return \"?\" + values.Encode()\n",
		new:  "	return \"/?\" + values.Encode()\n",
	},
	{
		name: "a resource has to be named with its version",
		file: "dynamicinformer/page.go",
		old:  "!found && e.gvr.GroupResource().String() == name",
		new:  "false && e.gvr.GroupResource().String() == name",
	},
	{
		name: "the page does not tell of handlers",
		file: "dynamicinformer/page.go",
		old:  "	for _, h := range s.Handlers {\n",
		new:  "	for _, h := range s.Handlers[:0] {\n",
	},
	{
		name: "the page does not say when it is tried again",
		file: "dynamicinformer/page.go",
		old:  "NextRetry: s.NextRetry, ",
		new:  "",
	},
}

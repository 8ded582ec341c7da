package main

// ofMetrics are ways to break who speaks in client-go's metrics of informers, and what
// discovery counts.
var ofMetrics = []mutant{
	{
		name: "each informer asks client-go for an identity",
		file: "dynamicinformer/identity.go",
		old:  "	if own == nil {\n",
		new:  "	{\n",
	},
	{
		name: "an informer does not know its identity",
		file: "dynamicinformer/identity.go",
		old:  "	o.Identifier = v.of.id\n",
		new:  "",
	},
	{
		name: "who has begun last takes the identity",
		file: "dynamicinformer/identity.go",
		old:  "			next = i.running[0]\n",
		new:  "			next = i.running[len(i.running)-1]\n",
	},
	{
		name: "an identity does not pass",
		file: "dynamicinformer/identity.go",
		old:  "		if len(i.running) > 0 {\n",
		new:  "		if next = i.speaker; next == nil && len(i.running) > 0 {\n",
	},
	{
		name: "the last values do not pass with the identity",
		file: "dynamicinformer/identity.go",
		old:  "		to.Set(math.Float64frombits(last))\n",
		new:  "",
	},
	{
		name: "what is set before the identity passes is lost",
		file: "dynamicinformer/identity.go",
		old:  "	g.last.Store(math.Float64bits(value))\n",
		new:  "",
	},
	{
		name: "an identity observes nothing",
		file: "dynamicinformer/identity.go",
		old:  "		next.latency.connect(i.latency)\n",
		new:  "",
	},
	{
		name: "a provider of metrics is called by two at a time",
		file: "dynamicinformer/identity.go",
		old:  "		if i.passing || next == last {\n",
		new:  "		if next == last {\n",
	},
	{
		name: "a provider of metrics is not told when informers go",
		file: "dynamicinformer/identity.go",
		old:  "		provider.ForgetInformer(i.id)\n",
		new:  "		_ = provider\n",
	},
	{
		name: "metrics that can't be forgotten stay as they were",
		file: "dynamicinformer/identity.go",
		old:  "		i.version.Set(0)\n",
		new:  "",
	},
	{
		name: "client-go's own provider of metrics is not used",
		file: "dynamicinformer/identity.go",
		old:  "	if v.of.provider != nil {\n",
		new:  "	{\n",
	},
	{
		name: "an informer that has ended keeps its identity",
		file: "dynamicinformer/entry.go",
		old:  "	defer e.voice.end()\n",
		new:  "",
	},
	{
		name: "informers that wait for their type have metrics",
		file: "dynamicinformer/entry.go",
		old:  "	e.voice = f.options.identities.voiceOf(k.gvr)\n",
		new:  "	e.voice = f.options.identities.voiceOf(k.gvr)\n	e.voice.begin()\n",
	},
	{
		name: "an answer from memory does not count",
		file: "discovery/resolver.go",
		old:  "		if res, known := c.memo.get(ref); known {\n			r.answers.served.Add(1)\n",
		new:  "		if res, known := c.memo.get(ref); known {\n",
	},
	{
		name: "an answer about a GVR from memory does not count",
		file: "discovery/resolver.go",
		old:  "c.served(gvr); res != nil {\n			r.answers.served.Add(1)\n",
		new:  "c.served(gvr); res != nil {\n",
	},
	{
		name: "an answer about a kind from memory does not count",
		file: "discovery/resolver.go",
		old:  "c.ofKind(gvk); res != nil {\n			r.answers.served.Add(1)\n",
		new:  "c.ofKind(gvk); res != nil {\n",
	},
	{
		name: "answers of the RESTMapper do not count",
		file: "discovery/mapper.go",
		old:  "	r.answers.count(err)\n",
		new:  "",
	},
	{
		name: "an answer of the RESTMapper from memory does not count",
		file: "discovery/mapper.go",
		old:  "			m.resolver.answers.served.Add(1)\n",
		new:  "",
	},
	{
		name: "what is inconclusive counts as not served",
		file: "discovery/counts.go",
		old:  "		a.inconclusive.Add(1)\n",
		new:  "		a.notServed.Add(1)\n",
	},
	{
		name: "what is ambiguous does not count",
		file: "discovery/counts.go",
		old:  "		a.ambiguous.Add(1)\n",
		new:  "",
	},
	{
		name: "requests of discovery do not count",
		file: "discovery/endpoint.go",
		old:  "	e.sent.Add(1)\n",
		new:  "",
	},
	{
		name: "requests of discovery count only if they are answered",
		file: "discovery/endpoint.go",
		old:  "	e.sent.Add(1)\n	res, err := e.client.Do(req)\n",
		new:  "	res, err := e.client.Do(req)\n	if err == nil && res.StatusCode == http.StatusOK {\n		e.sent.Add(1)\n	}\n",
	},
	{
		name: "calls of a given discovery client do not count",
		file: "discovery/standin.go",
		old:  "	s.calls.Add(1)\n	list, err",
		new:  "	list, err",
	},
	{
		name: "counters fall with an informer",
		file: "metrics/carry.go",
		old:  "		next.ended.add(traffic)\n",
		new:  "		_ = traffic\n",
	},
	{
		name: "counters of what has gone are kept",
		file: "metrics/carry.go",
		old:  "	if !goesOn {\n		next.ended = counts{}\n	}\n",
		new:  "	_ = goesOn\n",
	},
}

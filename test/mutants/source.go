package main

// ofSource are the ways to break internal/source, what stands between the reflector
// and the server.
var ofSource = []mutant{
	{
		name: "tweakListOptions is dropped on list",
		file: "internal/source/requests.go",
		old:  "		r.tweak(&opts)\n	}\n	bounded",
		new:  "		_ = r.tweak\n	}\n	bounded",
	},
	{
		name: "tweakListOptions is dropped on watch",
		file: "internal/source/requests.go",
		old:  "		r.tweak(&opts)\n	}\n	open,",
		new:  "		_ = r.tweak\n	}\n	open,",
	},
	{
		name: "requests go to all namespaces",
		file: "internal/source/client.go",
		old:  ".Namespace(c.namespace)",
		new:  `.Namespace("")`,
	},
	{
		name: "a failed list is a typed nil",
		file: "internal/source/requests.go",
		old:  "		return nil, err // not list",
		new:  "		return list, err // not list",
	},
	{
		name: "the watch-list marker is not forwarded",
		file: "internal/source/source.go",
		old:  "	}, s.client)",
		new:  "	}, nil)",
	},
	{
		name: "a cluster-scoped type keeps the namespace",
		file: "internal/source/gate.go",
		old:  "if !t.Namespaced {",
		new:  "if false && !t.Namespaced {",
	},
	{
		name: "what fails is tried again without the pause growing",
		file: "internal/source/pace.go",
		old:  "max(firstPause, 2*p.last)",
		new:  "max(firstPause, p.last)",
	},
	{
		name: "discovery's refusal is nobody's reason",
		file: "dynamicinformer/life.go",
		old:  "	defer l.trouble.refused(err) // which tells who waits\n",
		new:  "",
	},
	{
		name: "a silent watch-list is waited for",
		file: "internal/source/stream.go",
		old:  "case <-s.silence.elapsed():",
		new:  "case <-make(chan struct{}):",
	},
	{
		name: "silence is counted from the start",
		file: "internal/source/stream.go",
		old:  "			s.silence.heard(event.Type, s.initial, time.Since(arrived))\n",
		new:  "			if _ = arrived; !s.initial {\n				s.silence.stop()\n			}\n",
	},
	{
		name: "what a lively type sends puts the stall off",
		file: "internal/source/watchlist.go",
		old:  "		s.live = event != watch.Added\n",
		new:  "		_ = event\n",
	},
	{
		name: "what is no list passes for an empty one",
		file: "internal/source/client.go",
		old:  `kind != "" && !strings.HasSuffix(kind, "List")`,
		new:  `kind != "" && !strings.HasSuffix(kind, "List") && false`,
		in:   "dynamicinformer",
	},
	{
		name: "a watch that never closes is waited for",
		file: "internal/source/stream.go",
		old:  "case <-enough.C:",
		new:  "case <-make(chan struct{}):",
	},
	{
		name: "a watch's trouble outlives a watch-list",
		file: "internal/source/stream.go",
		old:  "			s.requests.observer.Succeeded(VerbWatch)\n",
		new:  "",
	},
	{
		name: "a watch-list that ends early is asked for again at once",
		file: "internal/source/stream.go",
		old:  "	if !s.initial {\n		return\n	}\n	err := fmt.Errorf(\"the watch-list",
		new:  "	if true {\n		return\n	}\n	err := fmt.Errorf(\"the watch-list",
	},
	{
		name: "an error among initial events reaches the reflector as it is",
		file: "internal/source/stream.go",
		old:  "	s.initial = false\n	return errorEvent(err), true\n",
		new:  "	s.initial = false\n	return event, true\n",
	},
	{
		name: "a stream that is stopped leaves the watch open",
		file: "internal/source/stream.go",
		old:  "	s.in.Stop()\n",
		new:  "",
	},
	{
		name: "a stall is forgotten",
		file: "internal/source/stream.go",
		old:  "	s.requests.stalls.stalled(s.requests.of, time.Now())\n",
		new:  "	_ = time.Now()\n",
	},
	{
		name: "throttling reaches the reflector's watch-list retry",
		file: "internal/source/requests.go",
		old:  "			err = plain(err)\n",
		new:  "",
	},
	{
		name: "the end of one's own context is reported as a failure",
		file: "internal/source/requests.go",
		old:  "	if ctx.Err() == nil {\n",
		new:  "	if true {\n",
	},
	{
		name: "requests are let through after the end",
		file: "internal/source/calls.go",
		old:  "	if c.closed {",
		new:  "	if false {",
	},
	{
		name: "an error among initial events is reported twice",
		file: "internal/source/stream.go",
		old:  "	s.requests.failed(ctx, VerbWatch, err)\n	if !s.initial {",
		new:  "	s.requests.failed(ctx, VerbWatch, err)\n	s.requests.failed(ctx, VerbWatch, err)\n	if !s.initial {",
	},
	{
		name: "a reflector's time counts as a stream's silence",
		file: "internal/source/watchlist.go",
		old:  "	s.deadline = s.deadline.Add(took)\n",
		new:  "	_ = took\n",
	},
	{
		name: "a watch-list request without an answer is waited for",
		file: "internal/source/requests.go",
		old:  "time.AfterFunc(answerAfter, cancel)",
		new:  "time.AfterFunc(answerAfter, func() {})",
	},
}

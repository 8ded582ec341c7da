package main

// ofStatus are ways to break what a factory tells of its informers, and what of that it
// takes for trouble.
var ofStatus = []mutant{
	{
		name: "a handler is behind by what came before it",
		file: "dynamicinformer/meter.go",
		old:  "	metered.before = m.given() - uint64(m.source.State().Objects) //nolint:gosec // modulo 2^64\n",
		new:  "",
	},
	{
		name: "what could not be transformed waits for handlers",
		file: "dynamicinformer/meter.go",
		old:  "			m.dropped.Add(1)\n",
		new:  "",
	},
	{
		name: "a registration has the wrapper's name",
		file: "dynamicinformer/registration.go",
		old:  "strings.Replace(c.DoneChecker.Name(), nameOf(c.metered), c.metered.name, 1)",
		new:  "strings.Clone(c.DoneChecker.Name())",
	},
	{
		name: "a release from the handler that is being added is an error",
		file: "dynamicinformer/handlers.go",
		old:  "		_ = informer.RemoveEventHandler(registration)\n	}\n	return registration, nil\n",
		new:  "		_ = informer.RemoveEventHandler(registration)\n		return nil, ErrReleased\n	}\n	return registration, nil\n",
	},
	{
		name: "it is synced since before what went wrong",
		file: "dynamicinformer/trouble.go",
		old:  "t.verb, t.err, t.reason, t.well = verb, err, reason, time.Time{}",
		new:  "t.verb, t.err, t.reason = verb, err, reason",
	},
	{
		name: "it is synced since before its type was served again",
		file: "dynamicinformer/trouble.go",
		old:  "	t.listed, t.well = false, time.Time{}\n",
		new:  "",
	},
	{
		name: "a resync passes for an event",
		file: "dynamicinformer/meter.go",
		old:  "		events = 0\n",
		new:  "		events = 1\n",
	},
	{
		name: "a handler that is idle keeps its backlog",
		file: "dynamicinformer/meter.go",
		old:  "		m.before = given - m.taken\n",
		new:  "",
	},
	{
		name: "a handler that is removed stays in the status",
		file: "dynamicinformer/sharedinformer.go",
		old:  "	i.meters.remove(own.metered)\n",
		new:  "",
	},
	{
		name: "a blocked handler is behind since nobody knows when",
		file: "dynamicinformer/meter.go",
		old:  "		s.BehindSince = m.running\n",
		new:  "",
	},
	{
		name: "leases are held for ever by those who had them",
		file: "dynamicinformer/holder.go",
		old:  "		delete(e.holders, l.holder)\n",
		new:  "",
	},
	{
		name: "a list counts as a watch, too",
		file: "dynamicinformer/traffic.go",
		old:  "		t.lists.Add(1)\n		return\n",
		new:  "		t.lists.Add(1)\n",
	},
	{
		name: "deletions are no traffic",
		file: "internal/source/traffic.go",
		old:  "		case watch.Added, watch.Modified, watch.Deleted:\n",
		new:  "		case watch.Added, watch.Modified:\n",
		in:   "dynamicinformer",
	},
	{
		name: "bytes that are read are not told of",
		file: "internal/attempt/attempt.go",
		old:  "		b.observer.Received(n)\n",
		new:  "",
	},
	{
		name: "an explanation does not know where news of types come from",
		file: "dynamicinformer/explanation.go",
		old:  "	if resolver := f.options.resolver; resolver != nil {\n",
		new:  "	if resolver := f.options.resolver; resolver != nil && false {\n",
	},
	{
		name: "an explanation does not say what to do",
		file: "dynamicinformer/telling.go",
		old:  "	if advice := wrong.advice(); advice != \"\" {\n",
		new:  "	if advice := wrong.advice(); advice == \"never\" {\n",
	},
	{
		name: "a version that expires is a trouble",
		file: "dynamicinformer/trouble.go",
		old:  "	if isExpired(err) && o.expired(time.Now()) {\n",
		new:  "	if isExpired(err) && !o.expired(time.Now()) {\n",
	},
	{
		name: "versions that expire all the time are no trouble",
		file: "dynamicinformer/trouble.go",
		old:  "	ordinary = now.Sub(t.expiry) > expiryEvery\n",
		new:  "	ordinary = true\n",
	},
	{
		name: "a NotFound that nobody explains is not looked into",
		file: "dynamicinformer/asking.go",
		old:  "	left := doubtFor - time.Since(doubt)\n",
		new:  "	left := min(0, -time.Since(doubt))\n",
	},
	{
		name: "stalls are told apart by generations only",
		file: "internal/source/watchlist.go",
		old:  "	if t.UID != \"\" {\n",
		new:  "	if t.UID == \"never\" {\n",
	},
	{
		name: "Release waits for the locks of an informer",
		file: "dynamicinformer/release.go",
		old:  "		go func() { // it may have to wait for the informer's locks\n",
		new:  "		func() {\n",
	},
	{
		name: "Shutdown leaves the removal of handlers behind",
		file: "dynamicinformer/shutdown.go",
		old:  "	rest := slices.Concat(f.dismissed, f.strays)\n",
		new:  "	rest := slices.Clone(f.dismissed)\n",
	},
	{
		name: "a degraded informer is never unhealthy",
		file: "dynamicinformer/health.go",
		old:  "	case p.tolerance < 0, s.Since.IsZero(), now.Sub(s.Since) <= p.tolerance:\n",
		new:  "	case p.tolerance != 1:\n",
	},
	{
		name: "readiness has patience with what has never synced",
		file: "dynamicinformer/health.go",
		old:  "	case p.ready && (!s.Listed || s.State == StateStopped):\n",
		new:  "	case p.ready && s.State == StateStopped:\n",
	},
	{
		name: "a recovery is not logged",
		file: "dynamicinformer/journal.go",
		old:  "	case wrong != \"\":\n",
		new:  "	case wrong == \"never\":\n",
	},
	{
		name: "a type that flaps floods the log",
		file: "dynamicinformer/journal.go",
		old:  "	if j.lines == linesEachMinute {\n",
		new:  "	if j.lines < 0 {\n",
	},
	{
		name: "the end of a type is logged as if it were waited for",
		file: "dynamicinformer/journal.go",
		old:  "	j.news(reason)\n	if !known {\n",
		new:  "	if !known && j.news(reason) {\n",
	},
}

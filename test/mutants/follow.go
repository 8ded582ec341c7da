package main

// ofFollow are the ways to break Follow, and what it stands on in discovery.
var ofFollow = []mutant{
	{
		name: "Follow waits for the callbacks of others",
		file: "dynamicinformer/follow_run.go",
		old:  "		w.work.Go(func() { w.tend(ctx, t) })\n",
		new:  "		w.mu.Unlock()\n		w.tend(ctx, t)\n		w.mu.Lock()\n",
	},
	{
		name: "a lease is released before its handlers have the deletions",
		file: "dynamicinformer/follow_stop.go",
		old:  "emptied && !waiting):",
		new:  "emptied && (true || !waiting)):",
	},
	{
		name: "Follow does not wait for the factory's start",
		file: "dynamicinformer/follow.go",
		old:  "		if life != nil && !over && ctx.Err() == nil {\n",
		new:  "		if !over {\n			if life == nil {\n				life = ctx\n			}\n",
	},
	{
		name: "a lease is released however far its deletions are",
		file: "dynamicinformer/follow_stop.go",
		old:  "parting == partingOver || time",
		new:  "parting >= partingStays || time",
	},
	{
		name: "a lease is released before the type's objects are gone",
		file: "dynamicinformer/follow_stop.go",
		old:  "	if end.Kind != discovery.CRDDeleted && end.Kind != discovery.NotListed {\n",
		new:  "	if end.Kind != discovery.NotListed {\n",
	},
	{
		name: "what is not listed is gone",
		file: "dynamicinformer/follow_stop.go",
		old:  "		return left, partingStays\n",
		new:  "		return left, partingOver\n",
	},
	{
		name: "a handler that is stuck holds up the end for ever",
		file: "dynamicinformer/follow_stop.go",
		old:  "time.Since(progress) >= stopPatience",
		new:  "false && time.Since(progress) >= stopPatience",
	},
	{
		name: "a CRD that was created again is the same type to Follow",
		file: "dynamicinformer/follow_type.go",
		old:  "	return uid != \"\" && t.res.CRDUID != \"\" && uid != t.res.CRDUID\n",
		new:  "	return false\n",
	},
	{
		name: "a type that goes on is stopped",
		file: "dynamicinformer/follow_type.go",
		old:  "		t.end = nil // it goes on\n",
		new:  "",
	},
	{
		name: "the end of a CRD is not for good",
		file: "dynamicinformer/follow_type.go",
		old:  "	if t.end == nil || t.end.Kind != discovery.CRDDeleted {\n",
		new:  "	{\n",
	},
	{
		name: "any number of types are started at a time",
		file: "dynamicinformer/follow_start.go",
		old:  "w.slots > 0 && ",
		new:  "",
	},
	{
		name: "a type that hangs keeps its place",
		file: "dynamicinformer/follow_start.go",
		old:  "		case <-patience.C:\n			waiting = false\n",
		new:  "		case <-patience.C:\n",
	},
	{
		name: "a type that is forbidden keeps its place for a while",
		file: "dynamicinformer/follow_start.go",
		old:  " || l.entry.waits() ||",
		new:  " ||",
	},
	{
		name: "a type that flaps is started each time",
		file: "dynamicinformer/follow_start.go",
		old:  "		case wait > 0:\n",
		new:  "		case wait > time.Hour:\n",
	},
	{
		name: "leases outlive Follow",
		file: "dynamicinformer/follow_run.go",
		old:  "	for _, l := range leases {\n		l.Release()\n	}\n",
		new:  "	_ = leases\n",
	},
	{
		name: "Follow does not begin with the factory",
		file: "dynamicinformer/factory.go",
		old:  "	f.begun.Ring()\n",
		new:  "",
	},
	{
		name: "Follow has no resolver that runs",
		file: "dynamicinformer/follow.go",
		old:  "			f.attendLocked(life) //",
		new:  "			//",
	},
	{
		name: "Follow gives up what others have with other options",
		file: "dynamicinformer/follow_start.go",
		old:  "	if errors.Is(err, ErrConflict) {\n",
		new:  "	if false {\n",
	},
	{
		name: "nobody is told of a CRD's labels",
		file: "discovery/event.go",
		old:  "!s.defined || !now.defined || maps.Equal(s.labels, now.labels)",
		new:  "true || maps.Equal(s.labels, now.labels)",
	},
	{
		name: "the labels of another CRD count",
		file: "discovery/selector_known.go",
		old:  ", !known.defined && res.CRDUID != \"\", known.defined && res.CRDUID != \"\" && known.uid != res.CRDUID:",
		new:  ":",
	},
	{
		name: "a handler that was idle has nothing waiting",
		file: "internal/handlers/handler.go",
		old:  " && now.Sub(lastEvent) > idleAfter",
		new:  " && (true || lastEvent.IsZero())",
		in:   "dynamicinformer",
	},
}

package main

// ofSoak has mutants that the soak must find: events that are lost or invented once in a while, and something that each lease or type leaves.
var ofSoak = []table{
	{"internal/handlers", "test/envtest/soak", []mutant{
		{"soak: each handler misses one call of twenty", "handler.invoke", before("h.unpack(&e)", "if h.delivered%20 == 19 { return }")},
	}},
	{"dynamicinformer", "test/envtest/soak", []mutant{
		{"soak: each lease leaves a goroutine", "Lease.Release", before("added := l.handlers.Close()", "go func() { select {} }()")},
		{"soak: informers that have ended stay in memory", "Factory.ended", drop("f.running[gr] = slices.DeleteFunc(f.running[gr], func(other *entry) bool { return other == e })")},
		{"soak: the watches of released informers stay", "entry.retireLocked", drop("e.cancel()")},
	}},
	{"metrics", "test/envtest/soak", []mutant{
		{"soak: the metrics of informers that have ended stay", "InformerMetrics.ForgetInformer", drop("delete(m.all, id)")},
	}},
}

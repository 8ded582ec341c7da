package main

// ofCases has mutants that the cases of test/README.md must find.
var ofCases = []table{
	{"internal/source", "test/envtest/cases", []mutant{
		{"cases: an absent type is listed every two seconds", "New", after("if cfg.Client != nil { s.gate.transform.convert = cfg.Client.Convert() }", `go func() {
			for i := 0; i < 10 && !s.gate.calls.Closed(); i++ {
				<-time.After(2 * time.Second)
				if t, _ := cfg.Availability.Current(); t.Serving != Served {
					_, _ = s.gate.requests(t).unreported().version(context.Background())
				}
			}
		}()`)},
		{"cases: a namespace that is forbidden once is never watched again", "child.failed", before("ordinary := c.pace.failed(time.Now(), err)", "if apierrors.IsForbidden(err) { <-ctx.Done() }")},
	}},
	{"discovery", "test/envtest/cases", []mutant{
		{"cases: an exact version is the preferred one", "Resolver.ValidateVersion", before(
			"if res, served := r.narrowly(ctx, gvr); served { return res, nil }",
			"if res, err := r.ResolveGR(ctx, gvr.GroupResource()); err == nil { return r.Validate(ctx, res.GVR, verbs...) }")},
	}},
}

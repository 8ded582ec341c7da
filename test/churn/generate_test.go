package churn_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/gvrkit/gvrkit/test/churn"
)

func TestGenerate_IsDeterministic(t *testing.T) {
	for seed := range uint64(50) {
		first, second := churn.Generate(seed, churn.Profile{}), churn.Generate(seed, churn.Profile{})
		if first.String() != second.String() {
			t.Fatalf("seed %d gives two scripts", seed)
		}
		if seed > 0 && first.String() == churn.Generate(seed-1, churn.Profile{}).String() {
			t.Fatalf("seeds %d and %d give one script", seed-1, seed)
		}
	}
}

func TestGenerate_UsesAllVerbsAndFaults(t *testing.T) {
	verbs, kinds := map[string]int{}, map[string]int{}
	for seed := range uint64(200) {
		for _, op := range churn.Generate(seed, churn.Profile{Servers: 2, Restore: true, Aggregated: true, Namespaces: true}) {
			verbs[op.Verb]++
			kinds[op.With["kind"]]++
		}
	}
	for verb := range churn.Verbs {
		if verbs[verb] == 0 {
			t.Errorf("no script has %s", verb)
		}
	}
	for kind := range churn.FaultKinds() {
		if kinds[kind] == 0 {
			t.Errorf("no script has the fault %s", kind)
		}
	}
}

// make test runs about twelve seeds on a server that is not restored, and fewer on the one that is, where a script takes about 20 s.
func TestGenerate_TwelveSeedsHaveAllFaults(t *testing.T) {
	for name, profile := range map[string]churn.Profile{
		"the usual one":  {},
		"two servers":    {Servers: 2},
		"short scripts":  {Length: 40, Types: 1},
		"restores":       {Length: 70, Restore: true},
		"without a kind": {Without: []string{"hang", churn.Undefine}},
	} {
		for first := range uint64(30) {
			has := map[string]int{}
			for seed := first; seed < first+12; seed++ {
				for _, op := range churn.Generate(seed, profile) {
					has[op.With["kind"]]++
				}
			}
			for kind := range churn.FaultKinds() {
				if has[kind] == 0 && !slices.Contains(profile.Without, kind) {
					t.Errorf("%s: no script of the seeds %d to %d has the fault %s", name, first, first+11, kind)
				}
			}
		}
	}
}

func TestGenerate_TwelveSeedsHaveAllVerbs(t *testing.T) {
	for name, profile := range map[string]churn.Profile{
		"kube-apiserver":  {Servers: 2, Aggregated: true, Namespaces: true},
		"embedded server": {},
	} { // scripts for a server that is restored are shorter, and half of their scenarios are restores
		absent := map[string]bool{
			churn.Alternate: profile.Servers < 2, churn.Lag: profile.Servers < 2,
			churn.Backup: true, churn.Advance: true, churn.Restore: true,
			churn.Move: !profile.Aggregated, churn.Return: !profile.Aggregated, churn.Down: !profile.Aggregated, churn.Up: !profile.Aggregated,
			churn.NewNamespace: !profile.Namespaces, churn.Label: !profile.Namespaces, churn.EndNamespace: !profile.Namespaces,
		}
		for first := range uint64(30) {
			has := map[string]int{}
			for seed := first; seed < first+12; seed++ {
				for _, op := range churn.Generate(seed, profile) {
					has[op.Verb]++
				}
			}
			for verb := range churn.Verbs {
				if (has[verb] == 0) != absent[verb] {
					t.Errorf("%s: the scripts of the seeds %d to %d have %s %d times", name, first, first+11, verb, has[verb])
				}
			}
		}
	}
}

// Once per script on average, the subject is at rest while a lease is on a type that has been deleted.
func TestGenerate_TypesAreDeletedAtRest(t *testing.T) {
	const seeds = 120
	at := 0 // how often it is
	for seed := range uint64(seeds) {
		absent, leases := map[string]bool{}, map[string]string{}
		for _, op := range churn.Generate(seed, churn.Profile{}) {
			switch op.Verb {
			case churn.Define, churn.Redefine:
				delete(absent, op.Arg("type"))
			case churn.Undefine:
				absent[op.Arg("type")] = true
			case churn.Acquire:
				leases[op.Arg("lease")] = cmp.Or(leases[op.Arg("lease")], op.Arg("type"))
			case churn.Release:
				delete(leases, op.Arg("lease"))
			case churn.Restart:
				clear(leases)
			case churn.Settle:
				if slices.ContainsFunc(slices.Collect(maps.Values(leases)), func(typ string) bool { return absent[typ] }) {
					at++
				}
			}
		}
	}
	if at < seeds {
		t.Errorf("in %d scripts, a lease is on a deleted type at rest %d times", seeds, at)
	}
}

// A run leaves out the verb advance, and so the restore that it is for, if there is no type, a permission is revoked, a version of a type is not
// served, or a conversion fails.
func TestGenerate_MostRestoresAreCarriedOut(t *testing.T) {
	restores, carriedOut := 0, 0
	for seed := range uint64(120) {
		var backup map[string]string
		advanced := false
		served, forbidden := map[string]string{}, map[string]bool{} // versions, by type
		webhook, broken := map[string]bool{}, map[string]bool{}
		for _, op := range churn.Generate(seed, churn.Profile{Length: 70, Restore: true}) {
			typ, permission := op.Arg("type"), op.Arg("type")+" "+op.With["namespace"]+" "
			verbs := op.List("verb")
			if verbs == nil {
				verbs = []string{"list", "watch"}
			}
			switch op.Verb {
			case churn.Define, churn.Redefine, churn.Serve:
				if op.Verb == churn.Redefine || (op.Verb == churn.Serve) == (served[typ] != "") {
					served[typ] = op.With["versions"]
					webhook[typ] = op.Verb != churn.Serve && op.With["conversion"] == "webhook" || op.Verb == churn.Serve && webhook[typ]
				}
			case churn.BreakConversion:
				broken[typ] = true
			case churn.MendConversion:
				broken[typ] = false
			case churn.Undefine, churn.Terminate:
				delete(served, typ)
			case churn.Forbid:
				for _, verb := range verbs {
					forbidden[permission+verb] = true
				}
			case churn.Allow:
				for _, verb := range verbs {
					delete(forbidden, permission+verb)
				}
			case churn.Backup:
				backup, advanced = maps.Clone(served), false
			case churn.Advance, churn.Restore:
				advanced = advanced || backup != nil && len(served) > 0 && len(forbidden) == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(served)), func(typ string) bool {
					return served[typ] != "v1,v1beta1" || webhook[typ] && broken[typ]
				})
				if op.Verb == churn.Advance {
					continue
				}
				restores++
				if advanced {
					carriedOut, advanced = carriedOut+1, false
					served = maps.Clone(backup)
				}
			}
		}
	}
	if restores < 120 || carriedOut < restores*4/5 {
		t.Errorf("in 120 scripts, %d of %d restores are carried out", carriedOut, restores)
	}
}

// A machine that is busy runs only the first seeds on each server: as many as run at the same time.
func TestGenerate_TheFirstSeedsFindBugsThatFewScenariosShow(t *testing.T) {
	for name, profile := range map[string]churn.Profile{
		"kube-apiserver":  {Servers: 2, Aggregated: true, Namespaces: true},
		"embedded server": {},
	} {
		full, unlisted := 0, 0
		for seed := range uint64(3) {
			script := churn.Generate(seed+1, profile)
			for i, op := range script[1:] {
				before := script[i]
				switch {
				case op.Verb == churn.Settle && before.Verb == churn.Handle && before.Arg("handler") == "last":
					full++
				case op.Verb == churn.Label && before.Verb == churn.Fault && before.With["verb"] == "list":
					unlisted++
				}
			}
		}
		if full < 9 || (unlisted > 0) != profile.Namespaces {
			t.Errorf("%s: handlers are added to a full cache %d times, and labels change %d times while lists fail", name, full, unlisted)
		}
	}
}

func TestGenerate_KeepsToTheProfile(t *testing.T) {
	for seed := range uint64(200) {
		script := churn.Generate(seed, churn.Profile{Length: 40, Types: 1, Without: []string{churn.Serve, "hang"}})
		if len(script) < 40 || len(script) > 75 || script[len(script)-1].Verb != churn.Settle {
			t.Fatalf("seed %d: %d operations, the last is %v", seed, len(script), script[len(script)-1])
		}
		for _, op := range script {
			if op.Verb == churn.Serve || op.Verb == churn.Alternate || op.Verb == churn.Lag || op.Verb == churn.Restore || op.With["kind"] == "hang" || op.Arg("type") == "t2" {
				t.Fatalf("seed %d: %v", seed, op)
			}
			if versions := op.With["versions"]; versions != "" && versions != "v1,v1beta1" { // a subject of v1 would never see the type
				t.Fatalf("seed %d: without serve, %v", seed, op)
			}
		}
	}
}

func TestGenerate_LeasesHaveOneKindOfNamespaces(t *testing.T) {
	named, labeled := 0, 0
	for seed := range uint64(300) {
		for _, op := range churn.Generate(seed, churn.Profile{Namespaces: true}) {
			switch {
			case op.With["namespaces"] != "" && op.With["labeled"] != "":
				t.Fatalf("seed %d: %v", seed, op)
			case op.With["namespaces"] != "":
				named++
			case op.With["labeled"] != "":
				labeled++
			}
		}
	}
	if named == 0 || labeled == 0 {
		t.Errorf("%d leases with names, %d with a label", named, labeled)
	}
}

func TestGenerate_EndsIfNothingIsAllowed(t *testing.T) {
	script := churn.Generate(1, churn.Profile{Without: slices.Collect(maps.Keys(churn.Verbs))})
	if len(script) != 1 || script[0].Verb != churn.Settle {
		t.Errorf("%v", script)
	}
}

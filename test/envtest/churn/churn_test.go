// Package churn_test runs the churn model on the embedded server, on one whose etcd is restored, and on kube-apiserver. It also
// runs the example of package churn.
//
//	go test ./test/envtest/churn                                   # 30 s on each server, one after the other
//	go test ./test/envtest/churn -churn.duration 10m -churn.seed 7 # longer, from another seed
//	go test ./test/envtest/churn -churn.script file -v             # one script, with its progress
package churn_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/test/churn"
	"github.com/gvrkit/gvrkit/test/churn/leases"
	"github.com/gvrkit/gvrkit/test/churn/mirror"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
)

var (
	duration = flag.Duration("churn.duration", 30*time.Second, "how long scripts are run on each server; a third less with -short")
	seed     = flag.Uint64("churn.seed", 1, "the first seed")
	seeds    = flag.Uint64("churn.seeds", 0, "how many seeds are run; 0: as many as the duration allows")
	parallel = flag.Int("churn.parallel", 3, "how many scripts run at the same time on a server that is not restored")
	file     = flag.String("churn.script", "", "a file with the only script to run")
	unaided  = flag.Duration("churn.unaided", 0, "how long informers may take to come to rest without calls of Retry, and 30 s more with them; 0: 5 s")
	shrink   = flag.Duration("churn.shrink", 3*time.Minute, "how long a shorter failing script is searched")
)

func TestMain(m *testing.M) {
	log.SetLogger(klog.Logger{})
	goleak.VerifyTestMain(m)
}

// together lets a test run at the same time as the others of this package with -short: most of the time, scripts wait. Without it, each test has
// the processors for itself.
func together(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Parallel()
	}
}

func TestChurn_EmbeddedServer(t *testing.T) {
	together(t)
	server := fixture.StartEmbedded(t)
	run(t, *parallel, churn.Config{Servers: []*rest.Config{server.Config()}})
}

// A restore concerns all scripts on a server, so they run one after the other.
func TestChurn_RestoredServer(t *testing.T) {
	together(t)
	server, err := fixture.StartRestorable(t.Context(), t.TempDir())
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	restore := func(ctx context.Context) error { return server.Restore(ctx, nil) }
	run(t, 1, churn.Config{Servers: []*rest.Config{server.Config()}, Backup: server.BackUp, Restore: restore})
}

func TestChurn_KubeAPIServer(t *testing.T) {
	together(t)
	environment := fixture.StartKubeAPIServer(t)
	second, lag := secondServer(t, environment)
	run(t, *parallel, churn.Config{Servers: []*rest.Config{environment.Config, second}, Lag: lag, Aggregated: fixture.StartEmbedded(t).Config()})
}

// forgetful is a controller with a bug: it never removes a copy.
type forgetful struct{ *mirror.Mirror }

func (forgetful) OnDelete(any) {}

// The example of package churn finds nothing in its controller, and the bug of another one.
func TestChurn_OwnController(t *testing.T) { //nolint:tparallel // the subtests share a server
	together(t)
	server := fixture.StartEmbedded(t)
	profile := mirror.Profile()
	profile.Length = 60
	for name, tc := range map[string]struct {
		subject churn.NewSubject
		fails   bool
	}{
		"as it is":   {mirror.New, false},
		"with a bug": {mirror.With(func() mirror.Controller { return forgetful{&mirror.Mirror{}} }), true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := churn.Config{Servers: []*rest.Config{server.Config()}, Subject: tc.subject, Patience: time.Minute}
			if tc.fails {
				cfg.Patience = 8 * time.Second // it runs out
			}
			for seed := range uint64(3) {
				script := churn.Generate(seed, profile)
				result, err := churn.Run(t.Context(), cfg, script)
				switch {
				case err != nil:
					t.Fatalf("seed %d: %v\n%v", seed, err, script)
				case !tc.fails && result.Failed():
					report(t, cfg, seed, result)
				case tc.fails && result.Failed():
					if !strings.Contains(result.String(), "and must not") {
						t.Errorf("seed %d: no violation is the bug:\n%v", seed, result)
					}
					return
				}
			}
			if tc.fails {
				t.Error("the bug was not found")
			}
		})
	}
}

// secondServer starts another API server on the etcd of an environment: requests then alternate between
// servers that learn of changes at different times. It gets what etcd sends by a relay, which can delay it.
func secondServer(t *testing.T, environment *envtest.Environment) (*rest.Config, *churn.ServerLag) {
	t.Helper()
	etcd := *environment.ControlPlane.Etcd.URL
	relay, err := fixture.StartRelay(t.Context(), etcd.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := relay.Close(); err != nil {
			t.Error(err)
		}
	})
	etcd.Host = relay.Address() // etcd has no certificate
	program := filepath.Join(environment.BinaryAssetsDirectory, "kube-apiserver")
	server := &envtest.APIServer{Path: program, EtcdURL: &etcd, StartTimeout: 5 * time.Minute, StopTimeout: time.Minute}
	err = server.Start()
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := server.AddUser(envtest.User{Name: "churn", Groups: []string{"system:masters"}}, &rest.Config{
		Host:            "https://" + server.Address + ":" + server.Port,
		TLSClientConfig: rest.TLSClientConfig{CAData: server.CA},
	})
	if err != nil {
		t.Fatal(err)
	}
	return config, churn.NewServerLag(relay.Delay)
}

// run runs the script of the flag, or those of seeds, some at a time, until one fails or the time is over.
func run(t *testing.T, parallel int, cfg churn.Config) {
	t.Helper()
	cfg.Subject, cfg.Patience, cfg.Unaided = leases.New(), 30*time.Second, *unaided
	if cfg.Unaided > 0 {
		cfg.Patience += cfg.Unaided
	}
	if *file != "" {
		runFile(t, cfg)
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	next, failed := make(chan uint64), make(chan func(), parallel)
	var workers sync.WaitGroup
	var mu sync.Mutex
	effects := map[string]int{} // of faults, by kind
	for range parallel {
		workers.Go(func() {
			for seed := range next {
				script := churn.Generate(seed, profile(cfg))
				result, err := churn.Run(ctx, cfg, script)
				mu.Lock()
				for kind, responses := range result.Effects {
					effects[kind] += responses
				}
				mu.Unlock()
				switch {
				case ctx.Err() != nil: // another script has failed
				case result.Failed():
					stop()
					failed <- func() { report(t, cfg, seed, result) } //nolint:contextcheck // ctx has ended
				case err != nil:
					t.Errorf("seed %d: %v\n%v", seed, err, script)
					stop()
				}
			}
		})
	}
	long := *duration
	if testing.Short() {
		long -= long / 3
	}
	end, last := time.After(long), *seed+*seeds-1
	for n := *seed; n <= last || *seeds == 0; n++ {
		select {
		case next <- n:
			continue
		case <-end:
		case <-ctx.Done():
		}
		t.Logf("scripts of the seeds %d to %d", *seed, n-1)
		break
	}
	close(next)
	workers.Wait()
	t.Logf("responses that faults have changed: %v", effects)
	close(failed)
	for report := range failed {
		report()
	}
}

// profile returns what scripts may use. A restore takes seconds, so scripts with restores are shorter.
func profile(cfg churn.Config) churn.Profile {
	p := churn.Profile{Servers: len(cfg.Servers), Restore: cfg.Restore != nil, Aggregated: cfg.Aggregated != nil, Namespaces: cfg.Aggregated != nil}
	if p.Restore {
		p.Length = 70
	}
	return p
}

// report reports a failed script, and the shortest one that it finds.
func report(t *testing.T, cfg churn.Config, seed uint64, failed churn.Result) {
	t.Helper()
	t.Errorf("seed %d:\n%v\n%v", seed, failed, failed.Script)
	if os.Getenv("GVRKIT_MUTANT") != "" {
		return // no one reads it
	}
	ctx, cancel := context.WithTimeout(t.Context(), *shrink)
	defer cancel()
	cfg.Patience = cfg.Unaided + 15*time.Second
	if shortest := churn.Shortest(ctx, cfg, failed); len(shortest.Script) < len(failed.Script) {
		t.Errorf("seed %d, shortened to %d operations, a script for -churn.script:\n%v\n%v", seed, len(shortest.Script), shortest, shortest.Script)
	}
}

func runFile(t *testing.T, cfg churn.Config) {
	t.Helper()
	text, err := os.ReadFile(*file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := churn.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = t.Logf
	result, err := churn.Run(t.Context(), cfg, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("responses that faults have changed: %v", result.Effects)
	if result.Failed() {
		t.Errorf("\n%v\n%v", result, script)
	}
}

package dynamicinformer_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

var followSeed = flag.Uint64("follow.seed", 0, "run TestFollow_Model with this seed alone")

// model has the expected state of random types. Its callbacks take some time.
type model struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand

	mu      sync.Mutex
	started map[string]bool
	calls   map[string]bool // calls in progress
	pause   *rand.Rand
}

// call is a callback for the type with this name. No other call for the type may begin before its end.
func (m *model) call(name string, change func()) {
	m.mu.Lock()
	if m.calls[name] {
		m.t.Errorf("seed %d: two calls for %s at the same time", m.seed, name)
	}
	m.calls[name] = true
	change()
	pause := time.Duration(0)
	if m.pause.IntN(2) == 0 {
		pause = time.Duration(m.pause.IntN(20_000)) * time.Millisecond
	}
	m.mu.Unlock()
	time.Sleep(pause)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[name] = false
}

func (m *model) funcs() dynamicinformer.FollowFuncs {
	return dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) {
			name := l.Status().GVR.Resource
			m.call(name, func() {
				if m.started[name] {
					m.t.Errorf("seed %d: %s is started twice", m.seed, name)
				}
				m.started[name] = true
			})
		},
		Stopped: func(res discovery.Resource, evidence discovery.Evidence) {
			name := res.GVR.Resource
			m.call(name, func() {
				if !m.started[name] {
					m.t.Errorf("seed %d: %s is stopped without a start", m.seed, name)
				}
				if evidence.Kind == discovery.CRDDeleted && evidence.CRDUID != res.CRDUID {
					m.t.Errorf("seed %d: %s with UID %s is stopped with evidence for UID %s", m.seed, name, res.CRDUID, evidence.CRDUID)
				}
				delete(m.started, name)
			})
		},
	}
}

// step changes the cluster.
func (m *model) step(w *crdCluster, labelled map[string]bool) {
	name := fmt.Sprintf("ships%d", m.random.IntN(5))
	team := []string{"net", "other"}[m.random.IntN(2)]
	switch there := w.has(name) != ""; m.random.IntN(10) {
	case 0, 1, 2:
		w.define(name, label(team)) // may replace an existing type
		labelled[name] = team == "net"
	case 3, 4:
		if there {
			w.undefine(name)
			delete(labelled, name)
		}
	case 5, 6:
		if there {
			w.change(name, label(team))
			labelled[name] = team == "net"
		}
	case 7:
		w.CloseWatches(kindOf(name))
	case 8:
		w.breakDiscovery(m.random.IntN(3) == 0)
	default:
		if there {
			w.change(name, versions(map[string]bool{"v1": m.random.IntN(3) > 0}))
		}
	}
}

// Types change at random while callbacks take some time. Starts and stops alternate, the last state is
// correct, and at the end no type is started.
func TestFollow_Model(t *testing.T) {
	seeds := make([]uint64, fewer(30))
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	if *followSeed != 0 {
		seeds = []uint64{*followSeed}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
	}
}

func runModel(t *testing.T, seed uint64) {
	t.Helper()
	m := &model{
		t: t, seed: seed, started: map[string]bool{}, calls: map[string]bool{},
		random: rand.New(rand.NewPCG(seed, 1)), pause: rand.New(rand.NewPCG(seed, 2)), //nolint:gosec // repeatable
	}
	cluster := newCRDCluster()
	f := cluster.factory(t)
	f.Start(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	net := discovery.Selector{CRDLabels: labels.SelectorFromSet(labels.Set{"team": "net"})}
	go func() { ended <- f.Follow(ctx, net, m.funcs(), dynamicinformer.WithStartLimit(2)) }()
	want := map[string]bool{}
	for range 150 {
		m.step(cluster, want)
		if m.random.IntN(3) > 0 {
			time.Sleep(time.Duration(m.random.IntN(3000)) * time.Millisecond)
		}
	}
	cluster.breakDiscovery(false)
	for name := range want {
		cluster.change(name, versions(map[string]bool{"v1": true}))
	}
	time.Sleep(30 * time.Minute)
	synctest.Wait()
	maps.DeleteFunc(want, func(_ string, labelled bool) bool { return !labelled })
	if diff := cmp.Diff(want, m.started); diff != "" {
		t.Errorf("seed %d: started (-want +got):\n%s", seed, diff)
	}
	statuses := f.Status()
	if len(statuses) != len(want) {
		t.Errorf("seed %d: %d informers, want %d", seed, len(statuses), len(want))
	}
	for _, s := range statuses {
		if s.State != status.StateSynced || string(s.Resource.CRDUID) != cluster.has(s.GVR.Resource) {
			t.Errorf("seed %d: %+v", seed, s)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	if len(f.Status()) > 0 || len(m.started) > 0 {
		t.Errorf("seed %d: %d informers are left, started: %v", seed, len(f.Status()), m.started)
	}
	shutdown(t, f)
}
